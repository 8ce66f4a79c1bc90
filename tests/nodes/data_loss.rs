//! Locks whose keys somebody deletes or evicts.
//!
//! F52, quick. The warning about eviction policies is the check command's.

use std::time::Instant;

use quorumlock::{Guard, Loss};

use crate::common::{
    EXTEND_EVERY, MS, NODE_TIMEOUT, SLACK, TTL, brisk, client, key, renewed, stored,
};
use crate::support::{Cluster, Reply, eventually_async};

async fn held_everywhere(cluster: &Cluster) -> Guard {
    let guard = client(brisk(cluster.urls())).lock("job").acquire().await;
    let guard = guard.expect("a free lock");
    let probe = cluster.probe();
    let everywhere = || stored(&probe, "job") == 5;
    assert!(eventually_async(SLACK, everywhere).await);
    guard
}

fn delete(cluster: &Cluster, nodes: &[usize]) {
    for &node in nodes {
        let reply = cluster[node].probe().command(&["DEL", &key("job")]);
        assert_eq!(reply, Reply::Int(1));
    }
}

/// Squeezes the node until it has no key left.
fn evict(cluster: &Cluster, nodes: &[usize]) {
    for &node in nodes {
        let mut probe = cluster[node].probe();
        for (setting, value) in [("maxmemory-policy", "allkeys-lru"), ("maxmemory", "1")] {
            let reply = probe.command(&["CONFIG", "SET", setting, value]);
            assert_eq!(reply, Reply::Simple("OK".into()));
        }
        // A write makes it look for room at once.
        let refused = probe.command(&["SET", "filler", "x"]);
        assert!(refused.error().is_some_and(|it| it.starts_with("OOM")));
        assert_eq!(probe.get(key("job")), None);
    }
}

/// The holder hears of it by the next extension, and the key comes back nowhere.
async fn is_lost(cluster: &Cluster, guard: &Guard, since: Instant) {
    let loss = tokio::time::timeout(10_000 * MS, guard.lost()).await;
    assert_eq!(loss.expect("a loss"), Loss::Deleted);
    assert!(since.elapsed() < EXTEND_EVERY + NODE_TIMEOUT + SLACK);
    assert!(!guard.is_held());
    let probe = cluster.probe();
    assert!(eventually_async(SLACK, || stored(&probe, "job") == 0).await);
    let end = Instant::now() + 5 * EXTEND_EVERY;
    while Instant::now() < end {
        assert_eq!(stored(&probe, "job"), 0, "it was set again");
        tokio::time::sleep(10 * MS).await;
    }
}

#[tokio::test]
async fn a_key_deleted_on_two_nodes_is_set_again_and_stays_held() {
    let cluster = Cluster::start(5);
    let guard = held_everywhere(&cluster).await;
    let probe = cluster.probe();
    for round in 0..2 {
        delete(&cluster, &[round, 4]);
        let healed = || stored(&probe, "job") == 5;
        assert!(eventually_async(TTL, healed).await);
        assert!(guard.is_held(), "{:?}", guard.loss());
    }
    // Each of the deleted keys is a vote again: two other nodes may go.
    cluster[2].kill();
    cluster[3].kill();
    assert!(renewed(&guard).await, "{:?}", guard.loss());
    assert!(guard.release().await.expect("a release").in_time());
}

#[tokio::test]
async fn a_key_deleted_on_three_nodes_is_lost_and_never_set_again() {
    let cluster = Cluster::start(5);
    let guard = held_everywhere(&cluster).await;
    delete(&cluster, &[0, 2, 4]);
    is_lost(&cluster, &guard, Instant::now()).await;
}

#[tokio::test]
async fn a_key_evicted_on_two_nodes_stays_held() {
    let cluster = Cluster::start(5);
    let guard = held_everywhere(&cluster).await;
    evict(&cluster, &[0, 1]);
    for _ in 0..3 {
        assert!(renewed(&guard).await, "{:?}", guard.loss());
    }
    assert_eq!(stored(&cluster.probe(), "job"), 3);
    assert!(guard.release().await.expect("a release").in_time());
}

#[tokio::test]
async fn a_key_evicted_on_three_nodes_is_lost_and_never_set_again() {
    let cluster = Cluster::start(5);
    let guard = held_everywhere(&cluster).await;
    evict(&cluster, &[0, 1, 2]);
    is_lost(&cluster, &guard, Instant::now()).await;
}
