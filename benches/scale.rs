//! How cost grows as work grows: pairs a second and CPU per pair for 1 to 10,000 tasks on five
//! nodes, the same for one to nine nodes, and the memory of tasks that wait.
//!
//! ```text
//! cargo bench --bench scale
//! ```

mod support;

use std::time::Duration;

use quorumlock::Client;
use support::{
    Plan, Servers, client, interleave, is_measured, pair, plain, raw_pair, resident, setting,
};
use tokio::runtime::Builder;

const MOST_NODES: usize = 9;
const NODES: usize = 5;
const WORKERS: usize = 2;
const TTL: Duration = Duration::from_secs(10);

fn main() {
    let servers = Servers::start(MOST_NODES);
    let urls = servers.urls();
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let five = &urls[..NODES];
        let contenders = [
            raw_pair(five, TTL).await,
            pair("without tokens", plain(five)),
            pair("quorumlock", client(five)),
        ];
        let most = if is_measured() { 10_000 } else { 100 };
        for tasks in [1, 10, 100, 1_000, 10_000] {
            if tasks <= most {
                run(tasks, &contenders).await;
            }
        }
        let of = |nodes: usize| pair(&format!("{nodes} nodes"), client(&urls[..nodes]));
        run(64, &[5, 1, 3, 7, 9].map(of)).await;
        waiting(five, if is_measured() { 10_000 } else { 100 }).await;
    });
}

async fn run(tasks: usize, contenders: &[support::Contender]) {
    let plan = Plan {
        tasks,
        rounds: setting("QUORUMLOCK_BENCH_ROUNDS", 7, 1),
        slice: Duration::from_millis(if is_measured() { 300 } else { 20 }),
    };
    let contenders = contenders.to_vec();
    let rounds = tokio::spawn(async move { interleave(plan, &contenders).await });
    println!("{}", rounds.await.expect("the rounds"));
}

/// What a waiting task costs in memory: all behind one another for one lock, and each the first
/// for a lock of its own, which another client holds. The runtime's own task is in it.
async fn waiting(urls: &[String], tasks: usize) {
    println!("| {tasks} waiting tasks | bytes each |");
    println!("|---|---:|");
    for (name, locks) in [("in one line", 1), ("each in a line of its own", tasks)] {
        let (holder, me) = (client(urls), client(urls));
        let mut guards = Vec::new();
        for lock in 0..locks {
            let lock = holder.lock(format!("waiting:{name}:{lock}"));
            guards.push(lock.acquire().await.expect("a free lock"));
        }
        let before = resident();
        let mut handles = Vec::new();
        for task in 0..tasks {
            let key = format!("waiting:{name}:{}", task % locks);
            handles.push(wait(me.clone(), key));
            // They come one after the other: what a burst takes for a moment is no part of it.
            if task % 100 == 99 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(if is_measured() { 3 } else { 0 })).await;
        let bytes = resident().saturating_sub(before);
        println!("| {name} | {} |", bytes / tasks as u64);
        handles.iter().for_each(tokio::task::JoinHandle::abort);
        drop(guards);
        let _ = holder.close().await;
        let _ = me.close().await;
    }
}

fn wait(client: Client, key: String) -> tokio::task::JoinHandle<()> {
    let lock = client.lock(key).wait_forever();
    tokio::spawn(async move { drop(lock.acquire().await) })
}
