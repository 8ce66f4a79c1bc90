//! How many acquire+release pairs a process gets done with 1, 64 and 1,000 tasks at once, and what
//! each costs it in CPU time, beside redis-rs alone, and beside the limit: the same commands from one
//! thread, written by hand. Every task uses a key of its own each time.
//!
//! ```text
//! cargo bench --bench throughput
//! QUORUMLOCK_BENCH_ROUNDS=25 cargo bench --bench throughput
//! ```

mod support;

use std::time::Duration;

use support::{
    Plan, Servers, bare_pair, client, interleave, is_measured, pair, plain, raw_pair, setting,
};
use tokio::runtime::Builder;

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
    runtime.block_on(async {
        let urls = servers.urls();
        let contenders = [
            raw_pair(&urls, TTL).await,
            pair("without tokens", plain(&urls)),
            bare_pair("bare", &urls, false),
            pair("quorumlock", client(&urls)),
            bare_pair("bare, fenced", &urls, true),
        ];
        for tasks in [1, 64, 1_000] {
            let plan = Plan {
                tasks,
                rounds: setting("QUORUMLOCK_BENCH_ROUNDS", 11, 1),
                slice: Duration::from_millis(if is_measured() { 300 } else { 20 }),
            };
            // On a worker of the runtime, as a service would be.
            let contenders = contenders.clone();
            let rounds = tokio::spawn(async move { interleave(plan, &contenders).await });
            println!("{}", rounds.await.expect("the rounds"));
        }
    });
}
