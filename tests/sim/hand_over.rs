//! Lock cohorting: a lock that is let go while others of the same client wait is handed on without
//! asking the nodes, within bounds, and each holder has its own guard, end and token.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quorumlock::testing::world::{ProcessId, Task, World};
use quorumlock::{Client, Config, FencingToken, Guard, Loss, Released};

use crate::support::{
    JOB, acquire, acquiring, assert_clean, finish, ms, run, served, settings, world,
};

const TTL: Duration = ms(3_000);

/// A process whose lock may be handed on `handoffs` times, for `time`.
fn cohort(world: &World, handoffs: u32, time: Duration) -> (ProcessId, Client) {
    let config = settings(world, TTL).cohort_max_handoffs(handoffs);
    world.client(config.cohort_max_time(time)).unwrap()
}

fn waiter(world: &World, who: &(ProcessId, Client)) -> Task<Guard> {
    let lock = who.1.lock(JOB).wait_forever();
    world.spawn(who.0, async move { lock.acquire().await.unwrap() })
}

#[test]
fn the_next_in_line_gets_it_without_a_request_and_under_a_larger_token() {
    let world = world(5);
    let me = cohort(&world, 8, TTL);
    let first = acquire(&world, &me);
    let (held, lost, token) = (first.held(), first.lost(), first.fencing_token());
    let second = waiter(&world, &me);
    run(&world, ms(30));
    let (before, began) = (served(&world), world.elapsed());
    let released = world.spawn(me.0, first.release());
    let released = finish(&world, &released, ms(10));
    assert!(matches!(released, Ok(Released::InTime)), "{released:?}");
    let second = finish(&world, &second, ms(10));
    assert_eq!(world.elapsed(), began);
    assert_eq!(served(&world), before);
    assert_eq!(
        second.fencing_token(),
        FencingToken::from_u64(u64::from(token) + 1)
    );
    assert!(second.is_held() && !held.is_held());
    let lost = world.spawn(me.0, lost);
    assert_eq!(finish(&world, &lost, ms(10)), Loss::Released);
    // The lease lives on by its extensions, and ends with its last holder.
    run(&world, TTL * 3);
    assert!(second.is_held());
    assert_eq!(world.cluster().holders(JOB), [5]);
    drop(second);
    run(&world, ms(100));
    assert_clean(&world, "after the last holder");
}

/// What `tasks` of one process saw, which take the lock in turn until `rounds` are over.
fn take_turns(world: &World, who: &(ProcessId, Client), tasks: u32, rounds: u32) -> Vec<u64> {
    let tokens = Rc::new(RefCell::new(Vec::new()));
    let task = |_| {
        let lock = who.1.lock(JOB).wait_forever();
        let (sleeper, tokens) = (world.clone(), Rc::clone(&tokens));
        world.spawn(who.0, async move {
            for _ in 0..rounds {
                let guard = lock.acquire().await.unwrap();
                tokens.borrow_mut().push(u64::from(guard.fencing_token()));
                sleeper.sleep(ms(1)).await;
                drop(guard);
            }
        })
    };
    let tasks: Vec<Task<()>> = (0..tasks).map(task).collect();
    for task in &tasks {
        finish(world, task, ms(60_000));
    }
    tokens.take()
}

#[test]
fn after_so_many_hand_overs_it_is_really_released() {
    for (handoffs, grants) in [(0, 24), (1, 12), (3, 6), (100, 1)] {
        let world = world(5);
        let me = cohort(&world, handoffs, TTL);
        let tokens = take_turns(&world, &me, 4, 6);
        assert!(
            tokens.windows(2).all(|pair| pair[0] < pair[1]),
            "{tokens:?}"
        );
        // A grant and a release for each node, and the introduction.
        let each = served(&world) / 5;
        assert!(each <= 2 * grants + 2, "{handoffs}: {each} requests a node");
        run(&world, ms(100));
        assert_clean(&world, "after all turns");
    }
}

#[test]
fn an_heir_that_leaves_at_that_very_moment_hands_it_on() {
    let world = world(3);
    let me = cohort(&world, 8, TTL);
    let first = acquire(&world, &me);
    let (second, third) = (waiter(&world, &me), waiter(&world, &me));
    run(&world, ms(30));
    drop(first);
    second.cancel();
    let third = finish(&world, &third, ms(10));
    assert!(third.is_held());
    drop(third);
    run(&world, ms(100));
    assert_clean(&world, "after the last holder");
}

#[test]
fn what_a_former_holder_still_asks_for_is_not_heard() {
    let world = world(3);
    let me = cohort(&world, 8, TTL);
    let first = Rc::new(acquire(&world, &me));
    let second = waiter(&world, &me);
    run(&world, ms(30));
    // An extension on its way when the lock is handed on.
    let extending = Rc::clone(&first);
    let extended = world.spawn(me.0, async move { extending.extend().await });
    run(&world, Duration::ZERO);
    extended.cancel();
    drop(Rc::try_unwrap(first).unwrap());
    let second = finish(&world, &second, ms(100));
    run(&world, TTL * 2);
    assert!(second.is_held());
}

/// Whether a lock of `config` is handed on to a waiter with its own settings.
fn is_handed_on(
    config: impl Fn(Config) -> Config,
    other: fn(quorumlock::Lock) -> quorumlock::Lock,
) -> bool {
    let world = world(3);
    let me = world.client(config(settings(&world, TTL))).unwrap();
    let first = acquire(&world, &me);
    let lock = other(me.1.lock(JOB).wait_forever());
    let second = world.spawn(me.0, async move { lock.acquire().await.unwrap() });
    run(&world, ms(30));
    let began = world.elapsed();
    drop(first);
    drop(finish(&world, &second, TTL));
    world.elapsed() == began
}

