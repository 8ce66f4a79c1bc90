//! Five contenders that start on one barrier, each a millisecond from its own node and 15 from the
//! others: how long until the first and the last of them have had the lock, by three ways to deal
//! with the split vote.
//!
//! ```text
//! quorumlock   the one with most grants keeps them and asks again, the rest yield; then notes
//! polling      quorumlock again, but with tries at random moments: retry.delay and jitter alone
//! gate         after the split one agreed node first, the others only where that has granted; tries
//!              at random moments within 20 round trips, as the models had it (a sketch over
//!              redis-rs for healthy nodes: it knows no time and no failure)
//! ```
//!
//! ```text
//! cargo bench --bench split
//! QUORUMLOCK_BENCH_ROUNDS=500 cargo bench --bench split
//! ```

#[path = "../tests/helpers/mod.rs"]
mod helpers;
#[path = "../tests/support/mod.rs"]
mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use helpers::{open, patient};
use quorumlock::Client;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use redis::aio::MultiplexedConnection;
use support::{Cluster, Proxy};
use tokio::sync::Barrier;

const NODES: usize = 5;
const TTL: Duration = Duration::from_secs(10);
const NEAR: Duration = Duration::from_micros(500);
const FAR: Duration = Duration::from_micros(7_500);
const RETRY_DELAY: Duration = Duration::from_millis(20);
const HELD: Duration = Duration::from_millis(1);

/// Takes the lock, holds it for a millisecond, gives it back; when it was taken.
type Contender = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = Instant> + Send>> + Send + Sync>;

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let rounds = std::env::var("QUORUMLOCK_BENCH_ROUNDS").ok();
    let rounds = rounds.and_then(|text| text.parse().ok());
    let rounds = rounds.unwrap_or(if measured { 50 } else { 1 });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(compare(rounds));
}

async fn compare(rounds: usize) {
    let cluster = Cluster::start(NODES);
    let proxies: Vec<_> = (0..NODES).map(|near| paths(&cluster, near)).collect();
    let urls = |near: usize| proxies[near].iter().map(Proxy::url);
    let mut strategies: Vec<(&str, Vec<Contender>)> = vec![
        ("quorumlock", Vec::new()),
        ("polling", Vec::new()),
        ("gate", Vec::new()),
    ];
    for near in 0..NODES {
        let settings = || patient(urls(near), TTL).retry_delay(RETRY_DELAY);
        strategies[0].1.push(product(open(settings())));
        // Where rounds are counted they are made, and not waited for.
        let polls = settings().retry_attempts(u32::MAX);
        strategies[1].1.push(product(open(polls)));
        strategies[2].1.push(gate(urls(near).collect()).await);
    }
    for (_, contenders) in &strategies {
        for contender in contenders {
            contender("warm".into()).await;
        }
    }
    let mut random = StdRng::seed_from_u64(7);
    let mut seen = vec![(Vec::new(), Vec::new()); strategies.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..strategies.len()).collect();
        order.shuffle(&mut random);
        for turn in order {
            let (name, contenders) = &strategies[turn];
            let (first, last) = start(contenders, format!("split:{name}:{round}")).await;
            seen[turn].0.push(first);
            seen[turn].1.push(last);
        }
    }
    println!("{rounds} rounds of five contenders, 1 ms and 15 ms from the nodes, interleaved\n");
    println!("| | first ms, median | 99 % | last ms, median | 99 % | worst |");
    println!("|---|---:|---:|---:|---:|---:|");
    for ((name, _), (mut first, mut last)) in strategies.iter().zip(seen) {
        let [first_half, first_most, _] = figures(&mut first);
        let [last_half, last_most, worst] = figures(&mut last);
        println!(
            "| {name} | {first_half:.0} | {first_most:.0} | {last_half:.0} | {last_most:.0} | \
             {worst:.0} |"
        );
    }
}

/// Median, 99 % and the most, in milliseconds.
fn figures(times: &mut [Duration]) -> [f64; 3] {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    [0.5, 0.99, 1.0].map(|share| at(share).as_secs_f64() * 1e3)
}

fn paths(cluster: &Cluster, near: usize) -> Vec<Proxy> {
    let proxies = Proxy::in_front_of_all(cluster.ports());
    for (node, proxy) in proxies.iter().enumerate() {
        proxy.delay(if node == near { NEAR } else { FAR });
    }
    proxies
}

/// All at once; after how long the first of them had it, and the last.
async fn start(contenders: &[Contender], name: String) -> (Duration, Duration) {
    let barrier = Arc::new(Barrier::new(contenders.len()));
    let tasks = contenders.iter().map(|contender| {
        let (contender, barrier, name) = (contender.clone(), barrier.clone(), name.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            let began = Instant::now();
            contender(name).await - began
        })
    });
    let took = join_all(tasks).await.into_iter();
    let took: Vec<Duration> = took.map(|task| task.expect("no panic")).collect();
    let first = took.iter().min().copied().expect("five of them");
    (first, took.into_iter().max().expect("five of them"))
}

fn product(client: Client) -> Contender {
    Arc::new(move |name| {
        let lock = client.lock(name).wait_forever();
        Box::pin(async move {
            let guard = lock.acquire().await.expect("a lock on healthy nodes");
            let at = Instant::now();
            tokio::time::sleep(HELD).await;
            assert!(guard.is_held());
            guard.release().await.expect("a release on healthy nodes");
            at
        })
    })
}

async fn gate(urls: Vec<String>) -> Contender {
    let connect = |url: String| async move {
        let client = redis::Client::open(url).expect("a URL of ours");
        let connection = client.get_multiplexed_async_connection().await;
        connection.expect("a server that we started")
    };
    let nodes: Arc<[MultiplexedConnection]> = join_all(urls.into_iter().map(connect)).await.into();
    Arc::new(move |name| {
        let nodes = Arc::clone(&nodes);
        Box::pin(async move {
            let token = rand::random::<u64>().to_string();
            let key = format!("gate:{name}");
            let mut through = true;
            loop {
                if through {
                    let votes = join_all(nodes.iter().map(|node| set(node, &key, &token))).await;
                    if votes.into_iter().filter(|&yes| yes).count() > NODES / 2 {
                        let at = Instant::now();
                        tokio::time::sleep(HELD).await;
                        give_back(&nodes, &key, &token).await;
                        return at;
                    }
                    give_back(&nodes, &key, &token).await;
                }
                let pause = rand::rng().random_range(Duration::ZERO..20 * 2 * FAR);
                tokio::time::sleep(pause).await;
                through = set(&nodes[0], &key, &token).await;
            }
        })
    })
}

async fn give_back(nodes: &[MultiplexedConnection], key: &str, token: &str) {
    join_all(nodes.iter().map(|node| delete(node, key, token))).await;
}

/// Whether the key is there for us: set now, or before.
async fn set(node: &MultiplexedConnection, key: &str, token: &str) -> bool {
    let script = "redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) \
        return redis.call('get', KEYS[1])";
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(1).arg(key).arg(token).arg(10_000);
    let owner: redis::RedisResult<String> = command.query_async(&mut node.clone()).await;
    owner.expect("a live server") == token
}

async fn delete(node: &MultiplexedConnection, key: &str, token: &str) {
    let script = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end \
        return redis.call('del', KEYS[1])";
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(1).arg(key).arg(token);
    let deleted: redis::RedisResult<i64> = command.query_async(&mut node.clone()).await;
    deleted.expect("a live server");
}
