//! Nodes: their answers, their failures, where they stand; and what goes to them in one piece.

#[path = "../support/mod.rs"]
mod support;

use futures::executor::block_on;
use quorumlock::testing::Cluster;
use quorumlock::{AcquireError, Client, Config, FaultKind, RestartGuard};

use super::ear::Meters;
use super::{MS, client, still};

fn state(node: usize, state: &str) -> String {
    format!("quorumlock_node_state{{node=memory-{node}:6379,state={state}}}")
}

fn failures(node: usize, kind: &str) -> String {
    format!("quorumlock_node_failures_total{{kind={kind},node=memory-{node}:6379}}")
}

/// F19: during contention with one node down, whoever scrapes can tell waiting, holding,
/// contention, and the failures of that node.
#[test]
fn contention_with_a_node_down_can_be_counted() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let holder = client(&cluster, |config| config.auto_extend(false));
    let rival = client(&cluster, |config| config);
    drop(block_on(holder.lock("warm-up").acquire()).unwrap());
    drop(block_on(rival.lock("warm-up-too").acquire()).unwrap());
    meters.comes_to("quorumlock_held_locks", 0.0);
    let held = meters.wait_for("quorumlock_hold_seconds", 2).len();
    cluster.node(1).kill();
    meters.comes_to(&state(2, "down"), 2.0);

    let guard = block_on(holder.lock("job").acquire()).unwrap();
    for _ in 0..3 {
        let refused = block_on(rival.lock("job").try_acquire()).unwrap_err();
        assert!(matches!(refused, AcquireError::Contended(_)), "{refused}");
    }
    clock.advance(700 * MS);
    block_on(guard.release()).unwrap();
    drop(block_on(rival.lock("job").try_acquire()).unwrap());

    assert_eq!(
        meters.value("quorumlock_acquires_total{outcome=contended}"),
        3.0
    );
    assert_eq!(
        meters.value("quorumlock_acquires_total{outcome=granted}"),
        4.0
    );
    let waits = meters.values("quorumlock_acquire_wait_seconds");
    assert_eq!(waits, [0.0; 4]);
    assert_eq!(meters.values("quorumlock_hold_seconds")[held], 0.7);
    // Each of the five rounds since found it down; what else went there was owed, or not sent.
    meters.comes_to("quorumlock_grants_total{margin=1}", 2.0);
    assert!(meters.value(&failures(2, "connection_refused")) >= 5.0);
    for node in [1, 3, 4, 5] {
        assert_eq!(meters.value(&state(node, "ready")), 2.0);
        assert!(
            !meters
                .series()
                .contains(&failures(node, "connection_refused"))
        );
    }
}

#[test]
fn a_round_trip_counts_from_the_start_of_the_round_to_the_answer() {
    let meters = Meters::start();
    let cluster = Cluster::new(3);
    let one = client(&cluster, |config| config.node_timeout(1_000 * MS));
    drop(block_on(one.lock("first").acquire()).unwrap());
    let series = |node| format!("quorumlock_node_round_trip_seconds{{node=memory-{node}:6379}}");
    (1..=3).for_each(|node| drop(meters.wait_for(&series(node), 1)));
    cluster.node(2).delay(30 * MS);
    drop(block_on(one.lock("job").acquire()).unwrap());
    // The round was decided without it, and its answer counts all the same.
    let slow = meters.wait_for(&series(3), 2);
    assert!((0.06..0.9).contains(&slow[1]), "{slow:?}");
    assert_eq!(meters.values(&series(1)).len(), 2);
}

#[test]
fn failures_are_counted_by_node_and_kind() {
    let meters = Meters::start();
    let (_, cluster) = still();
    let one = client(&cluster, |config| config);
    cluster.node(2).fail_next(FaultKind::OutOfMemory, 1);
    cluster.node(3).fail_with(FaultKind::Permission);
    let guard = block_on(one.lock("job").acquire()).unwrap();
    meters.comes_to("quorumlock_grants_total{margin=0}", 1.0);
    assert_eq!(meters.value(&failures(3, "out_of_memory")), 1.0);
    assert_eq!(meters.value(&failures(4, "permission")), 1.0);
    meters.comes_to(&state(4, "excluded"), 1.0);
    for node in [1, 2, 5] {
        assert_eq!(meters.value(&state(node, "ready")), 1.0);
    }
    drop(guard);
}

#[test]
fn a_node_stands_in_one_state_at_a_time_and_in_none_after_its_client() {
    let meters = Meters::start();
    let (clock, cluster) = still();
    let one = client(&cluster, |config| {
        config.restart_guard(RestartGuard::Strict)
    });
    let sum = |node: usize| -> f64 {
        let prefix = format!("quorumlock_node_state{{node=memory-{node}:6379,");
        let all = meters.series().into_iter();
        all.filter(|series| series.starts_with(&prefix))
            .map(|series| meters.value(&series))
            .sum()
    };
    drop(block_on(one.lock("job").acquire()).unwrap());
    (1..=5).for_each(|node| meters.comes_to(&state(node, "ready"), 1.0));
    cluster.node(0).kill();
    meters.comes_to(&state(1, "down"), 1.0);
    assert_eq!((sum(1), sum(2)), (1.0, 1.0));
    cluster.node(0).restart_with_data();
    clock.advance(1_000 * MS);
    meters.comes_to(&state(1, "restarting"), 1.0);
    assert_eq!(sum(1), 1.0);
    block_on(one.close()).unwrap();
    (1..=5).for_each(|node| meters.comes_to(&state(node, "ready"), 0.0));
    meters.comes_to(&state(1, "restarting"), 0.0);
    assert_eq!(sum(1), 0.0);
}

/// On real servers: what was written is what the histograms say.
#[test]
fn what_goes_to_a_server_in_one_piece_is_counted_in_bytes_and_requests() {
    let meters = Meters::start();
    let cluster = support::Cluster::start(3);
    let config = Config::new(cluster.urls()).restart_guard(RestartGuard::Off);
    let one = Client::with_config(config.node_timeout(2_000 * MS)).unwrap();
    block_on(block_on(one.lock("job").acquire()).unwrap().release()).unwrap();
    // A grant and a release for each of two nodes at least, each in a piece of its own; where a
    // server did not know a script, its text followed.
    let requests = meters.wait_for("quorumlock_flush_requests", 4);
    let bytes = meters.wait_for("quorumlock_flush_bytes", requests.len());
    assert!(requests.iter().all(|count| *count == 1.0), "{requests:?}");
    assert!(bytes.iter().all(|bytes| *bytes > 100.0), "{bytes:?}");
    // The third may not have been connected to when the other two had granted and released.
    let trips = cluster.ports().into_iter().map(|port| {
        let node = format!("127.0.0.1:{port}");
        meters.values(&format!(
            "quorumlock_node_round_trip_seconds{{node={node}}}"
        ))
    });
    let trips: Vec<Vec<f64>> = trips.filter(|trips| !trips.is_empty()).collect();
    assert!(trips.len() >= 2, "{trips:?}");
    assert!(trips.iter().flatten().all(|trip| *trip < 2.0), "{trips:?}");
}
