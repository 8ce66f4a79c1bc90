//! Contenders that start together and each find another node nearest: every vote is split.
//! Tier: 20 rounds every day, 500 under full.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorumlock::Client;
use tokio::sync::Barrier;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(10);
const NEAR: Duration = Duration::from_micros(500);
const FAR: Duration = Duration::from_micros(7_500);
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// A client that is a millisecond from one node, and 15 from the others.
fn contender(cluster: &Cluster, nearest: usize) -> (Vec<Proxy>, Client) {
    let proxies = Proxy::in_front_of_all(cluster.ports());
    for (node, proxy) in proxies.iter().enumerate() {
        proxy.delay(if node == nearest { NEAR } else { FAR });
    }
    let config = patient(proxies.iter().map(Proxy::url), TTL).retry_delay(RETRY_DELAY);
    (proxies, open(config))
}

/// All contenders take the lock once, for a millisecond; when the first of them had it, and the
/// last.
async fn round(clients: &[Client], name: String) -> (Duration, Duration) {
    let barrier = Arc::new(Barrier::new(clients.len()));
    let start = |client: &Client| {
        let (lock, barrier) = (client.lock(&name).wait_forever(), Arc::clone(&barrier));
        tokio::spawn(async move {
            barrier.wait().await;
            let began = Instant::now();
            let guard = lock.acquire().await.expect("a lock on healthy nodes");
            let took = began.elapsed();
            tokio::time::sleep(MS).await;
            assert!(guard.is_held());
            drop(guard);
            took
        })
    };
    let tasks: Vec<_> = clients.iter().map(start).collect();
    let mut took = Vec::new();
    for task in tasks {
        took.push(task.await.expect("no panic"));
    }
    let first = took.iter().min().copied().expect("five of them");
    (first, took.into_iter().max().expect("five of them"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_contenders_settle_a_split_vote_and_wait_for_no_leftover() {
    let cluster = Cluster::start(5);
    let contenders: Vec<_> = (0..5).map(|nearest| contender(&cluster, nearest)).collect();
    let clients: Vec<_> = contenders
        .iter()
        .map(|(_, client)| client.clone())
        .collect();
    for client in &clients {
        drop(take(client, "warm").await);
    }
    let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
    for number in 0..pick(20, 500) {
        let (first, last) = round(&clients, format!("split-{number}")).await;
        firsts.push(first);
        lasts.push(last);
    }
    println!(
        "first: {:?} median, {:?} 99 %; last: {:?} median, {:?} worst",
        median(&firsts),
        percentile(&firsts, 99.0),
        median(&lasts),
        percentile(&lasts, 100.0)
    );
    // Ten times the delay between two tries and two round trips.
    let limit = (RETRY_DELAY + 4 * FAR) * 10;
    assert!(percentile(&firsts, pick(90.0, 99.0)) <= limit, "{firsts:?}");
    assert!(percentile(&lasts, 100.0) < TTL / 2, "{lasts:?}");
}
