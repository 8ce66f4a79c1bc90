//! What dead and silent nodes cost.
//!
//! F08 without its medians and F09 without its percentiles, which are benches: quick with a few
//! cycles, `--full` with 100.

use std::time::{Duration, Instant};

use quorumlock::{AcquireError, FaultKind};

use crate::common::{
    MS, NODE_TIMEOUT, SLACK, Said, TTL, client, client_of, count, key, let_rival_hold, said,
    settings, stored,
};
use crate::support::{Cluster, Proxy, eventually_async, pick};

#[tokio::test]
async fn two_dead_nodes_of_five_are_not_noticed_by_callers() {
    let cluster = Cluster::start(5);
    cluster[0].kill();
    let mut urls = cluster.urls();
    urls[1] = "redis://n2..invalid:6379".into();
    let client = client(settings(urls));
    for cycle in 0..pick(20, 100) {
        let guard = client.lock("job").acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("cycle {cycle}: {error}"));
        guard.extend().await.expect("three nodes extend");
        let released = guard.release().await.expect("three nodes release");
        assert!(released.in_time());
    }

    // A third one goes: every try ends inside its budget, and says which nodes are missing.
    cluster[2].kill();
    for _ in 0..pick(5, 20) {
        let begin = Instant::now();
        let error = client.lock("job").try_acquire().await;
        let error = error.expect_err("no quorum");
        assert!(begin.elapsed() < NODE_TIMEOUT + SLACK, "{error}");
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
        let unresolved = Said::Failed(FaultKind::Unresolved);
        assert_eq!(said(&error)[1], unresolved, "{error}");
    }

    // It comes back: the same client works again, within a second on an idle machine.
    cluster[2].restart_empty();
    let begin = Instant::now();
    let guard = client.lock("job").acquire().await.expect("a quorum again");
    assert!(begin.elapsed() < 1000 * MS + SLACK, "{:?}", begin.elapsed());
    drop(guard);
}

#[tokio::test]
async fn a_client_can_be_made_while_every_node_is_down() {
    let cluster = Cluster::start(3);
    cluster.iter().for_each(|server| server.kill());
    let client = client_of(&cluster);
    let error = client.lock("job").try_acquire().await;
    let error = error.expect_err("all nodes are down");
    let refused = Said::Failed(FaultKind::ConnectionRefused);
    assert_eq!(said(&error)[..2], [refused; 2], "{error}");
    cluster.iter().for_each(|server| server.restart_empty());
    let guard = client.lock("job").acquire().await;
    assert!(guard.expect("all nodes are back").is_held());
}

/// Five servers, the first two behind proxies, and a client that knows them all.
fn partly_proxied(cluster: &Cluster) -> (Vec<Proxy>, quorumlock::Client) {
    let proxies = Proxy::in_front_of_all(cluster.ports().into_iter().take(2));
    let mut urls = cluster.urls();
    for (url, proxy) in urls.iter_mut().zip(&proxies) {
        *url = proxy.url();
    }
    (proxies, client(settings(urls)))
}

#[tokio::test]
async fn silent_nodes_hold_up_neither_acquire_nor_release() {
    let cluster = Cluster::start(5);
    let (proxies, client) = partly_proxied(&cluster);
    proxies.iter().for_each(Proxy::blackhole);
    // Whoever waited for the silent ones would need two node timeouts a cycle.
    let cycles = pick(20, 100);
    let begin = Instant::now();
    for cycle in 0..cycles {
        let guard = client.lock("job").acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("cycle {cycle}: {error}"));
        guard.release().await.expect("three nodes release");
    }
    let whole = begin.elapsed();
    assert!(whole < cycles * NODE_TIMEOUT, "{cycles} cycles: {whole:?}");
}

#[tokio::test]
async fn a_grant_that_comes_late_is_deleted_and_contends_with_nobody() {
    let cluster = Cluster::start(5);
    let (proxies, client) = partly_proxied(&cluster);
    let probe = cluster.probe();
    // With connections in use, the late SET is one that was really sent.
    let warm = client.lock("other").acquire().await.expect("a free lock");
    warm.release().await.expect("a quorum");
    for _ in 0..pick(3, 20) {
        // The last release may still be on its way to some.
        assert!(eventually_async(SLACK, || stored(&probe, "job") == 0).await);
        proxies.iter().for_each(Proxy::hold_requests);
        let guard = client.lock("job").acquire().await.expect("three nodes");
        assert_eq!(stored(&probe, "job"), 3);
        let begin = Instant::now();
        guard.release().await.expect("three nodes release");
        assert!(begin.elapsed() < NODE_TIMEOUT + SLACK);
        tokio::time::sleep(3 * 50 * MS).await;
        assert_eq!(stored(&probe, "job"), 0);

        proxies.iter().for_each(Proxy::release_requests);
        let gone = eventually_async(2 * NODE_TIMEOUT, || stored(&probe, "job") == 0);
        assert!(gone.await, "{:?}", probe.owners(key("job")));
        let next = client.lock("job").try_acquire().await;
        next.expect("the next one finds it free")
            .release()
            .await
            .expect("a quorum");
    }
}

#[tokio::test]
async fn a_late_grant_of_a_failed_round_is_deleted_too() {
    let cluster = Cluster::start(5);
    let (proxies, client) = partly_proxied(&cluster);
    let probe = cluster.probe();
    let warm = client.lock("other").acquire().await.expect("a free lock");
    warm.release().await.expect("a quorum");

    let_rival_hold(&cluster, &[2, 3, 4], "job");
    proxies.iter().for_each(Proxy::hold_requests);
    let error = client.lock("job").try_acquire().await;
    let error = error.expect_err("the rival has a quorum");
    assert_eq!(count(&said(&error), Said::Held), 3, "{error}");
    proxies.iter().for_each(Proxy::release_requests);
    // Long enough for the grants to arrive, short of the TTL: they are deleted, not run out.
    let begin = Instant::now();
    let arrived = || proxies.iter().all(|proxy| proxy.connections() > 0);
    assert!(eventually_async(SLACK, arrived).await);
    let gone = eventually_async(TTL / 2, || stored(&probe, "job") == 3);
    assert!(gone.await, "{:?}", probe.owners(key("job")));
    for _ in 0..20 {
        assert_eq!(stored(&probe, "job"), 3, "a ghost came later");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(begin.elapsed() < TTL, "too slow to prove anything");
}
