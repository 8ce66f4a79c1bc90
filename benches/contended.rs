//! Many tasks of one process want one lock, and hold it for a millisecond each: how often it
//! changes hands, how fairly, and how much of the time it is in use.
//!
//! In the first lines all tasks share a client, which hands the lock on in order; in the last
//! each has a client of its own, as if it were another process.
//!
//! ```text
//! cargo bench --bench contended
//! QUORUMLOCK_BENCH_SECONDS=30 cargo bench --bench contended
//! ```

mod support;

use std::time::{Duration, Instant};

use quorumlock::Client;
use support::{Servers, client, cpu_time, load_average, quantile, setting};
use tokio::runtime::Builder;

const NODES: usize = 5;
const WORKERS: usize = 2;
const CRITICAL_SECTION: Duration = Duration::from_millis(1);

/// What one task saw.
#[derive(Default)]
struct Seen {
    waits: Vec<Duration>,
    held: Duration,
}

fn main() {
    let servers = Servers::start(NODES);
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    let seconds = setting("QUORUMLOCK_BENCH_SECONDS", 5, 0);
    let time = Duration::from_secs(seconds).max(Duration::from_millis(50));
    runtime.block_on(async {
        let urls = servers.urls();
        println!("a critical section of {CRITICAL_SECTION:?}, {time:?} each, load {}\n", load_average());
        println!(
            "| tasks | clients | hand-overs/s | per task min..max | wait p50 ms | longest ms | held % | idle µs each | CPU µs each |"
        );
        println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
        let shared = client(&urls);
        for tasks in [8, 32] {
            run(vec![shared.clone(); tasks], 1, time).await;
        }
        let own = (0..8).map(|_| client(&urls)).collect();
        run(own, 8, time).await;
    });
    println!("\nload {}", load_average());
}

/// One task for each of `clients`, all on one key.
async fn run(clients: Vec<Client>, count: usize, time: Duration) {
    let tasks = clients.len();
    let key = format!("contended:{count}:{tasks}");
    let cpu = cpu_time();
    let begin = Instant::now();
    let handles: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(compete(client, key.clone(), begin + time)))
        .collect();
    let mut seen = Vec::new();
    for handle in handles {
        seen.push(handle.await.expect("a task of the bench"));
    }
    let wall = begin.elapsed().as_secs_f64();
    let cpu = cpu_time().saturating_sub(cpu).as_secs_f64();
    let mut waits: Vec<Duration> = seen.iter().flat_map(|seen| seen.waits.clone()).collect();
    let handed = waits.len();
    let each = || seen.iter().map(|seen| seen.waits.len());
    let held: Duration = seen.iter().map(|seen| seen.held).sum();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "| {tasks:>5} | {count:>7} | {:>12.0} | {:>17} | {:>11.2} | {:>10.1} | {:>6.1} | {:>12.0} | {:>11.0} |",
        handed as f64 / wall,
        format!(
            "{}..{}",
            each().min().unwrap_or(0),
            each().max().unwrap_or(0)
        ),
        millis(quantile(&mut waits, 0.5)),
        millis(quantile(&mut waits, 1.0)),
        held.as_secs_f64() / wall * 100.0,
        (wall - held.as_secs_f64()) * 1e6 / handed as f64,
        cpu * 1e6 / handed as f64,
    );
}

/// Takes the lock again and again until `end`.
async fn compete(client: Client, key: String, end: Instant) -> Seen {
    let lock = client.lock(key).wait_forever();
    let mut seen = Seen::default();
    loop {
        let asked = Instant::now();
        let guard = lock.acquire().await.expect("a lock on healthy nodes");
        let got = Instant::now();
        seen.waits.push(got - asked);
        // Not tokio's sleep, which rounds a millisecond up to two. It keeps a worker busy, as work
        // would; the others run on the other one.
        std::thread::sleep(CRITICAL_SECTION);
        assert!(guard.is_held());
        seen.held += got.elapsed();
        guard.release().await.expect("a release on healthy nodes");
        if Instant::now() >= end {
            return seen;
        }
    }
}
