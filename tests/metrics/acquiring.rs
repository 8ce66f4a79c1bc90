//! Acquisitions, rounds, and waiting.

use std::pin::pin;

use futures::executor::block_on;
use futures::future::FutureExt;
use quorumlock::testing::Cluster;
use quorumlock::{AcquireError, FaultKind, RestartGuard};

use super::ear::Meters;
use super::{MS, TTL, client, still};

fn acquires(outcome: &str) -> String {
    format!("quorumlock_acquires_total{{outcome={outcome}}}")
}

fn rounds(outcome: &str) -> String {
    format!("quorumlock_rounds_total{{outcome={outcome}}}")
}

const WAITERS: &str = "quorumlock_waiters";

#[test]
fn each_outcome_of_an_acquisition_is_counted_once() {
    let meters = Meters::start();
    let (_, cluster) = still();
    let one = client(&cluster, |config| config);
    let lock = one.lock("job");
    let guard = block_on(lock.acquire()).unwrap();
    assert!(block_on(lock.try_acquire()).is_err());
    {
        let waiting = pin!(lock.acquire());
        assert!(waiting.now_or_never().is_none());
    }
    meters.comes_to(&acquires("cancelled"), 1.0);
    block_on(guard.release()).unwrap();

    (0..3).for_each(|node| cluster.node(node).fail_with(FaultKind::Permission));
    let rejected = block_on(lock.acquire()).unwrap_err();
    assert!(matches!(rejected, AcquireError::Rejected(_)), "{rejected}");
    (0..3).for_each(|node| cluster.node(node).fail_with(FaultKind::OutOfMemory));
    let dark = block_on(lock.try_acquire()).unwrap_err();
    assert!(matches!(dark, AcquireError::Unavailable(_)), "{dark}");
    (0..3).for_each(|node| cluster.node(node).heal());

    let guard = block_on(lock.acquire()).unwrap();
    let mut waiting = Box::pin(lock.acquire());
    assert!((&mut waiting).now_or_never().is_none());
    meters.comes_to(WAITERS, 1.0);
    block_on(one.close()).unwrap();
    assert!(matches!(block_on(waiting), Err(AcquireError::Closed)));
    drop(guard);

    for (outcome, count) in [
        ("granted", 2.0),
        ("contended", 1.0),
        ("unavailable", 1.0),
        ("rejected", 1.0),
        ("too_slow", 0.0),
        ("cancelled", 1.0),
        ("closed", 1.0),
    ] {
        assert_eq!(meters.value(&acquires(outcome)), count, "{outcome}");
    }
    assert_eq!(meters.value(WAITERS), 0.0);
    // Nobody asked for what a guard of the same client holds: one round for the single try.
    assert_eq!(meters.value(&rounds("granted")), 2.0);
    assert_eq!(meters.value(&rounds("contended")), 1.0);
    assert_eq!(meters.value(&rounds("unavailable")), 1.0);
    assert_eq!(meters.value(&rounds("rejected")), 1.0);
}

#[test]
fn a_grant_that_comes_too_late_is_counted_as_too_slow() {
    let meters = Meters::start();
    let cluster = Cluster::new(3);
    let slow = client(&cluster, |config| {
        config.min_validity(2_900 * MS).node_timeout(1_000 * MS)
    });
    cluster.nodes().iter().for_each(|node| node.delay(50 * MS));
    let error = block_on(slow.lock("job").try_acquire()).unwrap_err();
    assert!(matches!(error, AcquireError::TooSlow(_)), "{error}");
    assert_eq!(meters.value(&acquires("too_slow")), 1.0);
    assert_eq!(meters.value(&rounds("too_slow")), 1.0);
    assert_eq!(meters.value(&acquires("granted")), 0.0);
}

/// By a clock that stands still but for what the test moves it by.
#[test]
fn waits_and_holds_are_counted_to_the_millisecond() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let one = client(&cluster, |config| config.auto_extend(false));
    let lock = one.lock("job");
    let first = block_on(lock.acquire()).unwrap();
    meters.comes_to("quorumlock_held_locks", 1.0);
    let mut second = Box::pin(lock.acquire());
    assert!((&mut second).now_or_never().is_none());
    meters.comes_to(WAITERS, 1.0);
    clock.advance(250 * MS);
    block_on(first.release()).unwrap();
    let second = block_on(second).unwrap();
    assert_eq!(
        meters.values("quorumlock_acquire_wait_seconds"),
        [0.0, 0.25]
    );
    assert_eq!(meters.values("quorumlock_acquire_rounds"), [1.0, 1.0]);
    clock.advance(500 * MS);
    block_on(second.release()).unwrap();
    assert_eq!(meters.values("quorumlock_hold_seconds"), [0.25, 0.5]);
    assert_eq!(meters.value("quorumlock_held_locks"), 0.0);
    assert_eq!(meters.value("quorumlock_handoffs_total"), 0.0);
    assert_eq!(meters.value(WAITERS), 0.0);
}

