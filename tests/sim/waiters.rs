//! Those who wait: in order inside one process, and served in time across processes.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quorumlock::AcquireError;
use quorumlock::testing::world::World;

use crate::support::{
    JOB, acquire, acquiring, finish, ms, process, restart_delay, run, served, time_left, world,
};

const TTL: Duration = ms(2_000);

#[test]
fn the_same_client_twice_is_told_that_it_waits_for_itself() {
    let world = world(5);
    let me = process(&world, TTL);
    let outer = acquire(&world, &me);
    for wait in [TTL / 2, Duration::ZERO] {
        let began = world.elapsed();
        match acquiring(&world, &me, wait).unwrap_err() {
            AcquireError::Contended(attempt) => assert!(attempt.is_held_here()),
            other => panic!("{other}"),
        }
        let took = world.elapsed() - began;
        assert!(took >= wait && took <= wait + ms(100), "{took:?}");
    }
    assert!(outer.is_held());
    assert_eq!(world.cluster().holders(JOB), [5]);
    assert!(time_left(&world).iter().all(Option::is_some));
}

#[test]
fn another_client_is_not_told_that_it_waits_for_itself() {
    let world = world(5);
    let (me, other) = (process(&world, TTL), process(&world, TTL));
    let _outer = acquire(&world, &me);
    match acquiring(&world, &other, Duration::ZERO).unwrap_err() {
        AcquireError::Contended(attempt) => assert!(!attempt.is_held_here()),
        error => panic!("{error}"),
    }
}

#[test]
fn the_next_of_the_same_client_gets_the_lock_as_soon_as_it_is_let_go() {
    let world = world(5);
    let me = process(&world, TTL);
    let outer = acquire(&world, &me);
    let lock = me.1.lock(JOB);
    let inner = world.spawn(me.0, async move { lock.acquire().await });
    run(&world, TTL);
    assert!(!inner.has_ended());
    // While it waits for its own process, it asks nobody: only extensions go out.
    let before = served(&world);
    run(&world, TTL / 4);
    assert!(served(&world) - before <= 5, "{}", world.log());
    drop(outer);
    let freed = world.elapsed();
    let inner = finish(&world, &inner, ms(1_000)).unwrap();
    assert!(world.elapsed() - freed < ms(10), "{:?}", world.elapsed());
    assert!(inner.is_held());
}

#[test]
fn tasks_of_one_client_are_served_in_the_order_in_which_they_came() {
    let world = world(3);
    let me = process(&world, TTL);
    let order = Rc::new(RefCell::new(Vec::new()));
    let tasks: Vec<_> = (0..6)
        .map(|number| {
            let (lock, order, sleeper) = (me.1.lock(JOB), Rc::clone(&order), world.clone());
            world.spawn(me.0, async move {
                let guard = lock.acquire().await.unwrap();
                order.borrow_mut().push(number);
                sleeper.sleep(ms(30)).await;
                drop(guard);
            })
        })
        .collect();
    for task in &tasks {
        finish(&world, task, ms(10_000));
    }
    assert_eq!(*order.borrow(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_waiter_that_leaves_hands_its_place_on() {
    let world = world(3);
    let me = process(&world, TTL);
    let outer = acquire(&world, &me);
    let wait = || {
        let lock = me.1.lock(JOB).wait_forever();
        world.spawn(me.0, async move { lock.acquire().await })
    };
    let (first, second) = (wait(), wait());
    run(&world, ms(50));
    first.cancel();
    drop(outer);
    assert!(finish(&world, &second, ms(1_000)).is_ok());
}

/// As above, where nobody of this client holds the lock and the first is the one that asks.
#[test]
fn a_waiter_that_leaves_in_the_midst_of_its_rounds_hands_its_place_on() {
    let world = world(3);
    let (rival, me) = (process(&world, TTL), process(&world, TTL));
    let theirs = acquire(&world, &rival);
    let wait = || {
        let lock = me.1.lock(JOB).wait_forever();
        world.spawn(me.0, async move { lock.acquire().await })
    };
    let (first, second) = (wait(), wait());
    run(&world, ms(50));
    first.cancel();
    run(&world, ms(50));
    drop(theirs);
    assert!(finish(&world, &second, ms(1_000)).is_ok());
}

/// Processes that take turns, each three times; the time until all are served.
fn take_turns(world: &World, processes: usize) -> Duration {
    let began = world.elapsed();
    let tasks: Vec<_> = (0..processes)
        .map(|_| {
            let me = process(world, TTL);
            let (lock, sleeper) = (me.1.lock(JOB).wait_forever(), world.clone());
            world.spawn(me.0, async move {
                for _ in 0..3 {
                    let guard = lock.acquire().await.unwrap();
                    sleeper.sleep(ms(20)).await;
                    drop(guard);
                }
            })
        })
        .collect();
    for task in &tasks {
        finish(world, task, ms(60_000));
    }
    world.elapsed() - began
}

#[test]
fn processes_that_contend_are_all_served() {
    let world = world(5);
    let took = take_turns(&world, 8);
    // 24 holds of 20 ms; a waiter sleeps for half a second at most between two tries.
    assert!(took < ms(24 * (20 + 500)), "{took:?}");
}

#[test]
fn a_waiter_is_served_soon_after_a_quorum_is_back() {
    let world = world(5);
    for node in 0..3 {
        world.server(node).kill();
    }
    let me = process(&world, TTL);
    let lock = me.1.lock(JOB).wait_forever();
    let task = world.spawn(me.0, async move { lock.acquire().await });
    run(&world, ms(5_000));
    assert!(!task.has_ended());
    world.server(0).restart_with_data();
    let healed = world.elapsed();
    assert!(finish(&world, &task, ms(20_000)).is_ok());
    // The restarted node is reconnected to within half a second; the longest delay between two
    // rounds is as long.
    let bound = restart_delay(TTL) + ms(500 + 500 + 200);
    let took = world.elapsed() - healed;
    assert!(took < bound, "{took:?}\n{}", world.log());
}
