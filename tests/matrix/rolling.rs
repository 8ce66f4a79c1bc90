//! A rolling restart under load: each node in turn comes back empty, one `restart_delay` after the
//! one before, while workers lock, hold and release.
//!
//! Quick with two nodes, 12 resources and 6 workers; `--full` with five nodes, 50 resources and 20
//! workers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorumlock::{Client, Config, Guard};
use tokio::time::sleep;

use crate::site::stored;
use crate::support::{Cluster, Witness, boot_nanos, check, eventually, pick};

const TTL: Duration = Duration::from_millis(1900);
/// ⌈1.9 s × 1.01⌉ + 1 s, and one since uptimes are in whole seconds.
const APART: Duration = Duration::from_millis(3000 + 1200);
const WAIT: Duration = Duration::from_secs(20);
const CLIENTS: usize = 4;

/// What is locked: its witness, and the tokens of its holders in the order of their coming.
struct Resource {
    name: String,
    notes: PathBuf,
    witness: Witness,
    tokens: Mutex<Vec<u64>>,
}

impl Resource {
    fn new(dir: &Path, number: usize) -> Resource {
        let notes = dir.join(number.to_string());
        Resource {
            name: format!("resource-{number}"),
            witness: Witness::open(&notes).expect("a file for notes"),
            notes,
            tokens: Mutex::default(),
        }
    }
}

fn client(cluster: &Cluster) -> Client {
    let config = Config::new(cluster.urls()).ttl(TTL).max_ttl(TTL);
    let config = config.node_timeout(Duration::from_millis(600)).wait(WAIT);
    Client::with_config(config).expect("usable settings")
}

fn valid_until(guard: &Guard) -> u64 {
    let now = boot_nanos();
    now + u64::try_from(guard.remaining().as_nanos()).expect("a short time")
}

/// Locks, holds for a while, and releases, again and again: how often.
async fn work(
    worker: usize,
    client: Client,
    resources: Arc<Vec<Resource>>,
    done: Arc<AtomicBool>,
) -> usize {
    let mut holds = 0;
    // A walk through the resources that differs from worker to worker.
    let mut next = worker * 7;
    while !done.load(Ordering::SeqCst) {
        next += 3 + worker % 5;
        let resource = &resources[next % resources.len()];
        let lock = client.lock(&resource.name);
        let guard = lock.acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("beyond its wait: {error}"));
        let token = u64::from(guard.fencing_token());
        resource.tokens.lock().expect("no panic here").push(token);
        let (witness, token) = (&resource.witness, token.to_string());
        witness.enter(&token, valid_until(&guard)).expect("noted");
        // Each fifth is held over several extensions.
        let ticks = if next.is_multiple_of(5) { 30 } else { next % 4 };
        for _ in 0..ticks {
            sleep(Duration::from_millis(100)).await;
            assert!(guard.is_held(), "{}: {:?}", resource.name, guard.loss());
            witness.extend(&token, valid_until(&guard)).expect("noted");
        }
        witness.leave(&token, valid_until(&guard)).expect("noted");
        let released = guard.release().await;
        assert!(
            released.as_ref().is_ok_and(|how| how.in_time()),
            "{}: {released:?}",
            resource.name
        );
        holds += 1;
    }
    holds
}

/// Restarts one node after the other.
async fn roll(cluster: Arc<Cluster>, nodes: usize) {
    for node in 0..nodes {
        let cluster = Arc::clone(&cluster);
        let restart = tokio::task::spawn_blocking(move || cluster[node].restart_empty());
        restart.await.expect("a node that comes back");
        sleep(APART).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_costs_no_holder_its_lock_and_lets_no_two_hold_it() {
    let (nodes, count, workers) = pick((2, 12, 6), (5, 50, 20));
    let cluster = Arc::new(Cluster::start(5));
    let clients: Vec<Client> = (0..CLIENTS).map(|_| client(&cluster)).collect();
    // Each client must have met all nodes of the new set: then they count for it at once.
    for (number, client) in clients.iter().enumerate() {
        let name = format!("first-{number}");
        let guard = client.lock(&name).acquire().await;
        let _guard = guard.expect("a new set");
        let probe = cluster.probe();
        assert!(eventually(WAIT, || stored(&probe, &name).len() == 5));
    }
    let dir = tempfile::tempdir().expect("a directory");
    let resources = (0..count).map(|number| Resource::new(dir.path(), number));
    let resources = Arc::new(resources.collect::<Vec<_>>());
    let done = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let workers: Vec<_> = (0..workers)
        .map(|worker| {
            let client = clients[worker % CLIENTS].clone();
            let (resources, done) = (Arc::clone(&resources), Arc::clone(&done));
            tokio::spawn(work(worker, client, resources, done))
        })
        .collect();
    roll(Arc::clone(&cluster), nodes).await;
    done.store(true, Ordering::SeqCst);
    let mut holds = 0;
    for worker in workers {
        holds += worker.await.expect("no holder lost, no acquire failed");
    }
    let mut claims = 0;
    for resource in resources.iter() {
        let summary = check(&resource.notes).unwrap_or_else(|two| panic!("{two}"));
        assert_eq!(summary.overstayed, 0, "{}", resource.name);
        claims += summary.claims;
        let tokens = resource.tokens.lock().expect("no panic here");
        let grow = tokens.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(grow, "{}: {tokens:?}", resource.name);
    }
    println!(
        "{nodes} nodes restarted, {holds} holds in {:.1?}",
        begin.elapsed()
    );
    assert!(claims == holds && holds > 10 * nodes, "{claims} {holds}");
}
