//! Whose votes make a majority, and of what.
//!
//! F57 (a to d; e is documentation), F53 (a and b by REPLICAOF, and a node that is demoted while
//! the lock is held), and the rule that one server has one vote; quick.

use quorumlock::{AcquireError, Client, FaultKind};

use crate::common::{
    MS, NODE_TIMEOUT, SLACK, Said, brisk, client, client_of, count, key, let_rival_hold, renewed,
    said, settings,
};
use crate::support::{Cluster, Proxy, Reply, Server, eventually, eventually_async};

/// A client that does not reach the nodes in `cut`.
fn cut_off(cluster: &Cluster, cut: &[usize]) -> (Client, Vec<Proxy>) {
    let mut urls = cluster.urls();
    let mut proxies = Vec::new();
    for &node in cut {
        let proxy = Proxy::in_front_of(cluster[node].port());
        proxy.refuse();
        urls[node] = proxy.url();
        proxies.push(proxy);
    }
    (client(settings(urls)), proxies)
}

#[tokio::test]
async fn who_sees_two_of_five_has_no_quorum_and_harms_nobody() {
    let cluster = Cluster::start(5);
    let (partial, _proxies) = cut_off(&cluster, &[2, 3, 4]);
    let whole = client_of(&cluster);
    for _ in 0..3 {
        let error = partial.lock("job").try_acquire().await;
        let error = error.expect_err("two of five");
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
        let guard = whole.lock("job").acquire().await.expect("all of five");
        assert!(guard.release().await.expect("a release").in_time());
    }
}

#[tokio::test]
async fn three_of_five_configured_are_needed_however_few_are_reached() {
    let cluster = Cluster::start(5);
    let (partial, _proxies) = cut_off(&cluster, &[3, 4]);
    let guard = partial.lock("job").acquire().await;
    let guard = guard.expect("three of five are enough");
    assert!(guard.release().await.expect("a release").in_time());

    // Two of the three that it reaches are no majority of five.
    let_rival_hold(&cluster, &[2], "other");
    for _ in 0..5 {
        let error = partial.lock("other").try_acquire().await;
        let said = said(&error.expect_err("two grants"));
        assert!(count(&said, Said::Granted) <= 2, "{said:?}");
    }
}

#[tokio::test]
async fn lists_of_one_two_and_four_need_one_two_and_three() {
    for (nodes, needed) in [(1, 1), (2, 2), (4, 3)] {
        let cluster = Cluster::start(nodes);
        let client = client_of(&cluster);
        for alive in (0..=nodes).rev() {
            let outcome = client.lock("job").try_acquire().await;
            match outcome {
                Ok(guard) if alive >= needed => {
                    let released = guard.release().await.expect("a release");
                    assert!(released.in_time());
                }
                Err(error) if alive < needed => {
                    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
                    let round = error.attempt().expect("a round");
                    assert_eq!(round.needed(), needed, "{error}");
                }
                other => panic!("{alive} of {nodes}: {other:?}"),
            }
            if alive > 0 {
                cluster[alive - 1].kill();
            }
        }
    }
}

