//! The tokens that guards carry.

use std::time::Duration;

use quorumlock::{
    AcquireError, Client, Config, FaultKind, FencingToken, LeaseTicket, RestartGuard,
};
use tokio::time::sleep;

use crate::counter::SECOND;
use crate::support::{Cluster, Proxy, eventually_async, pick};

const TTL: Duration = Duration::from_millis(1000);

fn config(cluster: &Cluster) -> Config {
    let config = Config::new(cluster.urls()).ttl(TTL).max_ttl(TTL);
    config
        .node_timeout(Duration::from_millis(400))
        .wait(Duration::from_secs(20))
}

fn client(cluster: &Cluster) -> Client {
    Client::with_config(config(cluster)).unwrap()
}

/// The counters of `name`, node by node.
fn counters(cluster: &Cluster, name: &str) -> Vec<Option<u64>> {
    let read = |server: &crate::support::Server| {
        let text = server.probe().get(format!("quorumlock:{{{name}}}:fence"))?;
        Some(String::from_utf8(text).unwrap().parse().unwrap())
    };
    cluster.iter().map(read).collect()
}

fn set_counter(cluster: &Cluster, node: usize, name: &str, counter: u64) {
    let mut probe = cluster.iter().nth(node).unwrap().probe();
    probe.command(&[
        "SET",
        &format!("quorumlock:{{{name}}}:fence"),
        &counter.to_string(),
    ]);
}

