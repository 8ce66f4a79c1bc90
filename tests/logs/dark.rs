//! F23: all nodes go and come back, again and again. The process lives, nothing panics, and the log
//! says each thing once.

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorumlock::RestartGuard;

use super::capture::Log;
use super::common::{MS, SLACK, client};
use super::support::{Cluster, eventually_async, pick};

static PANICS: AtomicUsize = AtomicUsize::new(0);
static HOOK: Once = Once::new();

fn count_panics() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
}

const TTL: Duration = Duration::from_millis(500);
const LOCKS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_panic_nothing_and_are_told_once_each() {
    count_panics();
    let log = Log::start();
    let cluster = Cluster::start(3);
    let config = quorumlock::Config::new(cluster.urls())
        .ttl(TTL)
        .max_ttl(TTL);
    let config = config
        .node_timeout(100 * MS)
        .restart_guard(RestartGuard::Off);
    let client = client(config.wait(200 * MS));
    let holder = |number: usize| {
        let lock = client.lock(format!("dark-{number}")).wait_forever();
        tokio::spawn(async move {
            loop {
                if let Ok(guard) = lock.acquire().await {
                    guard.lost().await;
                }
            }
        })
    };
    let waiter = |number: usize| {
        let lock = client.lock(format!("dark-{number}"));
        tokio::spawn(async move {
            loop {
                drop(lock.acquire().await);
            }
        })
    };
    let tasks: Vec<_> = (0..LOCKS).flat_map(|it| [holder(it), waiter(it)]).collect();
    let hosts = cluster.ports().into_iter();
    let hosts: Vec<_> = hosts.map(|port| format!("127.0.0.1:{port}")).collect();

    let outages = pick(2, 20);
    for outage in 1..=outages {
        // So long that a node which goes again has been back.
        tokio::time::sleep(2_200 * MS).await;
        cluster.iter().for_each(|server| server.kill());
        tokio::time::sleep(3 * TTL).await;
        cluster.iter().for_each(|server| server.restart_empty());
        let all_back = || {
            hosts
                .iter()
                .all(|host| log.count(&[host, "back"]) == outage)
        };
        assert!(eventually_async(SLACK, all_back).await, "{}", log.all());
        for host in &hosts {
            assert_eq!(log.warnings(&[host]), outage, "{host}: {}", log.all());
        }
    }
    // Locks that were held are lost once in each outage, and nothing else is worth a warning.
    let lost = log.warnings(&["dark-", "lock lost"]);
    assert!((1..=LOCKS * (outages + 1)).contains(&lost), "{lost}");
    assert_eq!(log.warnings(&["dark-"]), lost, "{}", log.all());

    // Plain contention with one node down: the one warning that it went.
    tokio::time::sleep(2_200 * MS).await;
    cluster[0].kill();
    tokio::time::sleep(pick(1_000, 10_000) * MS).await;
    assert_eq!(log.warnings(&[&hosts[0]]), outages + 1, "{}", log.all());
    assert_eq!(log.warnings(&["dark-"]), lost, "{}", log.all());

    for task in &tasks {
        assert!(!task.is_finished(), "a task has ended");
        task.abort();
    }
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
    assert!(!log.all().contains("stack backtrace"));
}