#[test]
fn a_server_that_is_plainly_listed_twice_is_a_config_error() {
    for [first, second] in [
        ["redis://127.0.0.1:7001", "redis://127.0.0.1:7001"],
        ["redis://127.0.0.1:7001", "redis://localhost:7001"],
        ["redis://127.0.0.1:7001", "redis://127.0.0.1:7001/3"],
        ["redis://127.0.0.1:7001", "redis://u:p@127.0.0.1:7001"],
        ["redis://[::1]:7001", "redis://localhost:7001"],
        ["redis://a.example", "redis://A.example.:6379"],
        ["unix:///run/redis.sock", "unix:///run//redis.sock"],
    ] {
        let error = Client::open(["redis://other", first, second]);
        let error = error.expect_err("one server twice");
        assert_eq!(error.setting(), "nodes[2]", "{error}");
        assert!(
            error.problem().contains("same server as nodes[1]"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn one_server_under_two_addresses_has_one_vote() {
    let cluster = Cluster::start(2);
    // A quorum is two of these three, and the first two are one server.
    let alias = Proxy::in_front_of(cluster[0].port());
    let urls = [cluster[0].url(), alias.url(), cluster[1].url()];
    let client = client(settings(urls));
    let guard = client.lock("job").acquire().await.expect("two servers");
    guard.extend().await.expect("two servers extend");
    assert!(guard.release().await.expect("a release").in_time());

    cluster[1].kill();
    for _ in 0..5 {
        let error = client.lock("job").try_acquire().await;
        let error = error.expect_err("one server");
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
        let said = said(&error);
        assert!(matches!(said[0], Said::Granted | Said::Nothing), "{error}");
        assert_eq!(said[1], Said::Failed(FaultKind::Duplicate), "{error}");
        assert!(matches!(said[2], Said::Failed(_)), "{error}");
    }
    let probe = cluster.probe();
    assert!(eventually(SLACK, || probe.owners(key("job"))[0].is_none()));
}

/// The first round of all, in which nobody knows yet that the two are one.
#[tokio::test]
async fn one_server_under_two_addresses_has_one_vote_in_the_first_round_too() {
    let cluster = Cluster::start(2);
    let alias = Proxy::in_front_of(cluster[0].port());
    cluster[1].kill();
    for round in 0..20 {
        let urls = [cluster[0].url(), alias.url(), cluster[1].url()];
        // Another name each time: the last round is still being taken back.
        let lock = client(settings(urls)).lock(format!("job {round}"));
        let error = lock.try_acquire().await.expect_err("one server");
        let duplicate = Said::Failed(FaultKind::Duplicate);
        assert_eq!(count(&said(&error), duplicate), 1, "{error}");
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    }
}

fn replicate(replica: &Server, master: &Server) {
    let port = master.port().to_string();
    let reply = replica.probe().command(&["REPLICAOF", "127.0.0.1", &port]);
    assert_eq!(reply, Reply::Simple("OK".into()));
    let linked = eventually(20_000 * MS, || {
        let info = replica.probe().info("replication");
        info.get("master_link_status").is_some_and(|it| it == "up")
    });
    assert!(linked, "the replica never came up");
}

#[tokio::test]
async fn a_replica_in_the_list_has_no_vote() {
    let cluster = Cluster::start(5);
    replicate(&cluster[2], &cluster[1]);
    let client = client_of(&cluster);
    let guard = client.lock("job").acquire().await.expect("four masters");
    // The copy of our key on the replica is no vote either.
    let probe = cluster.probe();
    let copied = || probe.owners(key("job"))[2].is_some();
    assert!(eventually_async(SLACK, copied).await);
    guard.extend().await.expect("four masters extend");
    assert!(guard.release().await.expect("a release").in_time());

    // Two of the four go: with the replica's vote that would still be three.
    cluster[3].kill();
    cluster[4].kill();
    for _ in 0..5 {
        let error = client.lock("job").try_acquire().await;
        let error = error.expect_err("two masters");
        assert_eq!(said(&error)[2], Said::Failed(FaultKind::ReadOnly));
        let named = format!("127.0.0.1:{}: read-only replica", cluster[2].port());
        assert!(error.to_string().contains(&named), "{error}");
    }
}

#[tokio::test]
async fn a_majority_of_replicas_is_rejected_at_the_first_try() {
    let cluster = Cluster::start(5);
    for replica in [2, 3, 4] {
        replicate(&cluster[replica], &cluster[1]);
    }
    let begin = std::time::Instant::now();
    let lock = client_of(&cluster).lock("job").wait(60_000 * MS);
    let error = lock.acquire().await.expect_err("two masters");
    assert!(begin.elapsed() < NODE_TIMEOUT + 10_000 * MS, "{error}");
    assert!(matches!(error, AcquireError::Rejected(_)), "{error}");
    assert_eq!(said(&error)[2..], [Said::Failed(FaultKind::ReadOnly); 3]);
    for replica in [2, 3, 4] {
        let name = format!("127.0.0.1:{}", cluster[replica].port());
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_is_demoted_under_a_held_lock_costs_no_more_than_its_vote() {
    let cluster = Cluster::start(5);
    let client = client(brisk(cluster.urls()));
    let guard = client.lock("job").acquire().await.expect("a free lock");
    replicate(&cluster[0], &cluster[1]);
    for _ in 0..3 {
        assert!(renewed(&guard).await, "{:?}", guard.loss());
    }

    let promoted = cluster[0].probe().command(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(promoted, Reply::Simple("OK".into()));
    // It votes again: two others may go now.
    let votes = || {
        let owners = cluster.probe().owners(key("job"));
        owners[0].is_some()
            && owners[0].as_ref().map(|it| &it.0) == owners[2].as_ref().map(|it| &it.0)
    };
    assert!(eventually_async(5000 * MS + SLACK, votes).await);
    cluster[1].kill();
    cluster[4].kill();
    for _ in 0..3 {
        assert!(renewed(&guard).await, "{:?}", guard.loss());
    }
    assert!(guard.release().await.expect("a release").in_time());
}