/// The second of a node's TIME.
fn now(cluster: &Cluster) -> u64 {
    let time = cluster.iter().next().unwrap().probe().command(&["TIME"]);
    time.items().unwrap()[0].text().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_later_guard_has_the_larger_token_and_an_extension_keeps_it() {
    let cluster = Cluster::start(5);
    let lock = client(&cluster).lock("job");
    let mut last = FencingToken::NONE;
    for _ in 0..20 {
        let guard = lock.acquire().await.unwrap();
        let token = guard.fencing_token();
        assert!(token > last, "{token} after {last}");
        guard.extend().await.unwrap();
        assert_eq!(guard.fencing_token(), token);
        assert_eq!(guard.held().fencing_token(), token);
        guard.release().await.unwrap();
        last = token;
    }
    let guard = lock.acquire().await.unwrap();
    let token = guard.fencing_token();
    sleep(TTL * 2).await;
    assert!(guard.is_held());
    assert_eq!(guard.fencing_token(), token, "through its own extensions");
}

#[tokio::test]
async fn work_that_runs_under_the_lock_sees_the_token() {
    let cluster = Cluster::start(3);
    let lock = client(&cluster).lock("job");
    let first = lock
        .run(async |held| Ok::<_, std::io::Error>(held.fencing_token()))
        .await;
    let second = lock
        .run(async |held| Ok::<_, std::io::Error>(held.fencing_token()))
        .await;
    assert!(second.unwrap() > first.unwrap());
}

#[tokio::test]
async fn a_ticket_takes_the_token_along() {
    let cluster = Cluster::start(3);
    let client = client(&cluster);
    let guard = client.lock("seat").acquire().await.unwrap();
    let token = guard.fencing_token();
    let text = guard.detach().await.unwrap().reveal();
    let ticket: LeaseTicket = text.parse().unwrap();
    let guard = client.attach(&ticket).await.unwrap();
    assert_eq!(guard.fencing_token(), token);
    guard.release().await.unwrap();
    let next = client.lock("seat").acquire().await.unwrap();
    assert!(next.fencing_token() > token);
}

/// Nodes whose counters are apart need the second trip, after which a quorum stores the token.
#[tokio::test]
async fn counters_that_are_apart_are_raised_before_the_guard_is_there() {
    let cluster = Cluster::start(5);
    let client = client(&cluster);
    for round in 0..pick(10, 100) {
        let name = format!("job{round}");
        let base = (now(&cluster) + 1) * SECOND - 1000;
        for node in 0..5 {
            set_counter(&cluster, node, &name, base + node as u64 * 7);
        }
        let guard = client.lock(&name).acquire().await.unwrap();
        let token = u64::from(guard.fencing_token());
        let stored = counters(&cluster, &name);
        let enough = stored
            .iter()
            .filter(|counter| **counter >= Some(token))
            .count();
        assert!(enough >= 3, "{token}: {stored:?}");
        guard.release().await.unwrap();
        // The release has spread the largest value that was heard of by then: agreement is back. A
        // node whose answer came later may be ahead, alone.
        let agree = eventually_async(Duration::from_secs(5), || {
            let stored = counters(&cluster, &name);
            let same = |value| stored.iter().filter(|other| *other == value).count();
            stored.iter().any(|value| same(value) >= 4)
        });
        assert!(agree.await, "{:?}", counters(&cluster, &name));
    }
}

#[tokio::test]
async fn one_counter_far_ahead_neither_stops_nor_spoils_the_tokens() {
    let cluster = Cluster::start(5);
    let client = client(&cluster);
    let far = (now(&cluster) + 1_000_000) * SECOND;
    set_counter(&cluster, 1, "job", far);
    let mut last = FencingToken::NONE;
    for _ in 0..10 {
        let guard = client.lock("job").acquire().await.unwrap();
        assert!(guard.fencing_token() > last);
        assert!(u64::from(guard.fencing_token()) < far);
        last = guard.fencing_token();
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn without_fencing_the_grant_is_plain_and_there_is_no_token() {
    let cluster = Cluster::start(3);
    let client = Client::with_config(config(&cluster).fencing(false)).unwrap();
    let guard = client.lock("job").acquire().await.unwrap();
    assert!(guard.fencing_token().is_none());
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(counters(&cluster, "job"), [None, None, None]);
}

#[tokio::test]
async fn a_foreign_value_in_the_counters_place_is_named_and_left_alone() {
    let cluster = Cluster::start(3);
    for server in cluster.iter() {
        server
            .probe()
            .command(&["SET", "quorumlock:{job}:fence", "not a number"]);
    }
    let error = client(&cluster).lock("job").acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Rejected(_)), "{error}");
    let attempt = match &error {
        AcquireError::Rejected(attempt) => attempt,
        other => panic!("{other}"),
    };
    // Two of three decide.
    let faults = attempt.votes().iter().filter_map(|vote| match &vote.vote {
        quorumlock::Vote::Failed(fault) => Some(fault),
        _ => None,
    });
    assert!(faults.clone().count() >= 2);
    for fault in faults {
        assert_eq!(fault.kind(), FaultKind::NotALock);
        assert!(
            fault
                .detail()
                .is_some_and(|text| text.contains("fencing counter")),
            "{fault}"
        );
    }
    let mut probe = cluster.iter().next().unwrap().probe();
    assert_eq!(probe.get("quorumlock:{job}"), None);
    assert_eq!(
        probe.get("quorumlock:{job}:fence"),
        Some(b"not a number".to_vec())
    );
}

/// All data is gone at once: what is left is the nodes' clocks.
#[tokio::test]
async fn after_all_nodes_have_lost_everything_the_next_token_is_larger() {
    let cluster = Cluster::start(5);
    let client = client(&cluster);
    let lock = client.lock("job");
    let mut last = FencingToken::NONE;
    for _ in 0..50 {
        let guard = lock.acquire().await.unwrap();
        last = guard.fencing_token();
        guard.release().await.unwrap();
    }
    cluster.iter().for_each(|server| server.restart_empty());
    let guard = lock.acquire().await.unwrap();
    assert!(
        guard.fencing_token() > last,
        "{} after {last}",
        guard.fencing_token()
    );
}

/// F60, the token's part: a node that forgets lets two hold, and the second has the larger token.
#[tokio::test]
async fn a_holder_that_was_overtaken_through_a_lost_node_has_the_smaller_token() {
    let cluster = Cluster::start(5);
    let proxies = Proxy::in_front_of_all(cluster.ports());
    let cut_off = |cut: &[usize]| {
        let mut urls = cluster.urls();
        for &node in cut {
            proxies[node].refuse();
            urls[node] = format!("redis://127.0.0.1:{}", proxies[node].port());
        }
        let config = Config::new(urls)
            .ttl(Duration::from_secs(20))
            .auto_extend(false);
        Client::with_config(config.restart_guard(RestartGuard::Off)).unwrap()
    };
    let overtaken = cut_off(&[3, 4]).lock("job").acquire().await.unwrap();
    // The counters of a node that lost its own start at its clock, in whole seconds.
    sleep(Duration::from_millis(1100)).await;
    cluster.iter().nth(2).unwrap().restart_empty();
    let successor = cut_off(&[0, 1]).lock("job").acquire().await.unwrap();
    assert!(
        overtaken.is_held() && successor.is_held(),
        "the guard is off"
    );
    assert!(successor.fencing_token() > overtaken.fencing_token());
}

/// Names that are locked once leave nothing behind.
#[tokio::test]
async fn counters_are_gone_after_their_retention() {
    let cluster = Cluster::start(3);
    let names = pick(3_000, 1_000_000);
    let retention = Duration::from_millis(1500);
    let client = Client::with_config(config(&cluster).fence_retention(retention)).unwrap();
    let tasks: Vec<_> = (0..64)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                for name in (task..names).step_by(64) {
                    // A machine that is too busy gives the lock back, and is asked again.
                    let lock = client.lock(format!("name {name}"));
                    while lock.acquire().await.is_err() {}
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let size = |server: &crate::support::Server| server.probe().command(&["DBSIZE"]).int();
    let empty = eventually_async(retention + Duration::from_secs(60), || {
        cluster.iter().all(|server| size(server) == Some(1))
    });
    assert!(empty.await, "more than the marker is left");
}
