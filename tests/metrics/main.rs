//! What is counted, and that it means what the table in `src/metrics.rs` says: exact counts, on
//! nodes in memory and by a clock that stands still where time is counted.
//!
//! Field case F19 (the part of the metrics); quick. A program of its own, since a process has one
//! recorder.

mod acquiring;
mod ear;
mod holding;
mod nodes;
mod papers;

use std::time::Duration;

use ear::Meters;
use futures::executor::block_on;
use quorumlock::testing::{Clock, Cluster};
use quorumlock::{Client, Config};

const MS: Duration = Duration::from_millis(1);

/// A TTL without an extension that falls due by itself, on a clock that a test moves.
const TTL: Duration = Duration::from_secs(3);

/// Five nodes by a clock that stands still.
fn still() -> (Clock, Cluster) {
    let clock = Clock::new();
    let cluster = Cluster::with_clock(5, &clock);
    (clock, cluster)
}

fn client(cluster: &Cluster, change: impl FnOnce(Config) -> Config) -> Client {
    let config = change(cluster.config().ttl(TTL));
    cluster.client_with(config).expect("usable settings")
}

#[test]
fn every_metric_is_described_with_its_unit() {
    let meters = Meters::start();
    quorumlock::metrics::describe();
    let described = meters.described();
    let names: Vec<&str> = described.iter().map(|(name, ..)| &**name).collect();
    let mut all: Vec<&str> = quorumlock::metrics::names().collect();
    all.sort_unstable();
    assert_eq!(names, all);
    for (name, unit, help) in &described {
        let unit = unit.map(|unit| unit.as_str());
        assert_eq!(
            unit == Some("seconds"),
            name.ends_with("_seconds"),
            "{name}"
        );
        assert_eq!(unit == Some("bytes"), name.ends_with("_bytes"), "{name}");
        assert!(help.ends_with('.'), "{name}: {help}");
    }
}

/// Labels name nodes and causes, whose number is bounded, and nothing else.
#[test]
fn no_label_names_a_resource_or_an_owner() {
    let meters = Meters::start();
    let cluster = Cluster::new(3);
    let client = cluster.client();
    for seat in 0..20 {
        let guard = block_on(client.lock(format!("seat-{seat}")).acquire()).unwrap();
        let again = block_on(client.lock(format!("seat-{seat}")).try_acquire());
        assert!(again.is_err());
        drop(guard);
    }
    cluster.node(0).kill();
    drop(block_on(client.lock("seat").acquire()).unwrap());
    for seat in 20..100 {
        drop(block_on(client.lock(format!("seat-{seat}")).acquire()).unwrap());
    }
    let count = meters.series().len();
    assert!(count < 80, "{:?}", meters.series());
    for series in meters.series() {
        assert!(!series.contains("seat"), "{series}");
        let Some((_, labels)) = series.split_once('{') else {
            continue;
        };
        for label in labels.trim_end_matches('}').split(',') {
            let (name, value) = label.split_once('=').unwrap();
            let known = ["outcome", "node", "kind", "state", "cause", "margin"];
            assert!(known.contains(&name), "{series}");
            assert!(value.len() < 20, "{series}");
        }
    }
}
