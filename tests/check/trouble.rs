//! Each trouble is named, with the node and with what to do.

use std::time::Instant;

use quorumlock::{Client, FaultKind, Node};

use crate::common::{MS, PASSWORD, SLACK, as_user, check, found, is_critical, name, settings};
use crate::support::{Cluster, Proxy, Server, Stub, eventually_async};

#[tokio::test]
async fn a_hung_a_stopped_and_a_mute_node_hold_up_no_other() {
    let cluster = Cluster::start(4);
    cluster[0].pause();
    cluster[1].kill();
    let stub = Stub::tcp_garbage();
    let urls = cluster.urls().into_iter().chain([stub.url()]);
    let report = check(settings(urls)).await;
    let faults = report.nodes().iter().map(|node| node.fault());
    let faults: Vec<_> = faults
        .map(|fault| fault.map(|fault| fault.kind()))
        .collect();
    let (hung, refused) = (FaultKind::Timeout, FaultKind::ConnectionRefused);
    assert_eq!(
        faults[..4],
        [Some(hung), Some(refused), None, None],
        "{report}"
    );
    assert_eq!(faults[4], Some(FaultKind::Protocol), "{report}");
    assert!(report.nodes()[2].round_trips() > 0, "{report}");
    assert!(
        is_critical(found(&report, "no lock can be had")),
        "{report}"
    );
    assert!(!report.is_good());
    let hung = found(&report, "timed out");
    assert_eq!(hung.node(), Some(name(&cluster[0]).as_str()));
}

#[tokio::test]
async fn wrong_credentials_are_named_and_not_shown() {
    let cluster = Cluster::with(3, |_, server| server.args(["--requirepass", "right"]));
    let mut config = settings([""; 0]);
    for (server, password) in cluster.iter().zip(["right", PASSWORD, "right"]) {
        config = config.node(Node::url(server.url()).password(password));
    }
    let report = check(config).await;
    let fault = report.nodes()[1].fault().expect("a fault");
    assert_eq!(fault.kind(), FaultKind::Auth, "{report}");
    let finding = found(&report, "authentication failed");
    assert_eq!(finding.node(), Some(name(&cluster[1]).as_str()));

    let without = check(settings(cluster.urls())).await;
    let kinds = without
        .nodes()
        .iter()
        .map(|node| node.fault().map(|fault| fault.kind()));
    assert!(
        kinds.into_iter().all(|kind| kind == Some(FaultKind::Auth)),
        "{without}"
    );
}

#[tokio::test]
async fn a_replica_is_named_with_its_master() {
    let cluster = Cluster::start(2);
    let port = cluster[0].port().to_string();
    let replica = Server::builder()
        .args(["--replicaof", "127.0.0.1", &port])
        .start();
    let linked = || {
        replica
            .probe()
            .info("replication")
            .get("master_link_status")
            == Some(&"up".into())
    };
    assert!(eventually_async(10_000 * MS, linked).await);
    let urls = cluster.urls().into_iter().chain([replica.url()]);
    let report = check(settings(urls)).await;
    let node = &report.nodes()[2];
    assert_eq!(node.role(), Some("replica"), "{report}");
    assert_eq!(node.follows(), Some(name(&cluster[0]).as_str()));
    assert!(!node.votes());
    let finding = found(&report, "in the list too");
    assert!(
        is_critical(finding) && finding.node() == Some(node.name()),
        "{report}"
    );
}

#[tokio::test]
async fn one_server_under_two_addresses_is_named() {
    let cluster = Cluster::start(3);
    let again = Proxy::in_front_of(cluster[1].port());
    let urls = cluster.urls().into_iter().chain([again.url()]);
    let report = check(settings(urls)).await;
    let words = format!("the same server as {}", name(&cluster[1]));
    let finding = found(&report, &words);
    let second = format!("127.0.0.1:{}", again.port());
    assert!(
        is_critical(finding) && finding.node() == Some(&second),
        "{report}"
    );
    assert_eq!(report.votes(), 3, "{report}");
}

