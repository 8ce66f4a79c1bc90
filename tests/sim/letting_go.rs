//! How a hold ends, by a release or by itself.

use std::time::Duration;

use quorumlock::testing::world::World;
use quorumlock::{AcquireError, Released};

use crate::support::{JOB, acquire, assert_clean, finish, ms, process, run, settings, world};

const TTL: Duration = ms(3_000);

/// The slowest node's round trip in the world of the scenarios.
const TRIP: Duration = ms(7);

/// Up to as many nodes as a quorum can spare are hung or killed, at the acquisition or after it:
/// what the others say is a whole answer, and nobody waits for the rest.
#[test]
fn a_release_takes_one_round_trip_whatever_becomes_of_a_minority() {
    for (nodes, bad) in [(3, 0), (3, 1), (5, 0), (5, 1), (5, 2)] {
        for (kills, first) in [(false, false), (false, true), (true, false), (true, true)] {
            let world = world(nodes);
            let spoil = || {
                for node in 0..bad {
                    match kills {
                        true => world.server(node).kill(),
                        false => world.server(node).hang(),
                    }
                }
            };
            let me = process(&world, TTL);
            if first {
                spoil();
            }
            let guard = acquire(&world, &me);
            run(&world, ms(50));
            if !first {
                spoil();
            }
            let what = format!("{bad} of {nodes}, kills: {kills}, before: {first}");
            assert_prompt(&world, me.0, guard, &what);
        }
    }
}

/// A quorum has the key, the others refused it.
#[test]
fn a_release_of_keys_on_a_bare_quorum_takes_one_round_trip() {
    let world = world(5);
    for node in 0..2 {
        world.server(node).overwrite(JOB, &"ab".repeat(20), TTL * 9);
    }
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    assert_prompt(&world, me.0, guard, "two refused");
}

/// Two nodes are far away: their grants come when the lock has long been let go, and are undone
/// by the releases behind them.
#[test]
fn a_release_waits_for_no_late_grant() {
    let world = world(5);
    for node in 3..5 {
        world.server(node).latency(ms(70), ms(70));
    }
    let me = process(&world, TTL);
    let guard = acquire(&world, &me);
    assert_prompt(&world, me.0, guard, "two are late");
    run(&world, ms(800));
    assert_clean(&world, "after the late grants");
}

fn assert_prompt(world: &World, me: usize, guard: quorumlock::Guard, what: &str) {
    let began = world.elapsed();
    let task = world.spawn(me, async move { guard.release().await });
    let released = finish(world, &task, TTL);
    let took = world.elapsed() - began;
    assert_eq!(released.unwrap(), Released::InTime, "{what}");
    assert!(took <= TRIP, "{what}: {took:?}\n{}", world.log());
}

/// A release that no node hears is owed for as long as the key may be there.
#[test]
fn a_release_is_owed_for_as_long_as_the_key_was_extended_by_hand() {
    let world = world(5);
    let config = settings(&world, TTL).max_ttl(TTL * 10);
    let me = world.client(config).unwrap();
    let guard = acquire(&world, &me);
    let task = world.spawn(
        me.0,
        async move { (guard.extend_to(TTL * 10).await, guard) },
    );
    let (extended, guard) = finish(&world, &task, ms(500));
    extended.unwrap();
    let links: Vec<_> = (0..5).map(|node| world.server(node)).collect();
    links.iter().for_each(|server| server.kill());
    run(&world, ms(100));
    let task = world.spawn(me.0, async move { guard.release().await });
    assert!(finish(&world, &task, TTL).is_err());
    run(&world, TTL * 2);
    links.iter().for_each(|server| server.restart_with_data());
    run(&world, TTL);
    assert_clean(&world, "back after two TTLs of the lock");
}

/// The word of the end is due a millisecond before it: here, before the grant is there.
#[test]
fn a_hold_of_a_millisecond_ends_and_leaves_nothing() {
    let world = world(5);
    for node in 0..5 {
        let latency = Duration::from_micros(100);
        world.server(node).latency(latency, latency);
    }
    let me = process(&world, TTL);
    let lock = me.1.lock(JOB).max_hold(ms(1));
    let task = world.spawn(me.0, async move { lock.acquire().await });
    let held = finish(&world, &task, ms(1_000));
    assert!(matches!(held, Err(AcquireError::TooSlow(_))), "{held:?}");
    run(&world, ms(100));
    assert_clean(&world, "after the hold");
}
