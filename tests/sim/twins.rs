//! One server under two addresses (P11).

use std::time::Duration;

use quorumlock::testing::world::World;
use quorumlock::{AcquireError, FaultKind};

use crate::support::{JOB, acquire, finish, ms, process, run};

const TTL: Duration = ms(3_000);

/// The last of the five is the first.
#[test]
fn the_second_address_of_a_server_is_not_asked_and_named_as_what_it_is() {
    let world = World::with_twins(1, 5, true);
    let (rival, me) = (process(&world, TTL), process(&world, TTL));
    let guard = acquire(&world, &rival);
    run(&world, ms(50));
    let lock = me.1.lock(JOB);
    let mut tries = Vec::new();
    // The first meets the nodes.
    for _ in 0..2 {
        let lock = lock.clone();
        let task = world.spawn(me.0, async move { lock.try_acquire().await });
        tries.push(finish(&world, &task, TTL));
        run(&world, ms(50));
    }
    match tries.pop().unwrap() {
        Err(AcquireError::Contended(attempt)) => {
            let last = &attempt.votes()[4].vote;
            assert_eq!(last.fault(), Some(FaultKind::Duplicate), "{last:?}");
        }
        other => panic!("{other:?}"),
    }
    let task = world.spawn(me.0, async move { me.1.nodes().await });
    let nodes = finish(&world, &task, ms(100));
    let why = nodes[4].state().why().expect("a reason").to_string();
    assert!(why.contains("the same server as"), "{why}");
    assert!(nodes[..4].iter().all(|node| node.votes()), "{nodes:?}");
    assert!(guard.is_held());
}