#[tokio::test]
async fn an_eviction_policy_is_no_trouble_only_where_nothing_is_evicted() {
    let policy = |index, server: crate::support::ServerBuilder| match index {
        0 => server.args(["--maxmemory", "10mb", "--maxmemory-policy", "allkeys-lru"]),
        _ => server.args(["--maxmemory", "10mb"]),
    };
    let cluster = Cluster::with(3, policy);
    let report = check(settings(cluster.urls())).await;
    let nodes = report.nodes();
    assert_eq!(nodes[0].eviction_policy(), Some("allkeys-lru"));
    assert_eq!(nodes[0].max_memory(), Some(10 << 20));
    let finding = found(&report, "allkeys-lru");
    assert!(is_critical(finding) && finding.node() == Some(nodes[0].name()));
    let about = report.findings().iter();
    assert_eq!(
        about
            .filter(|finding| finding.measured().contains("maxmemory"))
            .count(),
        1
    );
}

#[tokio::test]
async fn what_an_acl_forbids_to_see_is_unknown() {
    let cluster = Cluster::start(3);
    let rules = ["~*", "+@all", "-info", "-config"];
    let report = check(as_user(&cluster, &rules)).await;
    for node in report.nodes() {
        assert_eq!(
            (node.run_id(), node.uptime(), node.rdb()),
            (None, None, None)
        );
        assert!(node.version().is_some(), "HELLO tells it: {report}");
        assert_eq!(node.role(), Some("master"), "{report}");
        assert!(node.round_trips() > 0 && node.fault().is_none(), "{report}");
    }
    found(&report, "INFO is not allowed");
    assert_eq!(report.votes(), 3, "a new set, by its markers: {report}");
}

#[tokio::test]
async fn a_permission_that_a_lock_needs_is_missed() {
    let cluster = Cluster::start(3);
    let report = check(as_user(&cluster, &["~quorumlock:*", "+@all", "-evalsha"])).await;
    for node in report.nodes() {
        assert_eq!(node.missing_permissions(), ["+evalsha"], "{report}");
        assert!(node.permissions_known() && !node.votes());
    }
    assert!(is_critical(found(&report, "+evalsha")));

    let report = check(as_user(&cluster, &["~other:*", "+@all"])).await;
    let missing = report.nodes()[0].missing_permissions();
    assert_eq!(missing, ["~quorumlock:*"], "{report}");
}

/// The rules of the README: enough for a lock, and not to look at whether they are.
#[tokio::test]
async fn a_user_with_just_what_a_lock_needs_is_not_called_insufficient() {
    let cluster = Cluster::start(3);
    let needed = "~quorumlock:* -@all +eval +evalsha +set +get +del +pttl +pexpire +time";
    let readme = include_str!("../../README.md");
    assert!(readme.contains(needed), "the README has other rules");
    let rules: Vec<_> = needed.split(' ').collect();
    let report = check(as_user(&cluster, &rules)).await;
    assert!(report.is_good(), "{report}");
    assert!(!report.nodes()[0].permissions_known());
    assert!(
        report.nodes()[0].missing_permissions().is_empty(),
        "{report}"
    );
    found(&report, "ACL DRYRUN");

    // What reading shows is known all the same.
    let fewer: Vec<_> = rules
        .iter()
        .filter(|rule| **rule != "+pttl")
        .copied()
        .collect();
    let report = check(as_user(&cluster, &fewer)).await;
    assert_eq!(
        report.nodes()[0].missing_permissions(),
        ["+pttl"],
        "{report}"
    );
}

#[tokio::test]
async fn a_dropped_check_ends_its_connections() {
    let server = Server::start();
    let proxy = Proxy::in_front_of(server.port());
    let client = Client::with_config(settings([proxy.url()])).expect("usable settings");
    let running = tokio::spawn(async move { client.check().await });
    assert!(eventually_async(SLACK, || proxy.connections() == 1).await);
    running.abort();
    let begin = Instant::now();
    assert!(eventually_async(SLACK, || proxy.connections() == 0).await);
    // Long before the probe would have ended by itself, on a machine that has time for us.
    assert!(begin.elapsed() < 800 * MS, "{:?}", begin.elapsed());
}
