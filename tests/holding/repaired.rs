//! Extensions give a lease its redundancy back: after nodes were away, and after they were
//! emptied.
//! Tier: 3 pairs of emptied nodes every day, all 10 under full.

use std::time::Duration;

use quorumlock::Guard;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(1);

/// All five nodes have the key of this very lease, some extensions later at the most.
async fn whole(probe: &ClusterProbe, token: &[u8], guard: &Guard) {
    let everywhere = || {
        let owners = probe.owners(key("repaired"));
        let ours = |owner: &Option<Owner>| owner.as_ref().is_some_and(|owner| owner.0 == token);
        owners.iter().all(ours)
    };
    let healed = eventually_async(TTL, everywhere).await;
    assert!(healed, "{:?}", probe.owners(key("repaired")));
    assert!(guard.is_held());
}

#[tokio::test]
async fn a_lease_on_three_nodes_spreads_to_five_and_then_outlives_any_two() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    // The client has met all five before two of them go.
    let warm = client.lock("warm").acquire().await.expect("a lock");
    warm.release().await.expect("released");
    cluster[0].kill();
    cluster[1].kill();
    let guard = client.lock("repaired").acquire().await.expect("three");
    let probe = cluster.probe();
    let token = probe.holder_by_quorum(key("repaired")).expect("a holder");
    assert_eq!(copies(&probe, &key("repaired")), 3);

    cluster[0].restart_empty();
    cluster[1].restart_empty();
    whole(&probe, &token, &guard).await;
    for (a, b) in pairs() {
        for node in [a, b] {
            cluster[node].probe().flushall();
        }
        assert!(guard.is_held(), "lost with {a} and {b}");
        whole(&probe, &token, &guard).await;
    }
    assert!(guard.release().await.expect("released").in_time());
    assert_eq!(lock_keys(&probe), []);
}

fn pairs() -> Vec<(usize, usize)> {
    let all = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b)));
    all.step_by(pick(4, 1)).collect()
}

/// The other side of it: what was deleted from three nodes is not set again anywhere.
#[tokio::test]
async fn a_lease_that_was_deleted_from_three_nodes_is_lost_and_not_revived() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    let guard = client.lock("repaired").acquire().await.expect("a lock");
    let probe = cluster.probe();
    assert!(eventually_async(SLACK, || copies(&probe, &key("repaired")) == 5).await);
    let mut three = [0, 2, 4].map(|node| cluster[node].probe());
    for _ in 0..10 {
        for node in &mut three {
            node.send(&encode(&["DEL", &key("repaired")]))
                .expect("sent");
        }
        // An extension that ran between two of the deletions has healed the first.
        if tokio::time::timeout(TTL, guard.lost()).await.is_ok() {
            break;
        }
    }
    assert_eq!(guard.loss(), Some(quorumlock::Loss::Deleted));
    let gone = || copies(&probe, &key("repaired")) == 0;
    assert!(eventually_async(SLACK, gone).await);
    tokio::time::sleep(TTL).await;
    assert_eq!(lock_keys(&probe), []);
}
