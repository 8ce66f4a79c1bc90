//! A node's clock is set while a lock is held: what the holder learns, and what a rival gets.

use std::time::{Duration, Instant};

use quorumlock::fence::redis::write;
use quorumlock::{Client, FaultKind, Guard, Loss, RestartGuard, redis};
use tokio::time::{sleep, timeout};

use crate::capture::Log;
use crate::fault::Fault;
use crate::site::{NODES, SHORT, SLACK, Site, stored};
use crate::support::{Server, eventually_async};

const HOUR: i64 = 3600;

/// Five nodes that have their votes, or none where clocks cannot be set.
async fn site() -> Option<Site> {
    let mut site = Site::start().await;
    site.come_of_age().await;
    Some(site).filter(Site::has_clocks)
}

fn client(site: &Site, extend_every: Duration) -> Client {
    let config = site.config(SHORT, RestartGuard::Auto);
    let config = config.extend_every(extend_every).wait(SHORT);
    Client::with_config(config).expect("usable settings")
}

fn warnings(log: &Log, site: &Site, node: usize) -> usize {
    let name = format!("127.0.0.1:{}", site.port(node));
    log.warnings(&[&name, "clock was set forward"])
}

/// Extends, so that the clock of every node is known. A call ends at the third answer, so there is
/// some time and more than one for the last.
async fn extended(held: &Guard) {
    for _ in 0..5 {
        held.extend().await.expect("five good nodes");
        sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_or_two_clocks_set_forward_are_told_lose_their_votes_and_give_nothing_away() {
    let log = Log::start();
    let Some(site) = site().await else { return };
    let holder = client(&site, Duration::from_millis(300));
    let rival = client(&site, Duration::from_millis(300));
    site.meets_all(&rival, "rival").await;
    let held = holder.lock("job").acquire().await.expect("a free lock");
    extended(&held).await;
    for node in 0..2 {
        site.step(node, HOUR);
        let until = Instant::now() + SHORT / 2;
        while Instant::now() < until {
            let taken = rival.lock("job").try_acquire().await;
            assert!(taken.is_err(), "{} clocks, and two holders", node + 1);
            assert!(held.is_held(), "{:?}", held.loss());
            sleep(Duration::from_millis(30)).await;
        }
        let told = || warnings(&log, &site, node) > 0;
        assert!(eventually_async(SLACK, told).await, "not told");
    }
    // The holder's client counts neither: with one of the others gone, three grants are too few.
    site.inflict_on(2, Fault::Refused, false);
    let error = holder.lock("other").wait(Duration::ZERO).acquire().await;
    let error = error.expect_err("two votes");
    let round = error.attempt().expect("a round");
    for vote in &round.votes()[..2] {
        assert_eq!(vote.vote.fault(), Some(FaultKind::Restarting), "{error}");
    }
    assert!(held.is_held(), "{:?}", held.loss());
    assert_eq!(warnings(&log, &site, 4), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_clocks_set_forward_void_the_promise_and_the_token_saves_the_resource() {
    let Some(site) = site().await else { return };
    let holder = client(&site, Duration::from_millis(1800));
    let rival = client(&site, Duration::from_millis(1800));
    site.meets_all(&rival, "rival").await;
    let server = Server::start();
    let store = redis::Client::open(server.url()).expect("a URL");
    let mut store = store.get_multiplexed_async_connection().await.expect("up");
    let held = holder.lock("job").acquire().await.expect("a free lock");
    extended(&held).await;
    (0..3).for_each(|node| site.step(node, HOUR));
    let second = rival.lock("job").acquire().await.expect("three are free");
    assert!(held.is_held(), "too slow to prove anything");
    assert!(second.is_held());
    // Both write as if alone: the later token is let through, the earlier one is not.
    let (old, new) = (held.fencing_token(), second.fencing_token());
    write(&mut store, "report", old, "first")
        .await
        .expect("alone yet");
    write(&mut store, "report", new, "second")
        .await
        .expect("newer");
    let refused = write(&mut store, "report", old, "first again").await;
    let stale = refused.expect_err("overtaken").stale();
    assert_eq!(stale.expect("a stale token").highest, new);
    let loss = timeout(SHORT + SLACK, held.lost()).await;
    assert_eq!(loss.expect("it hears of it"), Loss::Frozen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_clock_set_forward_before_the_first_extension_is_told() {
    let log = Log::start();
    let Some(site) = site().await else { return };
    let holder = client(&site, Duration::from_millis(300));
    let held = holder.lock("job").auto_extend(false).acquire().await;
    let held = held.expect("a free lock");
    let everywhere = || stored(&site.probe(), "job").len() == NODES;
    assert!(eventually_async(SLACK, everywhere).await);
    // A few trips more, so that the last node's answer is in, too.
    for _ in 0..5 {
        let other = holder.lock("other").acquire().await.expect("a free lock");
        other.release().await.expect("five good nodes");
    }
    site.step(0, HOUR);
    held.extend().await.expect("four good nodes");
    let told = || warnings(&log, &site, 0) > 0;
    assert!(eventually_async(SLACK, told).await, "not told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_release_that_finds_three_of_five_keys_gone_does_not_say_in_time() {
    let Some(site) = site().await else { return };
    let client = client(&site, Duration::from_millis(1800));
    let held = client.lock("job").acquire().await.expect("a free lock");
    let everywhere = || stored(&site.probe(), "job").len() == NODES;
    assert!(eventually_async(SLACK, everywhere).await);
    (0..3).for_each(|node| site.step(node, HOUR));
    // Two good nodes answer first, and one of the others makes the quorum.
    (1..3).for_each(|node| site.inflict_on(node, Fault::Delayed20, false));
    let released = held.release().await.expect("a quorum answers");
    assert!(!released.in_time(), "{released:?}");
}
