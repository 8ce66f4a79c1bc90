//! What a try costs that finds the lock held, while some nodes are bad.

use std::time::Duration;

use quorumlock::testing::world::World;
use quorumlock::{AcquireError, FaultKind};

use crate::support::{JOB, acquire, finish, ms, process, run, world};

const TTL: Duration = ms(3_000);

/// The setting `node_timeout` that goes with the TTL.
const NODE_TIMEOUT: Duration = ms(150);

/// A connection and a round, over the slowest node.
const PROMPT: Duration = ms(14);

/// How long each of the tries took.
fn tries(world: &World, me: &(usize, quorumlock::Client), count: u32) -> Vec<Duration> {
    let one = |_| {
        let began = world.elapsed();
        let lock = me.1.lock(JOB);
        let task = world.spawn(me.0, async move { lock.try_acquire().await });
        let tried = finish(world, &task, TTL);
        let took = world.elapsed() - began;
        let expected = |error: &AcquireError| {
            matches!(
                error,
                AcquireError::Contended(_) | AcquireError::Unavailable(_)
            )
        };
        assert!(tried.as_ref().is_err_and(expected), "{tried:?}");
        run(world, ms(100));
        took
    };
    (0..count).map(one).collect()
}

#[test]
fn a_try_that_finds_the_lock_held_waits_for_no_hanging_node() {
    for (nodes, hung) in [(3, 1), (5, 1), (5, 2)] {
        let world = world(nodes);
        let (rival, me) = (process(&world, TTL), process(&world, TTL));
        let guard = acquire(&world, &rival);
        run(&world, ms(50));
        for node in 0..hung {
            world.server(node).hang();
        }
        let tries = tries(&world, &me, 20);
        assert!(guard.is_held());
        assert!(
            tries.iter().all(|&took| took <= PROMPT),
            "{hung} of {nodes}: {tries:?}"
        );
    }
}

/// Where some nodes reject us, and a silent one may make them too many, it is waited for: once.
#[test]
fn a_try_that_some_nodes_reject_waits_for_a_hanging_node_until_it_is_known_to_hang() {
    for (nodes, rejecting) in [(3, 1), (5, 2)] {
        let world = world(nodes);
        let (rival, me) = (process(&world, TTL), process(&world, TTL));
        let guard = acquire(&world, &rival);
        run(&world, ms(50));
        for node in 0..rejecting {
            world
                .node(nodes - 1 - node)
                .fail_next(FaultKind::Permission, 10_000);
        }
        let healthy = tries(&world, &me, 3);
        world.server(0).hang();
        let hanging = tries(&world, &me, 30);
        assert!(healthy.iter().all(|&took| took <= PROMPT), "{healthy:?}");
        let (first, others) = hanging.split_first().unwrap();
        assert!(*first <= NODE_TIMEOUT + ms(10), "{first:?}");
        // Also while it is connected to again.
        assert!(others.iter().all(|&took| took <= PROMPT), "{hanging:?}");
        drop(guard);
    }
}
