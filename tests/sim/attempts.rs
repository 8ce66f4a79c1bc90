//! How often an acquisition asks, for how long, and what it says in the end.

use std::time::Duration;

use quorumlock::testing::world::{ProcessId, World};
use quorumlock::{AcquireError, Client, Config, Guard, Loss, ReleaseError, Released, RunError};

use crate::support::{
    JOB, acquire, acquiring, assert_clean, finish, ms, process, run, served, settings, world,
};

const TTL: Duration = ms(2_000);

/// A rival that holds the lock, and a process with these settings.
fn contended(config: fn(Config) -> Config) -> (World, Guard, (ProcessId, Client)) {
    let world = world(5);
    let rival = process(&world, TTL);
    let guard = acquire(&world, &rival);
    let me = world.client(config(settings(&world, TTL))).unwrap();
    (world, guard, me)
}

/// Acquires until it ends; the outcome and the time it took.
fn outcome(world: &World, me: &(ProcessId, Client)) -> (Result<Guard, AcquireError>, Duration) {
    let began = world.elapsed();
    let lock = me.1.lock(JOB);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let outcome = finish(world, &task, ms(60_000));
    (outcome, world.elapsed() - began)
}

fn rounds(outcome: Result<Guard, AcquireError>) -> u32 {
    match outcome {
        Err(AcquireError::Contended(attempt)) => attempt.rounds(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_attempt_is_one_round_and_no_wait() {
    let (world, guard, me) = contended(|config| config.retry_attempts(1).wait_forever());
    let (outcome, took) = outcome(&world, &me);
    assert_eq!(rounds(outcome), 1);
    // A connection, the round, and the question whose key it is: three round trips.
    assert!(took < ms(20), "{took:?}");
    drop(guard);
}

#[test]
fn four_attempts_are_four_rounds_with_no_sleep_after_the_last() {
    let (world, guard, me) = contended(|config| config.retry_attempts(4).wait_forever());
    let began = served(&world);
    let (outcome, took) = outcome(&world, &me);
    assert_eq!(rounds(outcome), 4);
    // Delays of at most 20, 40 and 80 ms lie between the four; a fourth would be up to 160 ms.
    assert!(took < ms(20 + 40 + 80 + 4 * 20), "{took:?}");
    assert!(served(&world) > began);
    drop(guard);
}

#[test]
fn a_wait_limit_ends_in_time_and_zero_makes_one_round() {
    let (world, guard, me) = contended(|config| config.wait(TTL));
    let (ended, took) = outcome(&world, &me);
    // It listens: one round finds the lock held, one begins to listen, one is the last.
    assert_eq!(rounds(ended), 3);
    let node_timeout = ms(100);
    assert!(took >= TTL && took <= TTL + node_timeout, "{took:?}");
    drop(guard);

    let (world, guard, me) = contended(|config| config.wait(Duration::ZERO));
    let (ended, took) = outcome(&world, &me);
    assert_eq!(rounds(ended), 1);
    assert!(took < ms(20), "{took:?}");
    drop(guard);
}

#[test]
fn one_that_waits_for_ever_is_served_when_the_lock_is_free() {
    let (world, guard, me) = contended(|config| config.wait_forever());
    let lock = me.1.lock(JOB);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    run(&world, TTL * 3);
    assert!(!task.has_ended());
    drop(guard);
    let freed = world.elapsed();
    let guard = finish(&world, &task, ms(10_000)).unwrap();
    // The longest delay between two rounds, and two rounds.
    assert!(world.elapsed() - freed < ms(500 + 200));
    assert!(guard.is_held());
}

#[test]
fn a_lock_that_ran_out_is_released_without_error_and_without_asking() {
    let world = world(5);
    let me = process(&world, TTL);
    let lock = me.1.lock(JOB).auto_extend(false);
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let guard = finish(&world, &task, ms(1_000)).unwrap();
    run(&world, TTL + TTL / 5);
    let rival = process(&world, TTL);
    let theirs = acquire(&world, &rival);
    let began = world.elapsed();
    let task = world.spawn(me.0, async move { guard.release().await });
    let released = finish(&world, &task, ms(1_000)).unwrap();
    assert_eq!(released, Released::AlreadyLost(Loss::Expired));
    assert_eq!(world.elapsed(), began);
    run(&world, ms(200));
    assert_eq!(world.cluster().holders(JOB), [5]);
    assert!(theirs.is_held());
}

#[test]
fn a_key_that_is_gone_from_two_nodes_is_a_plain_release_and_from_three_a_loss() {
    for (gone, expected) in [
        (2, Released::InTime),
        (3, Released::AlreadyLost(Loss::Deleted)),
    ] {
        let world = world(5);
        let me = process(&world, TTL);
        let guard = acquire(&world, &me);
        // What each of the five has done by now is the same.
        run(&world, ms(50));
        for node in 0..gone {
            world.server(node).delete(JOB);
        }
        let task = world.spawn(me.0, async move { guard.release().await });
        let released = finish(&world, &task, ms(1_000)).unwrap();
        assert_eq!(released, expected, "gone from {gone}");
        run(&world, ms(50));
        assert_clean(&world, "released");
    }
}

#[test]
fn a_release_that_no_quorum_answers_ends_within_its_budget() {
    let world = world(5);
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    for node in 0..3 {
        world.server(node).hang();
    }
    let began = world.elapsed();
    let task = world.spawn(me.0, async move { guard.release().await });
    let error = finish(&world, &task, ms(5_000)).unwrap_err();
    assert!(
        matches!(
            error,
            ReleaseError::Unconfirmed {
                confirmed: 2,
                needed: 3,
                nodes: 5
            }
        ),
        "{error}"
    );
    assert_eq!(world.elapsed() - began, ms(100));
    world.heal();
    run(&world, ms(200));
    assert_clean(&world, "after the nodes went on");
}

#[test]
fn the_works_own_result_is_what_run_returns_when_all_nodes_are_dark() {
    for fails in [false, true] {
        let world = world(5);
        let me = process(&world, TTL);
        let (lock, dark) = (me.1.lock(JOB), world.clone());
        let task = world.spawn(me.0, async move {
            let work = async |_held| {
                for node in 0..5 {
                    dark.server(node).hang();
                }
                if fails { Err("its own") } else { Ok(12) }
            };
            lock.run(work).await
        });
        match finish(&world, &task, ms(1_000)) {
            Ok(value) => assert!(!fails && value == 12),
            Err(RunError::Work(error)) => assert!(fails && error == "its own"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn work_under_a_lost_lock_is_stopped_and_told() {
    let world = world(5);
    let me = process(&world, TTL);
    let (lock, dark) = (me.1.lock(JOB), world.clone());
    let task = world.spawn(me.0, async move {
        let work = async |_held| {
            for node in 0..5 {
                dark.server(node).hang();
            }
            std::future::pending::<Result<(), ()>>().await
        };
        lock.run(work).await
    });
    match finish(&world, &task, TTL * 2) {
        Err(RunError::Lost { loss, output }) => {
            assert_eq!(loss, Loss::Expired);
            assert!(output.is_none());
        }
        other => panic!("{other:?}"),
    }
    assert!(world.elapsed() < TTL + ms(20), "{:?}", world.elapsed());
}

#[test]
fn a_single_try_finds_a_lock_whose_holder_died_free_after_its_ttl() {
    let world = world(3);
    let dead = process(&world, TTL);
    let guard = acquire(&world, &dead);
    world.freeze(dead.0, TTL * 10);
    let rival = process(&world, TTL);
    let early = acquiring(&world, &rival, Duration::ZERO);
    assert!(
        matches!(early, Err(AcquireError::Contended(_))),
        "{early:?}"
    );
    run(&world, TTL);
    assert!(acquiring(&world, &rival, Duration::ZERO).is_ok());
    assert!(!guard.is_held());
}

/// The second round fails as it begins, in a turn that has taken out the outcomes already.
#[test]
fn a_second_round_over_nodes_that_are_down_ends_as_it_begins() {
    let world = world(3);
    let config = settings(&world, TTL).retry_attempts(2).retry_delay(ms(20));
    let config = config.retry_jitter(quorumlock::Jitter::None).wait_forever();
    let me = world.client(config).unwrap();
    (0..3).for_each(|node| world.server(node).kill());
    let (first, _) = outcome(&world, &me);
    assert!(first.is_err());
    let (second, took) = outcome(&world, &me);
    assert!(matches!(second, Err(AcquireError::Unavailable(_))));
    assert_eq!(took, ms(20));
}

/// The first answer that is read after a standstill does not condemn those behind it.
#[test]
fn a_round_during_which_we_stood_still_counts_the_answers_that_are_there() {
    let world = world(5);
    let me = process(&world, TTL);
    drop(acquire(&world, &me));
    run(&world, ms(50));
    let lock = me.1.lock(JOB);
    let task = world.spawn(me.0, async move { lock.try_acquire().await });
    run(&world, ms(1));
    // Longer than the nodes have to answer, and shorter than the validity.
    world.freeze(me.0, ms(500));
    assert!(finish(&world, &task, TTL).is_ok());
}
