//! A set in good order.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quorumlock::{Client, NodeState};

use crate::common::{check, name, patient, settings};
use crate::support::Cluster;

#[tokio::test]
async fn a_sound_set_has_nothing_to_report() {
    let cluster = Cluster::start(5);
    let report = check(patient(cluster.urls())).await;
    assert!(report.is_good(), "{report}");
    assert_eq!(report.quorum(), 3);
    assert_eq!((report.votes(), report.may_fail()), (5, 2));
    let second = Duration::from_secs(1);
    assert!(report.clock_spread().is_some_and(|spread| spread < second));
    let text = report.to_string();
    let mut processes = BTreeSet::new();
    for (node, server) in report.nodes().iter().zip(cluster.iter()) {
        assert_eq!(node.name(), name(server));
        assert!(text.contains(node.name()), "{text}");
        assert!(node.votes() && node.fault().is_none(), "{report}");
        assert_eq!(*node.state(), NodeState::Idle, "the client was not used");
        let info = server.probe().info("server");
        let run_id = info.get("run_id").map(String::as_str);
        assert_eq!(node.run_id(), run_id);
        processes.insert(node.run_id());
        let valkey = info.get("valkey_version");
        assert_eq!(
            node.product(),
            Some(if valkey.is_some() { "Valkey" } else { "Redis" })
        );
        let version = valkey.or(info.get("redis_version")).map(String::as_str);
        assert_eq!(node.version(), version);
        assert_eq!(node.role(), Some("master"));
        assert!(node.uptime().is_some_and(|uptime| uptime < 600 * second));
        assert_eq!((node.aof(), node.rdb()), (Some(false), Some(false)));
        assert_eq!(node.eviction_policy(), Some("noeviction"));
        assert!(node.missing_permissions().is_empty(), "{report}");
        assert!(node.round_trips() >= 3, "{report}");
        assert!(node.p50() <= node.p99() && node.p99().is_some(), "{report}");
        let clock = node.clock().expect("TIME was answered");
        // One machine has one clock: whatever is measured, the truth is nought.
        assert!(
            clock.offset_ms().abs() <= clock.offset_doubt_ms() + 100.0,
            "{report}"
        );
        let (rate, doubt) = (clock.rate_ppm(), clock.rate_doubt_ppm());
        let (rate, doubt) = rate.zip(doubt).expect("two samples");
        assert!(rate.abs() <= doubt + 2_000.0, "{report}");
    }
    assert_eq!(processes.len(), 5);
}

#[tokio::test]
async fn a_client_in_use_is_checked_beside_its_work() {
    let cluster = Cluster::start(3);
    let ttl = Duration::from_secs(4);
    let config = settings(cluster.urls()).max_ttl(ttl).ttl(ttl);
    let client = Client::with_config(config).expect("usable settings");
    let guard = client.lock("job").acquire().await.expect("a free lock");
    let begin = Instant::now();
    // An extension is due before these have ended.
    let (one, other) = tokio::join!(client.check(), async {
        client.check().await;
        client.check().await
    });
    assert!(guard.remaining() > ttl.saturating_sub(begin.elapsed()));
    assert!(guard.is_held() && guard.release().await.expect("a quorum").in_time());
    for report in [one, other] {
        assert_eq!(report.votes(), 3, "{report}");
        let seen: Vec<_> = report.nodes().iter().map(|node| node.state()).collect();
        assert_eq!(seen, [&NodeState::Ready; 3], "{report}");
    }
}

/// From an executor that is not tokio's.
#[test]
fn it_needs_no_runtime_of_the_caller() {
    let cluster = Cluster::start(1);
    let client = Client::with_config(patient(cluster.urls())).expect("usable settings");
    let report = futures::executor::block_on(client.check());
    assert_eq!(report.votes(), 1, "{report}");
    assert!(report.is_good(), "{report}");
}
