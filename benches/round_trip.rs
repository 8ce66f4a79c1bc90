//! How long one acquire+release pair takes when nobody else asks: five servers, one task, a key of
//! its own each time.
//!
//! The table comes first: contenders in interleaved rounds, and what counts are its ratios to
//! redis-rs alone. Criterion's measurements after it are for comparing one contender with its
//! own past.
//!
//! ```text
//! cargo bench --bench round_trip
//! QUORUMLOCK_SERVER=/path/to/valkey-server QUORUMLOCK_BENCH_SEED=7 cargo bench --bench round_trip
//! ```

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use criterion::Criterion;
use support::{Contender, Plan, Servers, client, interleave, is_measured, pair, plain, raw_pair};
use tokio::runtime::{Builder, Runtime};

const NODES: usize = 5;
const WORKERS: usize = 2;
const TTL: Duration = Duration::from_secs(10);

fn main() {
    let servers = Servers::start(NODES);
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    let contenders = runtime.block_on(contenders(&servers.urls()));

    let rounds = runtime.spawn({
        let contenders = contenders.clone();
        async move { interleave(plan(), &contenders).await }
    });
    println!("{}", runtime.block_on(rounds).expect("the rounds"));
    criterion(&runtime, &contenders);
}

/// All that is compared; the first is the one that the others are compared with.
async fn contenders(urls: &[String]) -> Vec<Contender> {
    vec![
        raw_pair(urls, TTL).await,
        pair("without tokens", plain(urls)),
        pair("quorumlock", client(urls)),
    ]
}

fn plan() -> Plan {
    let measured = is_measured();
    Plan {
        tasks: 1,
        rounds: if measured { 25 } else { 1 },
        slice: Duration::from_millis(if measured { 200 } else { 20 }),
    }
}

fn criterion(runtime: &Runtime, contenders: &[Contender]) {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("round_trip");
    let keys = Arc::new(AtomicU64::new(0));
    for contender in contenders {
        group.bench_function(contender.name(), |bencher| {
            bencher.iter_custom(|iterations| {
                let (contender, keys) = (contender.clone(), Arc::clone(&keys));
                let pairs = runtime.spawn(async move {
                    let begin = Instant::now();
                    for _ in 0..iterations {
                        let key = format!("criterion:{}", keys.fetch_add(1, Ordering::Relaxed));
                        assert!(contender.once(key).await, "the servers refused a free key");
                    }
                    begin.elapsed()
                });
                runtime.block_on(pairs).expect("the pairs")
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