#[test]
fn only_what_the_heir_asked_for_is_handed_on() {
    assert!(is_handed_on(|config| config, |lock| lock));
    assert!(is_handed_on(|config| config, |lock| lock.max_hold(TTL)));
    assert!(!is_handed_on(|config| config, |lock| lock.ttl(TTL / 2)));
    assert!(!is_handed_on(
        |config| config,
        |lock| lock.auto_extend(false)
    ));
    assert!(!is_handed_on(
        |config| config.auto_extend(false),
        |lock| lock
    ));
    assert!(!is_handed_on(
        |config| config.cohort_max_handoffs(0),
        |lock| lock
    ));
    assert!(!is_handed_on(
        |config| config.cohort_max_time(ms(0)),
        |lock| lock
    ));
}

#[test]
fn without_fencing_it_is_handed_on_as_well() {
    assert!(is_handed_on(|config| config.fencing(false), |lock| lock));
}

#[test]
fn a_lease_in_trouble_is_not_handed_on() {
    let world = world(3);
    let me = cohort(&world, 8, TTL);
    let first = acquire(&world, &me);
    let second = waiter(&world, &me);
    run(&world, ms(30));
    (0..2).for_each(|node| world.server(node).hang());
    run(&world, TTL * 2 / 3);
    assert!(first.is_held());
    drop(first);
    run(&world, ms(100));
    assert!(!second.has_ended());
    (0..2).for_each(|node| world.server(node).resume());
    assert!(finish(&world, &second, TTL * 4).is_held());
}

#[test]
fn each_holder_has_its_own_longest_time() {
    let world = world(3);
    let config = settings(&world, TTL).max_hold(TTL).cohort_max_time(TTL);
    let me = world.client(config).unwrap();
    let first = acquire(&world, &me);
    let second = waiter(&world, &me);
    run(&world, TTL / 2);
    drop(first);
    let second = finish(&world, &second, ms(10));
    run(&world, TTL - ms(50));
    assert!(second.is_held());
    run(&world, ms(100));
    assert_eq!(second.loss(), Some(Loss::MaxHold));
}

#[test]
fn a_ticket_carries_the_token_of_the_hold_that_it_was() {
    let world = world(3);
    let me = cohort(&world, 8, TTL);
    let first = acquire(&world, &me);
    let second = waiter(&world, &me);
    run(&world, ms(30));
    drop(first);
    let second = finish(&world, &second, ms(10));
    let token = second.fencing_token();
    let detached = world.spawn(me.0, second.detach());
    let ticket = finish(&world, &detached, ms(100)).unwrap();
    let client = me.1.clone();
    let attached = world.spawn(me.0, async move { client.attach(&ticket).await.unwrap() });
    let adopted = finish(&world, &attached, ms(100));
    assert_eq!(adopted.fencing_token(), token);
    // Nothing is known of the numbers behind it: it is released, and the next grant is a new one.
    let third = waiter(&world, &me);
    run(&world, ms(30));
    drop(adopted);
    assert!(finish(&world, &third, TTL).fencing_token() > token);
}

#[test]
fn a_cohort_does_not_forget_who_waits_while_it_holds() {
    let world = world(5);
    // Each cohort lasts for longer than what a release has brought is remembered.
    let (me, rival) = (
        cohort(&world, 1_000, ms(400)),
        cohort(&world, 1_000, ms(400)),
    );
    let busy: Vec<Task<()>> = (0..2)
        .map(|_| {
            let (lock, sleeper) = (me.1.lock(JOB).wait_forever(), world.clone());
            world.spawn(me.0, async move {
                loop {
                    let guard = lock.acquire().await.unwrap();
                    sleeper.sleep(ms(5)).await;
                    drop(guard);
                }
            })
        })
        .collect();
    run(&world, ms(500));
    // A first end of a cohort tells them of the newcomer, and the second one gives him his chance.
    let mut count = 0;
    for _ in 0..20 {
        if let Ok(guard) = acquiring(&world, &rival, ms(1_000)) {
            count += 1;
            drop(guard);
        }
        run(&world, ms(20));
    }
    busy.into_iter().for_each(Task::cancel);
    assert!(count >= 10, "{count} of 20");
}

#[test]
fn another_process_gets_its_turn_between_two_cohorts() {
    let world = world(5);
    let (me, rival) = (cohort(&world, 1_000, ms(50)), cohort(&world, 1_000, ms(50)));
    let busy: Vec<Task<()>> = (0..4)
        .map(|_| {
            let (lock, sleeper) = (me.1.lock(JOB).wait_forever(), world.clone());
            world.spawn(me.0, async move {
                loop {
                    let guard = lock.acquire().await.unwrap();
                    sleeper.sleep(ms(5)).await;
                    drop(guard);
                }
            })
        })
        .collect();
    run(&world, ms(500));
    let mut longest = Duration::ZERO;
    for _ in 0..10 {
        let began = world.elapsed();
        let guard = finish(&world, &waiter(&world, &rival), TTL * 10);
        longest = longest.max(world.elapsed() - began);
        drop(guard);
        run(&world, ms(20));
    }
    busy.into_iter().for_each(Task::cancel);
    assert!(longest < ms(1_000), "{longest:?}");
}
