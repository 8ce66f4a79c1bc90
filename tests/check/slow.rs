//! Settings that do not fit the network, with ones that do.

use quorumlock::{Client, Severity};

use crate::common::{MS, check, found, settings};
use crate::support::{Cluster, Proxy};

#[tokio::test]
async fn a_node_timeout_below_two_round_trips_is_too_small() {
    let cluster = Cluster::start(3);
    let proxies = Proxy::in_front_of_all(cluster.ports());
    proxies.iter().for_each(|proxy| proxy.delay(60 * MS));
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    // The TTL has no room for a node timeout that would do.
    let config = settings(urls).ttl(400 * MS).node_timeout(80 * MS);
    let report = check(config.clone()).await;
    let finding = found(&report, "node_timeout is 80ms");
    assert_eq!(finding.severity(), Severity::Critical, "{report}");
    assert_eq!(finding.setting(), Some("node_timeout"));
    for node in report.nodes() {
        assert!(node.p50() >= Some(120 * MS), "{report}");
        assert!(
            node.clock()
                .is_some_and(|clock| clock.offset_doubt_ms() >= 60.0)
        );
    }

    let variable = |name: &str| format!("QUORUMLOCK_{}", name.to_uppercase().replace('.', "_"));
    let proposed: Vec<_> = finding
        .proposals()
        .map(|(name, value)| (variable(name), value.to_owned()))
        .collect();
    let names: Vec<_> = proposed.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.starts_with(&["QUORUMLOCK_NODE_TIMEOUT", "QUORUMLOCK_TTL"]),
        "{report}"
    );
    let mended = config.with_vars(proposed).expect("values that can be read");
    let client = Client::with_config(mended.clone()).expect("settings that are accepted");
    let guard = client.lock("job").acquire().await.expect("a lock");
    assert!(guard.release().await.expect("a quorum").in_time());
    let report = check(mended).await;
    let again = |finding: &quorumlock::Finding| finding.setting() == Some("node_timeout");
    assert!(!report.findings().iter().any(again), "{report}");
}
