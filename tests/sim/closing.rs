//! The end of a client that holds locks, on nodes of every speed.

use std::time::Duration;

use quorumlock::{AcquireError, CloseError, Guard, Loss};

use crate::support::{JOB, finish, ms, process, run, world};

const TTL: Duration = ms(30_000);
const LOCKS: usize = 50;

/// Holds some locks, closes the client, and tells how that ended and how long it took. Each node
/// answers after its part of `trips`, or never.
fn close(trips: [Option<u64>; 5]) -> (Result<(), CloseError>, Duration) {
    let world = world(5);
    let (me, client) = process(&world, TTL);
    let taken = client.clone();
    let task = world.spawn(me, async move {
        let mut guards: Vec<Guard> = Vec::new();
        for index in 0..LOCKS {
            guards.push(taken.lock(format!("{JOB}{index}")).acquire().await?);
        }
        Ok::<_, AcquireError>(guards)
    });
    let guards = finish(&world, &task, ms(3_000)).expect("free locks");
    run(&world, ms(100));
    for (node, trip) in trips.into_iter().enumerate() {
        match trip {
            Some(trip) => world.server(node).latency(ms(trip / 2), ms(trip / 2)),
            None => world.server(node).hang(),
        }
    }
    let began = world.elapsed();
    let task = world.spawn(me, async move { client.close().await });
    let outcome = finish(&world, &task, TTL);
    let took = world.elapsed() - began;
    assert!(
        guards
            .iter()
            .all(|guard| guard.loss() == Some(Loss::Closed))
    );
    world.end();
    (outcome, took)
}

#[test]
fn a_close_takes_its_time_while_nodes_answer() {
    // Three answer after its second, but nobody is silent for one; all after a node's budget.
    let trips = [800, 800, 1_600, 2_300, 2_300].map(Some);
    let (outcome, took) = close(trips);
    assert!(outcome.is_ok(), "{outcome:?} after {took:?}");
    assert!(took > ms(2_000) && took < ms(2_500), "{took:?}");
}

#[test]
fn a_close_does_not_wait_for_nodes_that_say_nothing() {
    let (outcome, took) = close([None, None, None, Some(4), Some(4)]);
    assert_eq!(outcome.map_err(|error| error.unconfirmed()), Err(LOCKS));
    assert!(took < ms(1_500), "{took:?}");
    let (outcome, took) = close([None, None, Some(4), Some(4), Some(4)]);
    assert!(outcome.is_ok(), "{outcome:?} after {took:?}");
    assert!(took < ms(1_500), "{took:?}");
}

#[test]
fn those_who_wait_hear_at_once_that_the_client_is_closed() {
    let world = world(3);
    let (rival, me) = (process(&world, TTL), process(&world, TTL));
    let lock = rival.1.lock(JOB);
    let task = world.spawn(rival.0, async move { lock.acquire().await });
    let theirs = finish(&world, &task, ms(1_000)).unwrap();
    let wait = || {
        let lock = me.1.lock(JOB).wait_forever();
        world.spawn(me.0, async move { lock.acquire().await })
    };
    let waiting = [wait(), wait()];
    let other = me.1.lock("another");
    let task = world.spawn(me.0, async move { other.acquire().await });
    let other = finish(&world, &task, ms(1_000)).unwrap();
    run(&world, ms(50));
    // So that the client has long to wait for what it lets go.
    (0..3).for_each(|node| world.server(node).hang());
    let client = me.1.clone();
    let closed = world.spawn(me.0, async move { client.close().await });
    for waiter in &waiting {
        let told = finish(&world, waiter, ms(10));
        assert!(matches!(told, Err(AcquireError::Closed)), "{told:?}");
    }
    assert!(!closed.has_ended());
    assert!(finish(&world, &closed, TTL).is_err());
    drop((theirs, other));
}
