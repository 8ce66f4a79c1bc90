//! Tasks of one process that share a client.

use std::time::{Duration, Instant};

use quorumlock::{Client, Config};
use tokio::runtime::Builder;

use crate::CRITICAL_SECTION;
use crate::support::{client, cpu_time, quantile};

const WORKERS: usize = 2;

/// What one task saw.
#[derive(Default)]
struct Seen {
    waits: Vec<Duration>,
    held: Duration,
}

pub fn table(urls: &[String], time: Duration) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    println!(
        "| tasks of one process | hand-overs/s | per task min..max | wait mean ms | longest ÷ mean | \
         held % | CPU µs each |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let released = Config::new(urls.to_vec()).cohort_max_handoffs(0);
    let released = Client::with_config(released).expect("a configuration of the bench");
    runtime.block_on(async {
        for tasks in [8, 32, 256] {
            run("1 ms", tasks, CRITICAL_SECTION, &client(urls), time).await;
        }
        run(
            "1 ms, never handed on",
            8,
            CRITICAL_SECTION,
            &released,
            time,
        )
        .await;
        run("empty", 8, Duration::ZERO, &client(urls), time).await;
    });
}

async fn run(name: &str, tasks: usize, section: Duration, client: &Client, time: Duration) {
    let key = format!("contended:{name}:{tasks}");
    let cpu = cpu_time();
    let begin = Instant::now();
    let compete = |_| tokio::spawn(compete(client.clone(), key.clone(), section, begin + time));
    let handles: Vec<_> = (0..tasks).map(compete).collect();
    let mut seen = Vec::new();
    for handle in handles {
        seen.push(handle.await.expect("a task of the bench"));
    }
    let wall = begin.elapsed().as_secs_f64();
    let cpu = cpu_time().saturating_sub(cpu).as_secs_f64();
    let mut waits: Vec<Duration> = seen.iter().flat_map(|seen| seen.waits.clone()).collect();
    let each = || seen.iter().map(|seen| seen.waits.len());
    let held: Duration = seen.iter().map(|seen| seen.held).sum();
    let mean = waits.iter().sum::<Duration>().as_secs_f64() / waits.len() as f64;
    let range = each().min().zip(each().max());
    println!(
        "| {tasks}, {name} | {:.0} | {} | {:.2} | {:.2} | {:.1} | {:.0} |",
        waits.len() as f64 / wall,
        range.map_or_else(String::new, |(least, most)| format!("{least}..{most}")),
        mean * 1e3,
        quantile(&mut waits, 1.0).as_secs_f64() / mean,
        held.as_secs_f64() / wall * 100.0,
        cpu * 1e6 / waits.len() as f64,
    );
}

/// Takes the lock again and again until `end`.
async fn compete(client: Client, key: String, section: Duration, end: Instant) -> Seen {
    let lock = client.lock(key).wait_forever();
    let mut seen = Seen::default();
    loop {
        let asked = Instant::now();
        let guard = lock.acquire().await.expect("a lock on healthy nodes");
        let got = Instant::now();
        seen.waits.push(got - asked);
        if !section.is_zero() {
            // Not tokio's sleep, which rounds a millisecond up to two. It keeps a worker busy, as
            // work would; the others run on the other one.
            std::thread::sleep(section);
        }
        assert!(guard.is_held());
        seen.held += got.elapsed();
        guard.release().await.expect("a release on healthy nodes");
        if Instant::now() >= end {
            return seen;
        }
    }
}
