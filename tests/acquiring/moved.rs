//! F32: a guard belongs to nobody's thread.
//! Tier: 1,000 journeys every day, 10,000 under full.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use quorumlock::{Client, Guard};
use tokio::task::JoinSet;

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(10);
const SIDE_BY_SIDE: usize = 50;

/// Runs `journey` many times, some of them side by side, and makes sure that nothing stays.
async fn travel<F>(client: &Client, cluster: &Cluster, journey: impl Fn(Guard) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for round in 0..pick(1000, 10_000) / SIDE_BY_SIDE {
        let mut guards = Vec::new();
        for one in 0..SIDE_BY_SIDE {
            let lock = client.lock(format!("moved-{round}-{one}"));
            guards.push(lock.acquire().await.expect("a lock"));
        }
        let mut tasks: JoinSet<()> = guards.into_iter().map(&journey).collect();
        while let Some(done) = tasks.join_next().await {
            done.expect("no panic");
        }
    }
    let probe = cluster.probe();
    let gone = eventually_async(2 * node_timeout(TTL) + SLACK, || {
        lock_keys(&probe).is_empty()
    })
    .await;
    assert!(gone, "{:?}", lock_keys(&probe));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_guard_is_released_by_a_task_that_did_not_acquire_it() {
    let cluster = Cluster::start(5);
    let client = open(patient(cluster.urls(), TTL));
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Guard>(8);
    let releaser = tokio::spawn(async move {
        let mut released = 0;
        while let Some(guard) = receiver.recv().await {
            assert!(guard.release().await.expect("released").in_time());
            released += 1;
        }
        released
    });
    travel(&client, &cluster, |guard| {
        let sender = sender.clone();
        async move { sender.send(guard).await.expect("a receiver") }
    })
    .await;
    drop(sender);
    assert_eq!(releaser.await.expect("no panic"), pick(1000, 10_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_guard_is_dropped_by_a_plain_thread() {
    let cluster = Cluster::start(5);
    let client = open(patient(cluster.urls(), TTL));
    let (sender, receiver) = mpsc::channel::<Guard>();
    let thread = std::thread::spawn(move || receiver.into_iter().map(drop).count());
    travel(&client, &cluster, |guard| {
        let sender = sender.clone();
        async move { sender.send(guard).expect("a receiver") }
    })
    .await;
    drop(sender);
    assert_eq!(thread.join().expect("no panic"), pick(1000, 10_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_guard_is_held_over_awaits_on_many_threads() {
    let cluster = Cluster::start(5);
    let client = open(patient(cluster.urls(), TTL));
    let migrated = Arc::new(Mutex::new(0));
    let count = Arc::clone(&migrated);
    travel(&client, &cluster, move |guard| {
        let migrated = Arc::clone(&count);
        async move {
            let mut threads = HashSet::new();
            for _ in 0..100 {
                // A little work, so that idle workers find tasks to steal.
                let began = Instant::now();
                while began.elapsed() < MS / 100 {
                    std::hint::spin_loop();
                }
                tokio::task::yield_now().await;
                threads.insert(std::thread::current().id());
            }
            *migrated.lock().expect("a count") += usize::from(threads.len() > 1);
            assert!(guard.release().await.expect("released").in_time());
        }
    })
    .await;
    let migrated = *migrated.lock().expect("a count");
    assert!(migrated > 0, "no task ever changed its thread");
}
