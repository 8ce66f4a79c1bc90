//! Nodes that come back without their data have no vote until whatever they forgot has run out.
//!
//! F60 and the restart guard: a restarted node and one whose data is flushed under a live
//! connection, with the guard on and off; quick. Without the guard the overtaken holder has the
//! smaller fencing token, and a resource that checks it refuses its writes.

use std::time::{Duration, Instant};

use quorumlock::fence::redis::write;
use quorumlock::{AcquireError, Client, Config, FaultKind, Guard, Loss, RestartGuard, redis};

use crate::common::{EXTEND_EVERY, MS, SLACK, Said, client, key, said};
use crate::support::{Cluster, Proxy, Server};

const TTL: Duration = Duration::from_millis(4900);
/// ⌈4.9 s × 1.01⌉ + 1 s.
const RESTART_DELAY: Duration = Duration::from_secs(6);

/// With the guard off the holder extends late, so that the rival comes first in any weather.
const SLOW_TTL: Duration = Duration::from_millis(7000);
const SLOW_EXTENSION: Duration = Duration::from_millis(6000);

/// A counter that was lost begins at the node's TIME in whole seconds: within the second of the last
/// grant the next holder could get the same token.
const SECOND_OF_TOKENS: Duration = Duration::from_millis(1100);

fn settings(urls: Vec<String>, guard: RestartGuard) -> Config {
    let config = Config::new(urls).node_timeout(700 * MS);
    let config = config.wait(20_000 * MS).restart_guard(guard);
    match guard {
        RestartGuard::Off => config.ttl(SLOW_TTL).extend_every(SLOW_EXTENSION),
        _ => config.ttl(TTL).max_ttl(TTL).extend_every(EXTEND_EVERY),
    }
}

/// Five servers, each with a proxy before it.
struct Field {
    cluster: Cluster,
    proxies: Vec<Proxy>,
}

impl Field {
    /// Servers that have just started.
    fn young() -> Field {
        let cluster = Cluster::start(5);
        let proxies = Proxy::in_front_of_all(cluster.ports());
        Field { cluster, proxies }
    }

    /// Servers that are long enough in use to have their votes.
    async fn of_age() -> Field {
        let cluster = Cluster::start(5);
        let first = client(settings(cluster.urls(), RestartGuard::Auto));
        let warm = first.lock("warm").acquire().await;
        drop(warm.expect("a new set"));
        // Uptimes are in whole seconds.
        tokio::time::sleep(RESTART_DELAY + 1100 * MS).await;
        let proxies = Proxy::in_front_of_all(cluster.ports());
        Field { cluster, proxies }
    }

    /// A client whose links to the nodes in `cut` go through proxies that refuse.
    fn client(&self, cut: &[usize], guard: RestartGuard) -> Client {
        let mut urls = self.cluster.urls();
        for &node in cut {
            self.proxies[node].refuse();
            urls[node] = self.proxies[node].url();
        }
        client(settings(urls, guard))
    }

    /// A holds n1 to n3 and is cut off from n4 and n5.
    async fn held_on_three(&self, guard: RestartGuard) -> Guard {
        let lock = self.client(&[3, 4], guard).lock("job");
        let held = lock.acquire().await.expect("three nodes");
        let owners = self.cluster.probe().owners(key("job"));
        let stored: Vec<_> = owners.iter().map(Option::is_some).collect();
        assert_eq!(stored, [true, true, true, false, false]);
        held
    }
}

/// B tries again and again, until it is granted or the limit has passed.
async fn try_for(client: &Client, limit: Duration) -> Result<Guard, Vec<AcquireError>> {
    let end = Instant::now() + limit;
    let mut errors = Vec::new();
    while Instant::now() < end {
        match client.lock("job").try_acquire().await {
            Ok(guard) => return Ok(guard),
            Err(error) => errors.push(error),
        }
        // What it sets on a node without a vote keeps the holder from setting its key there again
        // until it is taken back: a rival that never pauses would starve a holder of three nodes.
        tokio::time::sleep(100 * MS).await;
    }
    Err(errors)
}

#[tokio::test]
async fn a_node_that_restarts_empty_does_not_give_a_held_lock_away() {
    let field = Field::of_age().await;
    let held = field.held_on_three(RestartGuard::Auto).await;
    let rival = field.client(&[0, 1], RestartGuard::Auto);
    field.cluster[2].restart_empty();
    let errors = try_for(&rival, RESTART_DELAY + 1500 * MS).await;
    let errors = errors.expect_err("it is held");
    assert!(held.is_held(), "{:?}", held.loss());
    // At first n3 granted, or would have, and was not counted.
    let young = |error: &AcquireError| said(error)[2] == Said::Failed(FaultKind::Restarting);
    assert!(errors.iter().any(young), "{}", errors[0]);
    let text = errors.iter().find(|it| young(it)).map(ToString::to_string);
    assert!(text.is_some_and(|text| text.contains("has a vote again in")));

    assert!(held.release().await.expect("a release").in_time());
    let guard = rival.lock("job").acquire().await;
    assert!(guard.expect("it is free, and n3 has its vote").is_held());
}

#[tokio::test]
async fn a_node_that_restarts_empty_has_no_vote_until_the_delay_has_passed() {
    let field = Field::of_age().await;
    let rival = field.client(&[0, 1], RestartGuard::Auto);
    field.cluster[2].kill();
    let dead = Instant::now();
    field.cluster[2].restart_empty();
    // Nobody holds the lock, and n3 would grant it.
    let guard = try_for(&rival, 3 * RESTART_DELAY).await;
    assert!(guard.is_ok_and(|guard| guard.is_held()));
    let waited = dead.elapsed();
    // What was granted before the restart has run out by then.
    assert!(waited >= TTL + TTL / 100, "granted after {waited:?}");
    assert!(waited >= RESTART_DELAY, "granted after {waited:?}");
    assert!(waited < RESTART_DELAY + 1000 * MS + SLACK, "{waited:?}");
}

