//! What holding costs: many locks that extend themselves, with a TTL of 60 s.
//!
//! ```text
//! cargo bench --bench held
//! QUORUMLOCK_BENCH_HELD=100000 QUORUMLOCK_BENCH_SECONDS=180 cargo bench --bench held
//! ```

mod support;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use quorumlock::{Client, Config, Guard};
use support::{Servers, cpu_time, load_average, resident, setting};
use tokio::runtime::Builder;

const NODES: usize = 5;
const WORKERS: usize = 2;
const TTL: Duration = Duration::from_secs(60);
/// Acquisitions at a time.
const AT_ONCE: usize = 500;

fn main() {
    let servers = Servers::start(NODES);
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    let count: usize = setting("QUORUMLOCK_BENCH_HELD", 2_000, 50);
    let seconds: u64 = setting("QUORUMLOCK_BENCH_SECONDS", 30, 1);
    runtime.block_on(async {
        let urls = servers.urls();
        let config = Config::new(&urls).ttl(TTL).max_ttl(TTL);
        let client = Client::with_config(config).expect("a configuration of the bench");
        // So that connections and buffers are there before memory is counted.
        hold(&client, "first", 50).await;

        let before = resident();
        let begin = Instant::now();
        let guards = hold(&client, "held", count).await;
        let acquired = begin.elapsed();
        let per_lock = resident().saturating_sub(before) / count as u64;

        let load = load_average();
        let (cpu, requests, begin) = (cpu_time(), requests(&urls).await, Instant::now());
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let wall = begin.elapsed().as_secs_f64();
        let cpu = cpu_time().saturating_sub(cpu).as_secs_f64();
        let requests = self::requests(&urls).await - requests;
        let lost = guards.iter().filter(|guard| !guard.is_held()).count();
        let shortest = guards.iter().map(Guard::remaining).min();

        println!("{count} locks held for {seconds} s, TTL {TTL:?}, load {load} → {}\n", load_average());
        println!("| acquired in | bytes per lock | CPU % | CPU µs per extension | requests/s and node | lost | least remaining |");
        println!("|---:|---:|---:|---:|---:|---:|---:|");
        println!(
            "| {acquired:.2?} | {per_lock} | {:.2} | {:.1} | {:.1} | {lost} | {:.1?} |",
            cpu / wall * 100.0,
            cpu * 1e6 * NODES as f64 / requests.max(1) as f64,
            requests as f64 / wall / NODES as f64,
            shortest.unwrap_or_default(),
        );
        for (why, count) in losses(&guards) {
            println!("\nlost: {count}, since {why}");
        }
        drop(guards);
        let begin = Instant::now();
        match client.close().await {
            Ok(()) => println!("\nall released in {:.2?}", begin.elapsed()),
            Err(error) => println!("\nat the end, after {:.2?}: {error}", begin.elapsed()),
        }
        assert_eq!(lost, 0, "locks were lost on healthy nodes");
    });
}

/// Takes `count` locks.
async fn hold(client: &Client, name: &str, count: usize) -> Vec<Guard> {
    let acquire = |index| {
        let lock = client.lock(format!("{name}:{index}"));
        async move { lock.acquire().await.expect("a lock on healthy nodes") }
    };
    let guards = stream::iter(0..count).map(acquire);
    guards.buffer_unordered(AT_ONCE).collect().await
}

/// Why locks were lost, and how many for each reason.
fn losses(guards: &[Guard]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for loss in guards.iter().filter_map(Guard::loss) {
        *counts.entry(loss.to_string()).or_default() += 1;
    }
    counts
}
/// The scripts that all nodes have run by now: extensions and releases.
async fn requests(urls: &[String]) -> u64 {
    let mut sum = 0;
    for url in urls {
        let client = redis::Client::open(url.as_str()).expect("the URL of a server of ours");
        let connection = client.get_multiplexed_async_connection().await;
        let info: String = redis::cmd("INFO")
            .arg("commandstats")
            .query_async(&mut connection.expect("a server of ours"))
            .await
            .expect("its INFO");
        let calls = info.lines().filter_map(|line| {
            let (_, stats) = line
                .strip_prefix("cmdstat_")
                .filter(|line| line.starts_with("eval"))?
                .split_once("calls=")?;
            stats.split(',').next()?.parse::<u64>().ok()
        });
        sum += calls.sum::<u64>();
    }
    sum
}
