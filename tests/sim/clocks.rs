//! What a standstill of ours costs that met no lease: nothing.

use std::time::Duration;

use quorumlock::{Client, Guard};

use quorumlock::testing::world::{ProcessId, World};

use crate::support::{JOB, acquire, finish, ms, run, settings, world};

const TTL: Duration = ms(3_000);

/// The virtual machine stands still: its clocks count nothing, those of the nodes do.
fn stand_still(world: &World) {
    for node in 0..world.nodes() {
        world.server(node).step_forward(TTL * 4);
    }
}

#[test]
fn without_tokens_a_standstill_before_the_grant_costs_nothing_either() {
    let world = world(5);
    let config = settings(&world, TTL).fencing(false);
    let me = world.client(config).unwrap();
    let guard = acquire(&world, &me);
    // Its extensions bring the nodes' time, its grant does not.
    run(&world, TTL);
    drop(guard);
    run(&world, ms(50));
    stand_still(&world);
    let guard = acquire(&world, &me);
    run(&world, TTL * 2);
    assert_eq!(guard.loss(), None, "{}", world.log());
}

#[test]
fn two_locks_taken_together_after_a_standstill_cost_no_node_its_vote() {
    let world = world(5);
    let me = world.client(settings(&world, TTL)).unwrap();
    drop(acquire(&world, &me));
    run(&world, ms(50));
    stand_still(&world);
    let guards = together(&world, &me);
    run(&world, TTL);
    let votes = votes(&world, &me);
    assert_eq!(votes, 5, "{}", world.log());
    assert!(guards.iter().all(Guard::is_held));
}

/// Two locks, asked for at one moment.
fn together(world: &World, me: &(ProcessId, Client)) -> [Guard; 2] {
    let tasks = [JOB, "other"].map(|name| {
        let lock = me.1.lock(name);
        world.spawn(me.0, async move { lock.acquire().await })
    });
    tasks.map(|task| finish(world, &task, ms(1_000)).unwrap())
}

fn votes(world: &World, me: &(ProcessId, Client)) -> usize {
    let client = me.1.clone();
    let task = world.spawn(me.0, async move { client.nodes().await });
    let nodes = finish(world, &task, ms(100));
    nodes.iter().filter(|node| node.votes()).count()
}
