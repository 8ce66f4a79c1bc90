//! The end of a client: closed, dropped, or kept in a static from one runtime to the next.
//! Tier: all of it every day.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use quorumlock::{AcquireError, Client, Guard, Loss};
use tokio::runtime::{Builder, Runtime};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(5);
const LOCKS: usize = 40;

async fn hold_many(client: &Client) -> Vec<Guard> {
    let mut guards = Vec::new();
    for one in 0..LOCKS {
        let lock = client.lock(format!("many-{one}"));
        guards.push(lock.acquire().await.expect("a lock"));
    }
    guards
}

#[tokio::test]
async fn closing_releases_everything_and_says_so() {
    let cluster = Cluster::start(5);
    let (client, rival) = (client(&cluster, TTL), client(&cluster, TTL));
    let mut guards = hold_many(&client).await;
    let theirs = rival.lock("theirs").acquire().await.expect("a lock");
    let kept = guards.split_off(LOCKS / 2);
    let waiting = client.lock("theirs").wait_forever();
    let waiting = tokio::spawn(async move { waiting.acquire().await });
    tokio::time::sleep(20 * MS).await;
    // These releases are still on their way.
    drop(guards);
    client.close().await.expect("all confirmed");

    let probe = cluster.probe();
    let only_theirs = || {
        lock_keys(&probe)
            .iter()
            .all(|(_, name)| *name == key("theirs"))
    };
    assert!(eventually_async(SLACK, only_theirs).await);
    for guard in kept {
        assert!(!guard.is_held());
        assert_eq!(guard.lost().await, Loss::Closed);
    }
    let refused = waiting.await.expect("no panic");
    assert!(matches!(refused, Err(AcquireError::Closed)), "{refused:?}");
    let refused = client.lock("another").acquire().await;
    assert!(matches!(refused, Err(AcquireError::Closed)), "{refused:?}");
    assert!(theirs.is_held());
    client.close().await.expect("nothing is left to do");
}

#[tokio::test]
async fn closing_while_the_nodes_are_dark_ends_in_time_and_counts_what_is_open() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    let mut guards = hold_many(&client).await;
    cluster.iter().for_each(Server::pause);
    // Pending, or let go by closing: both are counted.
    guards.truncate(LOCKS / 2);
    let began = Instant::now();
    let error = client.close().await.expect_err("nobody confirms");
    let took = began.elapsed();
    cluster.iter().for_each(Server::resume);
    assert_eq!(error.unconfirmed(), LOCKS, "{error}");
    let limit = 2 * node_timeout(TTL) + Duration::from_secs(1) + SLACK;
    assert!(took < limit, "{took:?}");
    let probe = cluster.probe();
    assert!(eventually_async(TTL + SLACK, || lock_keys(&probe).is_empty()).await);
}

/// In a process of its own, since threads are counted.
#[test]
fn the_last_client_and_guard_take_keys_and_thread_with_them() {
    let cluster = Cluster::start(5);
    let urls = cluster.urls().join(" ");
    let mut worker = Worker::start("closing::leaver", &[("WORKER_URLS", &urls)]);
    worker.hear("left", Duration::from_secs(20));
    let probe = cluster.probe();
    assert!(eventually(2 * node_timeout(TTL), || lock_keys(&probe).is_empty()));
    let (status, said) = worker.finish(Duration::from_secs(20));
    assert!(status.success(), "{said:#?}");
}

#[test]
#[ignore = "a process of the test above"]
fn leaver() {
    let client = open(settings(told_urls(), TTL).extend_every(50 * MS));
    assert_eq!(threads(), 0, "a client without a lock has a thread");
    let mut guards = block_on(hold_many(&client));
    let last = guards.pop().expect("a guard");
    drop(guards);
    drop(client);
    // A guard keeps its lock, and what extends it, alive.
    let before = last.remaining();
    std::thread::sleep(300 * MS);
    assert!(last.remaining() + 150 * MS > before, "it was not extended");
    assert_eq!(threads(), 1);
    let began = Instant::now();
    drop(last);
    assert!(began.elapsed() < 100 * MS);
    eprintln!("left");
    assert!(eventually(Duration::from_secs(5), || threads() == 0));
}

/// The clients' own threads in this process.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the threads");
    let names = tasks.flatten().map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.unwrap_or_default()
    });
    names.filter(|name| name.trim() == "quorumlock").count()
}

#[test]
fn a_client_in_a_static_serves_one_runtime_after_another() {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    let cluster = Cluster::start(5);
    let runtimes: [fn() -> Runtime; 2] = [
        || {
            Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("ok")
        },
        || {
            Builder::new_multi_thread()
                .worker_threads(2)
                .build()
                .expect("ok")
        },
    ];
    let mut carried: Option<Guard> = None;
    for turn in 0..pick(10, 200) {
        let runtime = runtimes[turn % 2]();
        let guard = runtime.block_on(async {
            let client = CLIENT.get_or_init(|| client(&cluster, TTL));
            // Taken in the runtime before this one, which is gone.
            if let Some(guard) = carried.take() {
                assert!(guard.is_held());
                assert!(guard.release().await.expect("released").in_time());
            }
            client.lock("carried").acquire().await.expect("a lock")
        });
        carried = Some(guard);
    }
    drop(carried);
    let probe = cluster.probe();
    assert!(eventually(2 * node_timeout(TTL), || lock_keys(&probe).is_empty()));
}
