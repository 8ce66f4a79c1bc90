//! What an ACL may withhold.
//!
//! F44 (a to c), quick. The warning that names such nodes is tested in `logs.rs`, the check
//! command with the command.

use std::time::Instant;

use quorumlock::{AcquireError, Client, Config, FaultKind, Node};

use crate::common::{MS, SLACK, Said, client, settings, stored};
use crate::support::{Cluster, Reply, eventually};

/// Locks with the user `locker` on the first `count` nodes, with these rules, and as the default
/// user on the others.
fn restricted(cluster: &Cluster, count: usize, rules: &[&str]) -> Client {
    let user = [&["ACL", "SETUSER", "locker", "on", ">pw"], rules].concat();
    let mut config: Config = settings([""; 0]);
    for (index, server) in cluster.iter().enumerate() {
        let node = Node::url(server.url());
        if index < count {
            let reply = server.probe().command(&user);
            assert_eq!(reply, Reply::Simple("OK".into()), "{rules:?}");
            config = config.node(node.username("locker").password("pw"));
        } else {
            config = config.node(node);
        }
    }
    client(config.wait(60_000 * MS))
}

async fn works(client: &Client) {
    for _ in 0..3 {
        let guard = client.lock("job").acquire().await.expect("a quorum");
        guard.extend().await.expect("a quorum extends");
        assert!(guard.release().await.expect("a release").in_time());
    }
}

/// Rejected at the first attempt, without waiting, and with the command that is forbidden.
async fn is_rejected(cluster: &Cluster, client: &Client, command: &str) {
    let begin = Instant::now();
    let error = client.lock("job").acquire().await;
    let error = error.expect_err("three nodes will not serve us");
    assert!(begin.elapsed() < 10_000 * MS, "the wait was burnt: {error}");
    assert!(matches!(error, AcquireError::Rejected(_)), "{error}");
    let denied = Said::Failed(FaultKind::Permission);
    assert_eq!(crate::common::said(&error)[..3], [denied; 3], "{error}");
    let text = error.to_string();
    for node in 0..3 {
        let named = format!("127.0.0.1:{}: permission denied", cluster[node].port());
        assert!(text.contains(&named), "{text}");
    }
    assert!(text.to_lowercase().contains(command), "{text}");
    assert!(text.contains("+eval +evalsha +set +get +del"), "{text}");
}

const NO_SCRIPTS: [&str; 4] = ["~*", "+@all", "-eval", "-evalsha"];
const NO_SET: [&str; 3] = ["~*", "+@all", "-set"];
/// A lock can be taken, but not released by the script's digest.
const NO_DIGESTS: [&str; 3] = ["~*", "+@all", "-evalsha"];
/// All that is needed, and no more: the channels of release notes are not.
const LEAST: [&str; 7] = [
    "~quorumlock:*",
    "-@all",
    "+eval",
    "+evalsha",
    "+set",
    "+get",
    "+pttl",
];
const LEAST_OF_SCRIPTS: [&str; 4] = ["+time", "+del", "+pexpire", "+info"];

#[tokio::test]
async fn two_nodes_without_scripts_cost_their_votes() {
    let cluster = Cluster::start(5);
    works(&restricted(&cluster, 2, &NO_SCRIPTS)).await;
}

#[tokio::test]
async fn three_nodes_without_scripts_reject_the_lock_up_front() {
    let cluster = Cluster::start(5);
    let client = restricted(&cluster, 3, &NO_SCRIPTS);
    is_rejected(&cluster, &client, "'eval'").await;
}

#[tokio::test]
async fn nodes_without_set_cost_their_votes_or_reject_the_lock() {
    let cluster = Cluster::start(5);
    works(&restricted(&cluster, 2, &NO_SET)).await;
    let client = restricted(&cluster, 3, &NO_SET);
    is_rejected(&cluster, &client, "command").await;
}

#[tokio::test]
async fn keys_limited_to_the_prefix_are_enough() {
    let cluster = Cluster::start(5);
    for count in [2, 5] {
        works(&restricted(&cluster, count, &["~quorumlock:*", "+@all"])).await;
    }
}

#[tokio::test]
async fn the_permissions_that_the_documentation_lists_are_enough() {
    let cluster = Cluster::start(5);
    let rules = [&LEAST[..], &LEAST_OF_SCRIPTS].concat();
    works(&restricted(&cluster, 5, &rules)).await;
}

#[tokio::test]
async fn a_user_who_may_send_no_digests_is_served_by_texts() {
    let cluster = Cluster::start(5);
    let client = restricted(&cluster, 5, &NO_DIGESTS);
    works(&client).await;
    let probe = cluster.probe();
    assert!(eventually(SLACK, || stored(&probe, "job") == 0));
}