#[tokio::test]
async fn without_the_guard_a_restarted_node_gives_a_held_lock_away_and_the_holder_hears_of_it() {
    let field = Field::young();
    let rival = field.client(&[0, 1], RestartGuard::Off);
    let warm = rival.lock("other").acquire().await;
    drop(warm.expect("three nodes"));
    let held = field.held_on_three(RestartGuard::Off).await;
    tokio::time::sleep(SECOND_OF_TOKENS).await;
    field.cluster[2].restart_empty();
    is_given_away(&held, &rival).await;
}

/// The rival gets the lock, with the larger token, so that the resource refuses the holder; and
/// the holder hears that the lock is lost.
async fn is_given_away(held: &Guard, rival: &Client) {
    let taken = try_for(rival, SLOW_EXTENSION).await;
    let taken = taken.unwrap_or_else(|errors| panic!("{}", errors[errors.len() - 1]));
    assert!(taken.is_held());
    assert!(held.is_held(), "the rival came too late to prove anything");
    let server = Server::start();
    let store = redis::Client::open(server.url()).expect("a URL");
    let mut store = store.get_multiplexed_async_connection().await.expect("up");
    let (old, new) = (held.fencing_token(), taken.fencing_token());
    write(&mut store, "report", old, "first")
        .await
        .expect("alone");
    write(&mut store, "report", new, "second")
        .await
        .expect("newer");
    let refused = write(&mut store, "report", old, "first again").await;
    let stale = refused.expect_err("overtaken").stale();
    let stale = stale.expect("a stale token");
    assert_eq!((stale.offered, stale.highest), (old, new));
    let loss = tokio::time::timeout(SLOW_TTL + SLACK, held.lost()).await;
    assert_eq!(loss.expect("it hears of it"), Loss::Expired);
}

#[tokio::test]
async fn a_node_flushed_under_a_live_connection_does_not_give_a_held_lock_away() {
    let field = Field::of_age().await;
    let held = field.held_on_three(RestartGuard::Auto).await;
    let rival = field.client(&[0, 1], RestartGuard::Auto);
    let warm = rival.lock("other").acquire().await;
    drop(warm.expect("three nodes"));
    // Both kinds of haste: before the holder's next extension, and again and again.
    for _ in 0..2 {
        field.cluster[2].probe().flushall();
        let errors = try_for(&rival, TTL / 2).await.expect_err("it is held");
        let young = |error: &AcquireError| said(error)[2] == Said::Failed(FaultKind::Restarting);
        assert!(errors.iter().any(young), "{}", errors[0]);
        assert!(held.is_held(), "{:?}", held.loss());
    }
    let errors = try_for(&rival, RESTART_DELAY).await;
    errors.expect_err("it is held, and n3 has the key again");
    assert!(held.release().await.expect("a release").in_time());
    let guard = rival.lock("job").acquire().await;
    assert!(guard.expect("it is free, and n3 has its vote").is_held());
}

#[tokio::test]
async fn without_the_guard_a_flushed_node_gives_a_held_lock_away_and_the_holder_hears_of_it() {
    let field = Field::young();
    let rival = field.client(&[0, 1], RestartGuard::Off);
    let warm = rival.lock("other").acquire().await;
    drop(warm.expect("three nodes"));
    let held = field.held_on_three(RestartGuard::Off).await;
    tokio::time::sleep(SECOND_OF_TOKENS).await;
    field.cluster[2].probe().flushall();
    is_given_away(&held, &rival).await;
}

#[tokio::test]
async fn a_node_that_keeps_its_data_over_a_restart_waits_for_its_vote_all_the_same() {
    let field = Field::of_age().await;
    let rival = field.client(&[0, 1], RestartGuard::Auto);
    field.cluster[2].restart_with_data();
    let begin = Instant::now();
    let guard = try_for(&rival, 3 * RESTART_DELAY).await;
    assert!(guard.is_ok_and(|guard| guard.is_held()));
    assert!(begin.elapsed() >= TTL, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_newly_built_set_counts_at_once_as_a_whole_and_not_in_part() {
    let cluster = Cluster::start(5);
    let begin = Instant::now();
    let newcomer = client(settings(cluster.urls(), RestartGuard::Auto));
    let guard = newcomer.lock("job").acquire().await.expect("a new set");
    assert!(guard.release().await.expect("a release").in_time());
    let strict = client(settings(cluster.urls(), RestartGuard::Strict));
    let error = strict.lock("job").try_acquire().await;
    let votes = said(&error.expect_err("no exception"));
    if begin.elapsed() < RESTART_DELAY - 1000 * MS {
        assert!(votes.contains(&Said::Failed(FaultKind::Restarting)));
    }
    // One that is missing leaves no quorum among the young ones.
    cluster[4].kill();
    let partial = client(settings(cluster.urls(), RestartGuard::Auto));
    let error = partial.lock("job").try_acquire().await;
    assert!(error.is_err() || begin.elapsed() >= RESTART_DELAY);
    tokio::time::sleep(RESTART_DELAY + 1100 * MS).await;
    let guard = partial.lock("job").acquire().await;
    assert!(guard.expect("four of age").is_held());
}