#[test]
fn a_lock_that_is_handed_on_takes_no_round() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let one = client(&cluster, |config| config);
    let lock = one.lock("job");
    let first = block_on(lock.acquire()).unwrap();
    let mut second = Box::pin(lock.acquire());
    assert!((&mut second).now_or_never().is_none());
    meters.comes_to(WAITERS, 1.0);
    clock.advance(10 * MS);
    block_on(first.release()).unwrap();
    drop(block_on(second).unwrap());
    assert_eq!(meters.value("quorumlock_handoffs_total"), 1.0);
    assert_eq!(meters.values("quorumlock_acquire_rounds"), [1.0, 0.0]);
    assert_eq!(meters.wait_for("quorumlock_hold_seconds", 2), [0.01, 0.0]);
    assert_eq!(meters.value(&rounds("granted")), 1.0);
}

/// The decision falls at the third grant; the margin is what the others add.
#[test]
fn the_margin_of_a_grant_is_what_its_nodes_have_above_the_quorum() {
    let meters = Meters::start();
    let (_, cluster) = still();
    let one = client(&cluster, |config| config);
    for (down, margin) in [(0, 2), (1, 1), (2, 0)] {
        (0..down).for_each(|node| cluster.node(node).fail_with(FaultKind::OutOfMemory));
        drop(block_on(one.lock("job").acquire()).unwrap());
        meters.comes_to(&format!("quorumlock_grants_total{{margin={margin}}}"), 1.0);
    }
    for margin in 0..3 {
        let count = meters.value(&format!("quorumlock_grants_total{{margin={margin}}}"));
        assert_eq!(count, 1.0, "{margin}");
    }
}

/// A node without a vote has none for the margin, either.
#[test]
fn a_node_without_a_vote_adds_nothing_to_the_margin() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let one = client(&cluster, |config| {
        config.restart_guard(RestartGuard::Strict)
    });
    drop(block_on(one.lock("job").acquire()).unwrap());
    meters.comes_to("quorumlock_grants_total{margin=2}", 1.0);
    cluster.node(0).restart_empty();
    clock.advance(MS);
    let state = "quorumlock_node_state{node=memory-1:6379,state=restarting}";
    for _ in 0..100 {
        if meters.value(state) == 1.0 {
            break;
        }
        drop(block_on(one.lock("other").acquire()).unwrap());
        clock.advance(20 * MS);
    }
    meters.comes_to(state, 1.0);
    let before = meters.value("quorumlock_grants_total{margin=1}");
    drop(block_on(one.lock("job").acquire()).unwrap());
    meters.comes_to("quorumlock_grants_total{margin=1}", before + 1.0);
    // Nothing happens, and the node has its vote again.
    clock.advance(70_000 * MS);
    meters.comes_to(state, 0.0);
    meters.comes_to("quorumlock_node_state{node=memory-1:6379,state=ready}", 1.0);
}

#[test]
fn counters_that_differ_take_a_second_trip() {
    let meters = Meters::start();
    let (_, cluster) = still();
    let one = client(&cluster, |config| config);
    let lock = one.lock("job");
    let trips = "quorumlock_fencing_second_trips_total";
    drop(block_on(one.lock("connect").acquire()).unwrap());
    meters.comes_to("quorumlock_grants_total{margin=2}", 1.0);
    // No hint with the release, either.
    for node in [3, 4] {
        cluster.node(node).fail_with(FaultKind::Permission);
    }
    let guard = block_on(lock.acquire()).unwrap();
    block_on(guard.release()).unwrap();
    assert_eq!(meters.value(trips), 0.0);
    for node in [3, 4] {
        cluster.node(node).heal();
    }
    for node in [0, 1] {
        cluster.node(node).fail_with(FaultKind::OutOfMemory);
    }
    let guard = block_on(lock.try_acquire()).unwrap();
    drop(guard);
    assert_eq!(meters.value(trips), 1.0);
}

/// Three of five hang, the round is given up, and then they grant.
#[test]
fn grants_after_the_end_of_their_round_are_counted() {
    let meters = Meters::start();
    let cluster = Cluster::new(5);
    let one = client(&cluster, |config| config.node_timeout(150 * MS));
    drop(block_on(one.lock("first").acquire()).unwrap());
    (0..3).for_each(|node| cluster.node(node).hang());
    let error = block_on(one.lock("job").try_acquire()).unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    assert_eq!(meters.value("quorumlock_late_grants_released_total"), 0.0);
    (0..3).for_each(|node| cluster.node(node).resume());
    meters.comes_to("quorumlock_late_grants_released_total", 3.0);
    let gone = || cluster.copies("job") == 0;
    while !gone() {
        std::thread::sleep(MS);
    }
    assert!(TTL > 150 * MS);
}
