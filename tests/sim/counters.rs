//! Fencing counters that differ from node to node, since the nodes' clocks do.

use std::time::Duration;

use quorumlock::Guard;
use quorumlock::testing::world::{ProcessId, World};

use crate::support::{JOB, finish, ms, process, run, world};

const TTL: Duration = ms(3_000);

/// Connects, so that what follows is rounds alone.
fn warm(world: &World) -> (ProcessId, quorumlock::Client) {
    let me = process(world, TTL);
    let lock = me.1.lock("another");
    let task = world.spawn(me.0, async move { lock.acquire().await });
    drop(finish(world, &task, ms(1_000)).unwrap());
    run(world, ms(50));
    me
}

/// One round, and how long it took.
fn once(world: &World, me: &(ProcessId, quorumlock::Client)) -> (Guard, Duration) {
    let lock = me.1.lock(JOB);
    let began = world.elapsed();
    let task = world.spawn(me.0, async move { lock.try_acquire().await });
    let guard = finish(world, &task, ms(1_000)).expect("one round is enough");
    (guard, world.elapsed() - began)
}

/// No two replies are one, so the lowest are raised, in a second trip of the same round.
#[test]
fn counters_that_differ_everywhere_cost_one_more_trip_and_no_more() {
    let world = world(3);
    let me = warm(&world);
    for node in 0..3 {
        // One node's second is no other's, and all are within reach of each other.
        world.server(node).step_forward(ms(1_100) * node as u32);
    }
    let (first, took) = once(&world, &me);
    let token = first.fencing_token();
    assert!(took > ms(7) && took < ms(14), "{took:?}");
    drop(first);
    run(&world, ms(50));
    let (second, _) = once(&world, &me);
    assert!(second.fencing_token() > token);
}

/// Two clocks are an hour ahead, and their nodes are the nearest: what they say is out of reach
/// for the others, which agree without them.
#[test]
fn counters_an_hour_ahead_do_not_decide() {
    let world = world(5);
    let me = warm(&world);
    for node in 0..2 {
        world.server(node).step_forward(ms(3_600_000));
    }
    let (guard, took) = once(&world, &me);
    assert!(took < ms(14), "{took:?}");
    assert!(guard.is_held());
}
