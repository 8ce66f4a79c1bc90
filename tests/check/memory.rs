//! Nodes in memory: what is known of them, a report that is the same at each run, and its form in
//! JSON.

use std::time::{Duration, Instant};

use futures::executor::block_on;
use quorumlock::testing::{Clock, Cluster};
use quorumlock::{Client, FaultKind, NodeState};

const SECOND: Duration = Duration::from_secs(1);

fn word(client: &Client, node: usize) -> String {
    let state = block_on(client.nodes())[node].state().to_string();
    let end = state.find(':').unwrap_or(state.len());
    state[..end].to_owned()
}

fn becomes(client: &Client, node: usize, wanted: &str) {
    let deadline = Instant::now() + 10 * SECOND;
    while word(client, node) != wanted {
        assert!(Instant::now() < deadline, "{}", word(client, node));
        std::thread::yield_now();
    }
}

#[test]
fn an_unused_and_a_closed_client_know_nothing_and_start_nothing() {
    let client = Client::in_memory(3);
    for _ in 0..2 {
        let nodes = block_on(client.nodes());
        assert_eq!(nodes.len(), 3);
        assert!(
            nodes
                .iter()
                .all(|node| *node.state() == NodeState::Idle && !node.votes())
        );
        assert_eq!(nodes[0].name(), "memory-1:6379");
        block_on(client.close()).expect("nothing to release");
    }
}

#[test]
fn each_state_shows_from_outside() {
    let clock = Clock::new();
    let cluster = Cluster::with_clock(5, &clock);
    let config = cluster.config().ttl(SECOND).max_ttl(SECOND);
    let client = cluster.client_with(config).expect("usable settings");
    let lock = client.lock("job").wait(Duration::ZERO);
    cluster.node(4).kill();
    drop(block_on(lock.acquire()).expect("four nodes"));
    let nodes = block_on(client.nodes());
    assert!(nodes[..4].iter().all(|node| node.votes()), "{nodes:?}");
    assert_eq!(word(&client, 4), "down");
    let why = nodes[4].state().why().expect("a reason").kind();
    assert_eq!(why, FaultKind::ConnectionRefused);

    // It hangs: its own request is the probe that brings it back.
    cluster.node(0).hang();
    drop(block_on(lock.acquire()).expect("three nodes"));
    assert_eq!(word(&client, 0), "ready", "not yet told from a slow one");
    clock.advance(100 * SECOND / 1000);
    assert_eq!(word(&client, 0), "suspect");
    let since = block_on(client.nodes())[0].since();
    assert_eq!(since, 50 * SECOND / 1000, "beyond its node timeout");
    cluster.node(0).resume();
    becomes(&client, 0, "ready");

    cluster.node(1).fail_next(FaultKind::Permission, 1);
    drop(block_on(lock.acquire()).expect("three nodes"));
    becomes(&client, 1, "excluded");
    drop(block_on(lock.acquire()).expect("four nodes"));
    becomes(&client, 1, "ready");

    cluster.node(2).restart_empty();
    becomes(&client, 2, "restarting");
    clock.advance(4 * SECOND);
    becomes(&client, 2, "ready");
}

#[test]
fn a_check_of_nodes_in_memory_finds_what_the_test_did_to_them() {
    let cluster = Cluster::new(5);
    let report = block_on(cluster.client().check());
    assert!(report.is_good(), "{report}");
    assert_eq!(report.nodes()[0].product(), Some("in memory"));
    cluster.node(0).kill();
    cluster.node(1).hang();
    cluster.node(2).fail_with(FaultKind::OutOfMemory);
    cluster.node(3).delay(400 * SECOND / 1000);
    let report = block_on(cluster.client().check());
    let faults = report.nodes().iter().map(|node| node.fault());
    let faults: Vec<_> = faults
        .map(|fault| fault.map(|fault| fault.kind()))
        .collect();
    let (refused, hung) = (FaultKind::ConnectionRefused, FaultKind::Timeout);
    let full = FaultKind::OutOfMemory;
    assert_eq!(faults, [Some(refused), Some(hung), Some(full), None, None]);
    assert_eq!(report.votes(), 2, "{report}");
    let names: Vec<_> = report
        .findings()
        .iter()
        .filter_map(|one| one.setting())
        .collect();
    assert!(names.contains(&"node_timeout"), "{report}");
}

/// The form is promised: fields may be added here, and none may change.
#[cfg(feature = "serde")]
#[test]
fn the_json_form_is_pinned() {
    let cluster = Cluster::with_clock(3, &Clock::new());
    cluster.node(1).hang();
    cluster.node(2).delay(SECOND * 3 / 10);
    let client = cluster.client();
    let report = block_on(client.check());
    let report = serde_json::to_string_pretty(&report).expect("JSON");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/report.json");
    if std::env::var_os("QUORUMLOCK_BLESS").is_some() {
        std::fs::write(&path, report.clone() + "\n").expect("the form is written");
    }
    let text = std::fs::read_to_string(&path).expect("the form");
    let value = |text| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!(value(&report), value(&text), "{report}");
}
