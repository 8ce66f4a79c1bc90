//! F49: four clients, and nodes that die and come back, with and without their data.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorumlock::{Client, Config};
use tokio::time::sleep;

use crate::support::{Cluster, pick};

const TTL: Duration = Duration::from_millis(600);
/// ⌈0.6 s × 1.01⌉ + 1 s.
const RESTART_DELAY: Duration = Duration::from_secs(2);

/// What is done to the nodes, two at a time at most.
fn disturb(cluster: &Cluster, stop: &AtomicBool) -> usize {
    let mut rounds = 0;
    while !stop.load(Ordering::SeqCst) {
        let node = |offset: usize| cluster.iter().nth((rounds * 2 + offset) % 5).unwrap();
        let (one, two) = (node(0), node(1));
        match rounds % 3 {
            0 => (one.restart_empty(), two.restart_with_data()),
            1 => (one.restart_with_data(), two.restart_with_data()),
            _ => (one.restart_empty(), two.restart_empty()),
        };
        rounds += 1;
        // Uptimes are in whole seconds; then both have their votes again.
        let calm = RESTART_DELAY + Duration::from_millis(1200);
        let until = std::time::Instant::now() + calm;
        while std::time::Instant::now() < until && !stop.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    rounds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_from_grant_to_grant_while_nodes_die_and_return() {
    let cluster = Arc::new(Cluster::with(5, |_, server| server.aof(true)));
    let grants = pick(500, 2_000);
    let log: Arc<Mutex<Vec<u64>>> = Arc::default();
    let done = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = |number: usize| {
        let urls = cluster.urls();
        let (log, done) = (Arc::clone(&log), Arc::clone(&done));
        tokio::spawn(async move {
            let config = Config::new(urls).ttl(TTL).max_ttl(TTL);
            let config = config.wait(Duration::from_secs(60));
            let client = Client::with_config(config).unwrap();
            while done.load(Ordering::SeqCst) < grants {
                let guard = client.lock("ledger").acquire().await.unwrap();
                let token = guard.fencing_token();
                // Only while it is held, and both under one roof: else this is no write in order.
                {
                    let mut log = log.lock().unwrap();
                    if guard.is_held() {
                        log.push(token.into());
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                }
                if number == 0 {
                    guard.extend().await.ok();
                    assert_eq!(guard.fencing_token(), token);
                }
                sleep(Duration::from_millis(10)).await;
                drop(guard);
            }
        })
    };
    let writers: Vec<_> = (0..4).map(writer).collect();
    let trouble = {
        let (cluster, stop) = (Arc::clone(&cluster), Arc::clone(&stop));
        tokio::task::spawn_blocking(move || disturb(&cluster, &stop))
    };
    for writer in writers {
        writer.await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    let rounds = trouble.await.unwrap();
    let log = log.lock().unwrap();
    println!("{} grants, nodes disturbed {rounds} times", log.len());
    assert!(log.len() >= grants && rounds >= 2);
    for pair in log.windows(2) {
        assert!(pair[0] < pair[1], "{} came before {}", pair[0], pair[1]);
    }
}
