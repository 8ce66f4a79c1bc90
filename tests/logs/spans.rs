//! What the spans of an operation say when it is over.

use quorumlock::Client;

use super::capture::Log;
use super::common::{MS, brisk, client, renewed, settings};
use super::support::Cluster;

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test]
async fn each_operation_leaves_a_span_that_says_how_it_went() {
    let log = Log::start();
    let cluster = Cluster::start(3);
    let client: Client = client(brisk(cluster.urls()));
    let only = |name: &str| {
        let spans = log.spans(name, "resource=\"spans\"");
        assert_eq!(spans.len(), 1, "{name}: {spans:?}");
        spans[0].clone()
    };
    let lock = client.lock("spans");
    let guard = lock.acquire().await.expect("a free lock");
    let known = [
        "outcome=\"granted\"",
        "rounds=1",
        "votes=",
        "wait=",
        "validity=",
    ];
    has(&only("acquire"), &known);
    // By hand; then one that falls due.
    guard.extend().await.expect("a quorum");
    has(
        &only("extend"),
        &["outcome=\"renewed\"", "votes=", "wait=", "validity="],
    );
    assert!(renewed(&guard).await);
    let spans = log.spans("extend", "resource=\"spans\"");
    assert!(spans.len() >= 2, "{spans:?}");
    guard.release().await.expect("a quorum");
    has(&only("release"), &["outcome=\"in_time\"", "validity="]);

    let lock = client.lock("in-a-run");
    lock.run(async |_| Ok::<_, std::io::Error>(()))
        .await
        .expect("work");
    let runs = log.spans("run", "resource=\"in-a-run\"");
    has(&runs[0], &["outcome=\"done\""]);
    assert_eq!(log.spans("acquire", "resource=\"in-a-run\"").len(), 1);
}

#[tokio::test]
async fn what_came_to_nothing_is_in_its_span_and_no_warning() {
    let log = Log::start();
    let cluster = Cluster::start(3);
    let client = client(settings(cluster.urls()));
    let lock = client.lock("span-of-a-refusal");
    let guard = lock.acquire().await.expect("a free lock");
    lock.try_acquire().await.expect_err("it is held");
    let spans = log.spans("acquire", "span-of-a-refusal");
    has(
        &spans[1],
        &["outcome=\"contended\"", "rounds=1", "votes=0", "wait="],
    );
    // Dropped while it waits.
    let waiting = tokio::time::timeout(50 * MS, lock.acquire()).await;
    waiting.expect_err("it is held");
    let spans = log.spans("acquire", "span-of-a-refusal");
    has(&spans[2], &["outcome=\"cancelled\""]);
    assert!(log.count(&["not acquired", "span-of-a-refusal"]) >= 1);
    assert_eq!(log.warnings(&["span-of-a-refusal"]), 0);
    drop(guard);
}
