//! One waiter and one holder: what is sent, and how soon the waiter hears.

use std::time::{Duration, Instant};

use quorumlock::{Client, Node};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(20);

/// What the server has run of a client since `monitor` began, but for looks at the marker, and for
/// what this test asks itself.
fn requests(monitor: &Monitor) -> Vec<String> {
    let seen = monitor.seen().into_iter().filter(|seen| seen.from != "lua");
    let names = seen.map(|seen| seen.name());
    names
        .filter(|name| name != "GET" && name != "PUBSUB")
        .collect()
}

/// How many connections listen for the lock on each server.
fn listeners(cluster: &Cluster, name: &str) -> Vec<i64> {
    let count = |server: &Server| match server.probe().command(&["PUBSUB", "NUMSUB", &key(name)]) {
        Reply::Array(parts) => match parts.get(1) {
            Some(Reply::Int(count)) => *count,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    cluster.iter().map(count).collect()
}

/// A task that waits for the lock, and says when it had it.
fn waiter(client: &Client, name: &str) -> tokio::task::JoinHandle<(quorumlock::Guard, Instant)> {
    let lock = client.lock(name).wait_forever();
    tokio::spawn(async move {
        let guard = lock.acquire().await.expect("the holder lets go");
        (guard, Instant::now())
    })
}

#[tokio::test]
async fn a_waiter_sends_nothing_while_it_waits_and_hears_of_the_release() {
    let cluster = Cluster::start(5);
    for fencing in [true, false] {
        let config = patient(cluster.urls(), TTL).fencing(fencing);
        let (holder, me) = (open(config.clone()), open(config));
        let name = format!("notes-{fencing}");
        let guard = take(&holder, &name).await;
        let waiting = waiter(&me, &name);
        let subscribed = || listeners(&cluster, &name) == [1; 5];
        assert!(eventually_async(Duration::from_secs(5), subscribed).await);
        tokio::time::sleep(PAUSE).await;
        let monitors: Vec<_> = cluster.ports().into_iter().map(Monitor::on).collect();
        // By polls, a hundred milliseconds apart, this would be ten rounds.
        tokio::time::sleep(10 * PAUSE).await;
        for monitor in &monitors {
            assert_eq!(requests(monitor), [""; 0], "while it waits");
        }
        let freed = Instant::now();
        guard.release().await.expect("a release");
        let (guard, had) = waiting.await.expect("no panic");
        let took = had.duration_since(freed);
        assert!(took < SLACK, "{took:?}");
        guard.release().await.expect("a release");
        let quiet = || listeners(&cluster, &name) == [0; 5];
        assert!(eventually_async(Duration::from_secs(5), quiet).await);
        for monitor in monitors {
            let sent = requests(&monitor);
            // Two releases and a grant, and the end of the subscription.
            assert!(sent.len() <= 6, "{sent:?}");
        }
    }
}

#[tokio::test]
async fn without_contention_nothing_is_ever_subscribed_to() {
    let cluster = Cluster::start(3);
    let me = open(patient(cluster.urls(), TTL));
    let monitors: Vec<_> = cluster.ports().into_iter().map(Monitor::on).collect();
    for _ in 0..3 {
        let guard = take(&me, "alone").await;
        guard.release().await.expect("a release");
    }
    for monitor in monitors {
        let seen = monitor.stop();
        let subscribed = |seen: &Seen| seen.name().ends_with("SUBSCRIBE");
        assert!(!seen.iter().any(subscribed), "{seen:?}");
    }
}

/// Hands the lock over once, and says how long that took.
async fn hand_over(holder: &Client, me: &Client, name: &str) -> Duration {
    let guard = take(holder, name).await;
    let waiting = waiter(me, name);
    tokio::time::sleep(5 * PAUSE).await;
    assert!(!waiting.is_finished());
    let freed = Instant::now();
    guard.release().await.expect("a release");
    let (guard, had) = waiting.await.expect("no panic");
    guard.release().await.expect("a release");
    had.duration_since(freed)
}

#[tokio::test]
async fn a_user_who_may_not_subscribe_polls_and_still_lets_others_know() {
    let cluster = Cluster::start(3);
    let open_all = settings(cluster.urls(), TTL);
    let mut poor = settings(Vec::new(), TTL);
    let user = [
        "ACL",
        "SETUSER",
        "poor",
        "on",
        ">pw",
        "~quorumlock:*",
        "resetchannels",
        "+info",
        "+eval",
        "+evalsha",
        "+set",
        "+get",
        "+del",
        "+pttl",
        "+pexpire",
        "+time",
    ];
    for server in cluster.iter() {
        assert_eq!(server.probe().command(&user), Reply::Simple("OK".into()));
        poor = poor.node(Node::url(server.url()).username("poor").password("pw"));
    }
    let (poor, rich) = (open(poor), open(open_all));
    let took = hand_over(&rich, &poor, "poor-waits").await;
    assert!(took < PAUSE + node_timeout(TTL) + SLACK, "{took:?}");
    // He may not publish: the other one looks now and then.
    let took = hand_over(&poor, &rich, "rich-waits").await;
    assert!(took < TTL / 3 + SLACK, "{took:?}");
}

/// The README has these two lines.
#[tokio::test]
async fn the_permissions_that_the_readme_lists_are_enough_to_hear() {
    const README: &str = include_str!("../../README.md");
    let cluster = Cluster::start(3);
    let mut config = patient(Vec::new(), TTL);
    let lines = README
        .lines()
        .filter(|line| line.starts_with("ACL SETUSER locker"));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 2);
    for server in cluster.iter() {
        for line in &lines {
            let words: Vec<&str> = line.split(' ').collect();
            let reply = server.probe().command(&words);
            assert_eq!(reply, Reply::Simple("OK".into()), "{line}");
        }
        config = config.node(
            Node::url(server.url())
                .username("locker")
                .password("PASSWORD"),
        );
    }
    let (holder, me) = (open(config.clone()), open(config));
    let took = hand_over(&holder, &me, "permitted").await;
    assert!(took < SLACK, "{took:?}");
    let guard = take(&holder, "permitted").await;
    let _waiting = waiter(&me, "permitted");
    let subscribed = || listeners(&cluster, "permitted") == [1; 3];
    assert!(eventually_async(Duration::from_secs(5), subscribed).await);
    drop(guard);
}

#[tokio::test]
async fn a_lock_that_an_operator_frees_is_heard_of() {
    let cluster = Cluster::start(3);
    let config = patient(cluster.urls(), TTL);
    let (holder, me, operator) = (open(config.clone()), open(config.clone()), open(config));
    let guard = take(&holder, "forced").await;
    let waiting = waiter(&me, "forced");
    let subscribed = || listeners(&cluster, "forced") == [1; 3];
    assert!(eventually_async(Duration::from_secs(5), subscribed).await);
    let freed = Instant::now();
    let forced = operator.force_release("forced").await.expect("a name");
    assert!(forced.was_held(), "{forced}");
    let (_next, had) = waiting.await.expect("no panic");
    let took = had.duration_since(freed);
    assert!(took < SLACK + node_timeout(TTL), "{took:?}");
    drop(guard);
}

/// Whoever listens and never asks, or says that thousands do, must not keep others from a lock that
/// is free.
#[tokio::test]
async fn a_crowd_that_never_asks_delays_nobody_for_long() {
    let cluster = Cluster::start(3);
    let config = patient(cluster.urls(), TTL);
    let (holder, me) = (open(config.clone()), open(config));
    let guard = take(&holder, "crowd").await;
    let waiting = waiter(&me, "crowd");
    let subscribed = || listeners(&cluster, "crowd") == [1; 3];
    assert!(eventually_async(Duration::from_secs(5), subscribed).await);
    tokio::time::sleep(PAUSE).await;
    for server in cluster.iter() {
        let note = ["PUBLISH", &key("crowd"), "1 freed 4294967295"];
        server.probe().command(&note);
    }
    tokio::time::sleep(PAUSE).await;
    let freed = Instant::now();
    drop(guard);
    let limit = Duration::from_secs(2) + SLACK;
    let had = tokio::time::timeout(limit, waiting).await;
    let (_next, had) = had.expect("a look in time").expect("no panic");
    assert!(had.duration_since(freed) < limit);
}
