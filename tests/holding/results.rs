//! F11 and F12: a release never hides what happened, and never takes long.
//! Tier: all of it every day.

use std::time::{Duration, Instant};

use quorumlock::{Client, Loss, Released, RunError};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_millis(500);

fn scene() -> (Cluster, Client) {
    let cluster = Cluster::start(5);
    let client = open(
        settings(cluster.urls(), TTL)
            .max_ttl(4 * TTL)
            .wait_forever(),
    );
    (cluster, client)
}

#[tokio::test]
async fn releasing_what_has_run_out_says_so_at_once_and_harms_no_successor() {
    let (cluster, first) = scene();
    let rival = client(&cluster, TTL);
    drop(take(&rival, "warm").await);
    let lock = first.lock("run out").auto_extend(false);
    let guard = lock.acquire().await.expect("a lock");
    tokio::time::sleep(TTL + TTL / 5).await;
    let theirs = rival.lock("run out").try_acquire().await.expect("free");
    let probe = cluster.probe();
    let token = probe.holder_by_quorum(key("run out"));

    let began = Instant::now();
    let released = guard.release().await.expect("no error");
    assert_eq!(released, Released::AlreadyLost(Loss::Expired));
    assert!(began.elapsed() < 2 * node_timeout(TTL) + SLACK);
    assert!(token.is_some());
    assert_eq!(probe.holder_by_quorum(key("run out")), token);
    assert!(theirs.is_held());
}

#[tokio::test]
async fn two_missing_keys_of_five_are_a_plain_release() {
    let (cluster, client) = scene();
    let lock = client.lock("thin").auto_extend(false);
    let guard = lock.acquire().await.expect("a lock");
    assert_eq!(copies(&cluster.probe(), &key("thin")), 5);
    for node in [3, 4] {
        cluster[node].probe().command(&["DEL", &key("thin")]);
    }
    assert_eq!(guard.release().await.expect("released"), Released::InTime);
    assert_eq!(lock_keys(&cluster.probe()), []);
}

#[tokio::test]
async fn five_missing_keys_are_told_as_a_deletion() {
    let (cluster, client) = scene();
    let lock = client.lock("gone").auto_extend(false);
    let guard = lock.acquire().await.expect("a lock");
    let gone = eventually_async(SLACK, || copies(&cluster.probe(), &key("gone")) == 5).await;
    assert!(gone);
    for server in cluster.iter() {
        server.probe().command(&["DEL", &key("gone")]);
    }
    let released = guard.release().await.expect("no error");
    assert_eq!(released, Released::AlreadyLost(Loss::Deleted));
}

#[tokio::test]
async fn the_works_own_value_or_error_comes_back_though_all_nodes_are_dark() {
    let (cluster, client) = scene();
    let ttl = 4 * TTL;
    for wanted in [Ok(12), Err("the work's own")] {
        let mut ended = Instant::now();
        let lock = client.lock("dark").ttl(ttl);
        let outcome = lock.run(async |held| {
            assert!(held.is_held());
            cluster.iter().for_each(Server::pause);
            ended = Instant::now();
            wanted
        });
        let outcome: Result<i32, RunError<i32, &str>> = outcome.await;
        let took = ended.elapsed();
        cluster.iter().for_each(Server::resume);
        match (wanted, outcome) {
            (Ok(value), Ok(got)) => assert_eq!(got, value),
            (Err(error), Err(RunError::Work(got))) => assert_eq!(got, error),
            (wanted, got) => panic!("{wanted:?} became {got:?}"),
        }
        assert!(took < 2 * node_timeout(ttl) + SLACK, "{took:?}");
        // The next round needs the lock back and the connections in order.
        let probe = cluster.probe();
        let free = || copies(&probe, &key("dark")) == 0;
        assert!(eventually_async(ttl + SLACK, free).await);
    }
}

#[tokio::test]
async fn the_works_own_panic_comes_back_though_all_nodes_are_dark() {
    let (cluster, client) = scene();
    let lock = client.lock("dark").ttl(4 * TTL);
    let cluster = std::sync::Arc::new(cluster);
    let nodes = std::sync::Arc::clone(&cluster);
    let task = tokio::spawn(async move {
        let work = lock.run(async |_held| -> Result<(), ()> {
            nodes.iter().for_each(Server::pause);
            std::panic::resume_unwind(Box::new("the work's own"));
        });
        work.await
    });
    let began = Instant::now();
    let panic = task.await.expect_err("a panic").into_panic();
    assert_eq!(panic.downcast_ref(), Some(&"the work's own"));
    assert!(began.elapsed() < 10 * SLACK);
    cluster.iter().for_each(Server::resume);
}

#[tokio::test]
async fn work_that_awaits_is_stopped_when_the_lock_is_lost() {
    let (cluster, client) = scene();
    let mut stopped = true;
    let lock = client.lock("lost");
    let outcome = lock.run(async |held| {
        cluster.iter().for_each(Server::pause);
        tokio::time::sleep(4 * TTL).await;
        stopped = false;
        Ok::<_, ()>(held.is_held())
    });
    let outcome = outcome.await;
    cluster.iter().for_each(Server::resume);
    let Err(RunError::Lost { loss, output: None }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(loss, Loss::Expired);
    assert!(stopped, "the work went on without the lock");
}

#[tokio::test]
async fn what_work_returns_after_the_loss_comes_with_the_loss() {
    let (cluster, client) = scene();
    let lock = client.lock("lost");
    let outcome = lock.run(async |held| {
        cluster.iter().for_each(Server::pause);
        // Without an await it cannot be stopped.
        std::thread::sleep(2 * TTL);
        Ok::<_, ()>(held.is_held())
    });
    let outcome = outcome.await;
    cluster.iter().for_each(Server::resume);
    let Err(RunError::Lost {
        loss,
        output: Some(Ok(held)),
    }) = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!((loss, held), (Loss::Expired, false));
}
