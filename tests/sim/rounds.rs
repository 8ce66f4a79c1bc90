//! When a round is decided, and what it says of each node.

use std::time::Duration;

use quorumlock::testing::world::{ProcessId, World};
use quorumlock::{AcquireError, Client, FaultKind, Guard, Vote};

use crate::support::{JOB, acquire, finish, ms, process, run, world};

const TTL: Duration = ms(3_000);

/// A process that has met all nodes.
fn warm(world: &World) -> (ProcessId, Client) {
    let me = process(world, TTL);
    let lock = me.1.lock("another");
    let task = world.spawn(me.0, async move { lock.acquire().await });
    drop(finish(world, &task, ms(1_000)).unwrap());
    run(world, ms(100));
    me
}

fn once(world: &World, me: &(ProcessId, Client)) -> Result<Guard, AcquireError> {
    let lock = me.1.lock(JOB);
    let task = world.spawn(me.0, async move { lock.try_acquire().await });
    finish(world, &task, ms(1_000))
}

/// Two of four nodes each: one of the two keeps its grants, and gets what the other takes back,
/// in the same round.
#[test]
fn a_split_vote_is_won_by_one_of_the_two_in_its_first_round() {
    let world = world(5);
    let rivals = [warm(&world), warm(&world)];
    world.server(4).kill();
    for (index, rival) in rivals.iter().enumerate() {
        for node in 0..4 {
            let latency = if node / 2 == index { ms(1) } else { ms(8) };
            world.link(rival.0, node).latency(latency, latency);
        }
    }
    run(&world, ms(100));
    let tasks = rivals.each_ref().map(|rival| {
        let lock = rival.1.lock(JOB);
        world.spawn(rival.0, async move { lock.try_acquire().await })
    });
    let tries = tasks.map(|task| finish(&world, &task, ms(1_000)));
    let won = tries.iter().filter(|tried| tried.is_ok()).count();
    assert_eq!(won, 1, "{tries:?}");
}

#[test]
fn a_node_that_was_not_waited_for_has_failed_in_nothing() {
    let world = world(5);
    let (rival, me) = (warm(&world), warm(&world));
    let _theirs = acquire(&world, &rival);
    run(&world, ms(50));
    let error = once(&world, &me).unwrap_err();
    let votes = error.attempt().unwrap().votes();
    assert!(matches!(votes[0].vote, Vote::Held { .. }), "{votes:?}");
    assert!(matches!(votes[4].vote, Vote::NotWaitedFor), "{votes:?}");
}

#[test]
fn a_grant_without_a_vote_is_named_as_what_it_is() {
    let world = world(5);
    let me = warm(&world);
    (0..3).for_each(|node| world.server(node).restart_empty());
    run(&world, ms(600));
    let error = once(&world, &me).unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    for (node, vote) in error.attempt().unwrap().votes().iter().enumerate() {
        let fault = (node < 3).then_some(FaultKind::Restarting);
        assert_eq!(vote.vote.fault(), fault, "{error}");
    }
}
