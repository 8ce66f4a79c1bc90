//! What the scenarios share.

use std::time::Duration;

use quorumlock::testing::world::{ProcessId, Task, World};
use quorumlock::{AcquireError, Client, Config, Guard};

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The resource of every scenario.
pub const JOB: &str = "job";

/// A world of `nodes` servers. Each crossing of the network takes 2 ms, and a little more for each
/// server, so that no two answers come in one step.
pub fn world(nodes: usize) -> World {
    let world = World::logged(1, nodes);
    for node in 0..nodes {
        let latency = ms(2) + Duration::from_micros(300) * node as u32;
        world.server(node).latency(latency, latency);
    }
    world
}

/// Settings with this TTL, which is also the longest.
pub fn settings(world: &World, ttl: Duration) -> Config {
    world.cluster().config().ttl(ttl).max_ttl(ttl)
}

/// When a node that has restarted has a vote again: max_ttl and its drift in whole seconds, and
/// one more.
pub fn restart_delay(max_ttl: Duration) -> Duration {
    Duration::from_secs(max_ttl.mul_f64(1.01).as_secs_f64().ceil() as u64 + 1)
}

/// A process with this TTL.
pub fn process(world: &World, ttl: Duration) -> (ProcessId, Client) {
    world.client(settings(world, ttl)).unwrap()
}

/// Acquires in the process, and waits for it.
pub fn acquire(world: &World, who: &(ProcessId, Client)) -> Guard {
    acquiring(world, who, ms(10_000)).unwrap()
}

/// Acquires in the process within `wait`.
pub fn acquiring(
    world: &World,
    who: &(ProcessId, Client),
    wait: Duration,
) -> Result<Guard, AcquireError> {
    let lock = who.1.lock(JOB).wait(wait);
    let task = world.spawn(who.0, async move { lock.acquire().await });
    finish(world, &task, wait + ms(10_000))
}

/// Runs the world until the task has ended.
pub fn finish<T>(world: &World, task: &Task<T>, limit: Duration) -> T {
    match world.run_until(task, limit) {
        Ok(output) => output,
        Err(error) => panic!("{error}\n{}", world.log()),
    }
}

/// Lets the world run for `span`.
pub fn run(world: &World, span: Duration) {
    if let Err(error) = world.run_for(span) {
        panic!("{error}\n{}", world.log());
    }
}

/// How many requests the servers have carried out.
pub fn served(world: &World) -> u64 {
    (0..world.nodes())
        .map(|node| world.server(node).served())
        .sum()
}

/// How much has happened at the servers and on their connections.
pub fn events(world: &World) -> u64 {
    (0..world.nodes())
        .map(|node| world.server(node).events())
        .sum()
}

/// What the lock's key has left on each server.
pub fn time_left(world: &World) -> Vec<Option<Duration>> {
    (0..world.nodes())
        .map(|node| world.server(node).time_left(JOB))
        .collect()
}

/// Nothing of the lock is on any server.
#[track_caller]
pub fn assert_clean(world: &World, when: &str) {
    let holders = world.cluster().holders(JOB);
    assert!(holders.is_empty(), "{when}: {holders:?}\n{}", world.log());
}
