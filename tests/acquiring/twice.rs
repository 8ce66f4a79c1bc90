//! F50: one process locks one name twice.
//! Tier: once every day, 20 times under full.

use std::time::{Duration, Instant};

use quorumlock::{AcquireError, Client, Held, Lock};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(2);
/// Of [`patient`] clients.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// The lock is refused to `lock` within its wait, and the error says that we hold it ourselves.
async fn refused(outer: &Held, lock: Lock, wait: Duration, held_here: bool) {
    let began = Instant::now();
    let outcome = lock.wait(wait).acquire().await;
    let took = began.elapsed();
    assert!(outer.is_held(), "the outer one was lost: {outcome:?}");
    let error = outcome.expect_err("two holders");
    assert!(took >= wait, "{took:?} of {wait:?}");
    assert!(took < wait + NODE_TIMEOUT + SLACK, "{took:?}");
    let AcquireError::Contended(attempt) = &error else {
        panic!("{error}");
    };
    assert_eq!(attempt.is_held_here(), held_here, "{error}");
    assert_eq!(error.to_string().contains("this very client"), held_here);
}

async fn inner_attempts(outer: Held, client: &Client, other: &Client, name: &str) {
    for wait in [TTL / 2, Duration::ZERO] {
        refused(&outer, client.lock(name), wait, true).await;
        refused(&outer, other.lock(name), wait, false).await;
        let (lock, outer) = (client.lock(name), outer.clone());
        let task = tokio::spawn(async move { refused(&outer, lock, wait, true).await });
        task.await.expect("refused");
    }
}

#[tokio::test]
async fn who_holds_a_lock_is_refused_it_and_keeps_it() {
    let cluster = Cluster::start(5);
    let [client, other] = [(); 2].map(|()| open(patient(cluster.urls(), TTL)));
    let probe = cluster.probe();
    for run in 0..pick(1, 20) {
        let name = format!("twice-{run}");
        let outer = client.lock(&name).acquire().await.expect("a lock");
        let token = probe.holder_by_quorum(key(&name)).expect("a holder");
        inner_attempts(outer.held(), &client, &other, &name).await;
        // More than one TTL has passed by now: it was extended meanwhile.
        assert!(outer.is_held());
        let owners = probe.owners(key(&name));
        for owner in &owners {
            let (value, pttl) = owner.as_ref().unwrap_or_else(|| panic!("{owners:?}"));
            assert_eq!(value, &token);
            assert!((1..=2000).contains(pttl), "{owners:?}");
        }
        assert!(outer.release().await.expect("released").in_time());
    }
}

#[tokio::test]
async fn the_inner_one_is_served_as_soon_as_the_outer_lets_go() {
    let cluster = Cluster::start(5);
    let clients = [(); 2].map(|()| open(patient(cluster.urls(), TTL)));
    for run in 0..pick(2, 40) {
        let outer = clients[0].lock("handed over").acquire().await;
        let outer = outer.expect("a lock");
        let inner = clients[run % 2].lock("handed over").wait(5 * TTL);
        let inner = tokio::spawn(async move { (inner.acquire().await, Instant::now()) });
        tokio::time::sleep(TTL / 5).await;
        let freed = Instant::now();
        assert!(outer.release().await.expect("released").in_time());
        let (inner, at) = inner.await.expect("no panic");
        let inner = inner.unwrap_or_else(|error| panic!("not served: {error}"));
        let limit = PAUSE + 2 * NODE_TIMEOUT + SLACK;
        assert!(at - freed < limit, "served {:?} later", at - freed);
        inner.release().await.expect("released");
    }
}
