//! F17: no hold without an end: `max_hold`, no auto-extension, a task that is aborted.
//! Tier: all of it every day.

use std::future::pending;
use std::time::{Duration, Instant};

use quorumlock::{Loss, RunError};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(1);

#[tokio::test]
async fn work_that_never_ends_is_stopped_after_max_hold() {
    let cluster = Cluster::start(5);
    let rival = client(&cluster, TTL);
    let config = settings(cluster.urls(), TTL).max_hold(5 * TTL);
    let lock = open(config).lock("stuck");
    let mut began = Instant::now();
    let work = lock.run(async |_held| {
        began = Instant::now();
        pending::<Result<(), ()>>().await
    });
    let waiting = async {
        // The work comes first.
        tokio::time::sleep(TTL / 2).await;
        let guard = rival.lock("stuck").wait(8 * TTL).acquire().await;
        (guard, Instant::now())
    };
    let both = async { tokio::join!(work, waiting) };
    let ended = tokio::time::timeout(10 * TTL, both).await;
    let (outcome, (guard, at)) = ended.expect("the work is stopped");
    let lost = matches!(
        outcome,
        Err(RunError::Lost {
            loss: Loss::MaxHold,
            output: None
        })
    );
    assert!(lost, "{outcome:?}");
    assert!(guard.expect("the rival is served").is_held());
    let served = at - began;
    assert!(served > 4 * TTL, "{served:?}: it was not extended");
    assert!(served < 6 * TTL + SLACK, "{served:?}");
}

#[tokio::test]
async fn the_loss_by_max_hold_comes_no_later_than_it() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    let lock = client.lock("stuck").max_hold(5 * TTL);
    let asked = Instant::now();
    let guard = lock.acquire().await.expect("a lock");
    let granted = Instant::now();
    let lost = tokio::time::timeout(10 * TTL, guard.lost()).await;
    assert_eq!(lost, Ok(Loss::MaxHold));
    let held = granted.elapsed();
    assert!(held < 5 * TTL + SLACK, "{held:?}");
    // A millisecond before the end, so that the word is there by then.
    let held = asked.elapsed();
    assert!(held >= 5 * TTL - 2 * MS, "{held:?}");
    assert!(!guard.is_held());
    let probe = cluster.probe();
    let gone = || copies(&probe, &key("stuck")) == 0;
    assert!(eventually_async(2 * node_timeout(TTL) + SLACK, gone).await);
}

#[tokio::test]
async fn without_auto_extension_no_extension_is_sent_and_the_key_ends_with_its_ttl() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    let monitors: Vec<Monitor> = cluster.ports().into_iter().map(Monitor::on).collect();
    let lock = client.lock("left alone").auto_extend(false);
    let guard = lock.acquire().await.expect("a lock");
    let granted = Instant::now();
    let probe = cluster.probe();
    let gone = || copies(&probe, &key("left alone")) == 0;
    assert!(eventually_async(2 * TTL, gone).await, "it does not end");
    let lived = granted.elapsed();
    assert!(lived < TTL + SLACK, "{lived:?}");
    assert!(lived > TTL / 2, "{lived:?}");
    assert_eq!(guard.loss(), Some(Loss::Expired));
    for monitor in &monitors {
        let seen = monitor.seen();
        let renews = |seen: &Seen| {
            let name = seen.name();
            let moves = name.contains("EXPIRE") || name == "SET" && !is_grant(seen);
            moves && is_lock(seen)
        };
        let granted = seen.iter().any(|seen| is_grant(seen) && is_lock(seen));
        assert!(granted, "{seen:?}");
        assert_eq!(seen.iter().find(|seen| renews(seen)), None);
    }
}

fn is_lock(seen: &Seen) -> bool {
    seen.args
        .get(1)
        .is_some_and(|name| *name == key("left alone").as_bytes())
}

#[tokio::test]
async fn an_aborted_task_holds_nothing() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, 10 * TTL);
    let probe = cluster.probe();
    for _ in 0..pick(10, 100) {
        let lock = client.lock("aborted");
        let (held, holding) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let _guard = lock.acquire().await.expect("a lock");
            held.send(()).expect("somebody listens");
            pending::<()>().await;
        });
        holding.await.expect("held");
        assert!(probe.holder_by_quorum(key("aborted")).is_some());
        task.abort();
        assert!(task.await.is_err());
        let limit = 2 * node_timeout(10 * TTL);
        let gone = || copies(&probe, &key("aborted")) == 0;
        assert!(eventually_async(limit, gone).await);
    }
}
