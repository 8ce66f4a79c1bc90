//! What a fencing token costs: how often a grant needs its second round trip, and what fenced
//! pairs take beside plain ones, in time and in the servers' CPU.
//!
//! A second trip is counted by the library's own word for it, the event of the raise.
//!
//! ```text
//! cargo bench --bench fencing
//! QUORUMLOCK_BENCH_SECONDS=20 cargo bench --bench fencing
//! ```

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use quorumlock::{Client, Config};
use support::{Contender, Plan, Servers, interleave, is_measured, load_average, pair, setting};
use tokio::runtime::Builder;
use tracing::{Event, Subscriber};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt};

const NODES: usize = 5;
const WORKERS: usize = 2;

/// Raises, as the library tells of them.
static RAISES: AtomicU64 = AtomicU64::new(0);

/// Counts the events of raises.
struct Raises;

impl<S: Subscriber> Layer<S> for Raises {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let raise = event.metadata().target().ends_with("coordinator::fencing");
        RAISES.fetch_add(u64::from(raise), Ordering::Relaxed);
    }
}

fn main() {
    let counting = tracing_subscriber::registry().with(Raises);
    tracing::subscriber::set_global_default(counting).expect("the only subscriber");
    let servers = Servers::start(NODES);
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    let urls = servers.urls();
    let seconds = setting("QUORUMLOCK_BENCH_SECONDS", 10, 0);
    let time = Duration::from_secs(seconds).max(Duration::from_millis(100));
    runtime.block_on(async {
        one_trip(&urls, time).await;
        returned(&urls).await;
        for tasks in [1, 64] {
            let contenders = [plain(&urls), fenced(&urls)];
            let rounds = tokio::spawn(async move { interleave(plan(tasks), &contenders).await });
            println!("{}", rounds.await.expect("the rounds"));
        }
        server_cpu(&urls).await;
    });
}

fn client(urls: &[String], fencing: bool) -> Client {
    let config = Config::new(urls.to_vec()).fencing(fencing);
    Client::with_config(config).expect("URLs of servers that we started")
}

fn plain(urls: &[String]) -> Contender {
    pair("plain", client(urls, false))
}

fn fenced(urls: &[String]) -> Contender {
    pair("fenced", client(urls, true))
}

fn plan(tasks: usize) -> Plan {
    let measured = is_measured();
    Plan {
        tasks,
        rounds: if measured { 20 } else { 1 },
        slice: Duration::from_millis(if measured { 200 } else { 20 }),
    }
}

/// How many grants had their token after one round trip.
async fn one_trip(urls: &[String], time: Duration) {
    println!(
        "tokens after one round trip, {time:?} each, load {}\n",
        load_average()
    );
    println!("| contenders | resources | grants | second trips | one trip % |");
    println!("|---:|---|---:|---:|---:|");
    for (clients, fresh) in [(1, true), (1, false), (2, false), (3, false), (5, false)] {
        let before = RAISES.load(Ordering::Relaxed);
        let end = Instant::now() + time;
        let tasks: Vec<_> = (0..clients)
            .map(|_| tokio::spawn(compete(client(urls, true), fresh, end)))
            .collect();
        let mut grants = 0;
        for task in tasks {
            grants += task.await.expect("a task of the bench");
        }
        let raises = RAISES.load(Ordering::Relaxed) - before;
        let share = 100.0 - percent(raises, grants);
        let names = if fresh { "new each time" } else { "one" };
        println!("| {clients:>10} | {names:<13} | {grants:>6} | {raises:>12} | {share:>10.2} |");
    }
    println!();
}

/// Takes the lock and lets it go until `end`, with a pause that leaves it to the others.
async fn compete(client: Client, fresh: bool, end: Instant) -> u64 {
    let mut grants = 0;
    while Instant::now() < end || grants == 0 {
        let name = match fresh {
            true => format!("fresh:{grants}"),
            false => String::from("shared"),
        };
        let lock = client.lock(name).wait_forever();
        let guard = lock.acquire().await.expect("a lock on healthy nodes");
        grants += 1;
        guard.release().await.expect("a release on healthy nodes");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    grants
}

/// How often the grants need their second trip once nodes are back with an old counter or none,
/// one grant after another.
async fn returned(urls: &[String]) {
    const GRANTS: usize = 4;
    let names = if is_measured() { 300 } else { 2 };
    println!("second trips of the grants after nodes returned, {names} names each\n");
    println!("| nodes | counter | 1st % | 2nd % | 3rd % | 4th % |");
    println!("|---:|---|---:|---:|---:|---:|");
    let client = client(urls, true);
    for nodes in [1, 2] {
        for empty in [false, true] {
            let mut raises = [0; GRANTS];
            for number in 0..names {
                let name = format!("returned:{nodes}:{empty}:{number}");
                grant(&client, &name).await;
                let old = counter(&urls[0], &name, &["GET"]).expect("a counter");
                for _ in 0..3 {
                    grant(&client, &name).await;
                }
                for url in &urls[..nodes] {
                    match empty {
                        true => counter(url, &name, &["DEL"]),
                        false => counter(url, &name, &["SET", &old]),
                    };
                }
                for raised in &mut raises {
                    let before = RAISES.load(Ordering::Relaxed);
                    grant(&client, &name).await;
                    *raised += RAISES.load(Ordering::Relaxed) - before;
                }
            }
            let counter = if empty { "none" } else { "old" };
            let share = raises.map(|raises| format!("{:>5.1}", percent(raises, names)));
            println!("| {nodes:>5} | {counter:<7} | {} |", share.join(" | "));
        }
    }
    println!();
}

/// One grant, and a pause in which its release reaches every node.
async fn grant(client: &Client, name: &str) {
    let guard = client.lock(name).acquire().await.expect("a free lock");
    guard.release().await.expect("a release on healthy nodes");
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// Sends a command on the counter of `name` to one server.
fn counter(url: &str, name: &str, words: &[&str]) -> Option<String> {
    let client = redis::Client::open(url).expect("a URL of ours");
    let mut connection = client.get_connection().expect("a server of ours");
    let mut command = redis::cmd(words[0]);
    command.arg(format!("quorumlock:{{{name}}}:fence"));
    command.arg(&words[1..]);
    command.query(&mut connection).expect("an answer")
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64 * 100.0
}

/// What a pair costs the servers, all five together, with 64 tasks whose commands share pipelines.
async fn server_cpu(urls: &[String]) {
    let mut figures = [Vec::new(), Vec::new()];
    let contenders = [plain(urls), fenced(urls)];
    let rounds = if is_measured() { 10 } else { 1 };
    for round in 0..rounds {
        for turn in 0..2 {
            let which = (round + turn) % 2;
            let before = used(urls).await;
            let pairs = Arc::new(AtomicU64::new(0));
            let end = Instant::now() + Duration::from_millis(if is_measured() { 500 } else { 20 });
            let tasks: Vec<_> = (0..64)
                .map(|task| {
                    let (contender, pairs) = (contenders[which].clone(), Arc::clone(&pairs));
                    tokio::spawn(async move {
                        for number in 0.. {
                            contender
                                .once(format!("{round}:{turn}:{task}:{number}"))
                                .await;
                            pairs.fetch_add(1, Ordering::Relaxed);
                            if Instant::now() >= end {
                                break;
                            }
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("a task of the bench");
            }
            let spent = used(urls).await - before;
            figures[which].push(spent / pairs.load(Ordering::Relaxed) as f64 * 1e6);
        }
    }
    let [plain, fenced] = figures.map(|mut values| {
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    });
    println!(
        "server CPU of a pair on five nodes, 64 tasks: plain {plain:.0} µs, fenced {fenced:.0} µs, \
         ratio {:.2}, load {}",
        fenced / plain,
        load_average()
    );
}

/// The CPU time of all servers, in seconds.
async fn used(urls: &[String]) -> f64 {
    let mut sum = 0.0;
    for url in urls {
        let client = redis::Client::open(url.as_str()).expect("a URL of ours");
        // Blocking, since the async connections of redis-rs give up after half a second.
        let mut connection = client.get_connection().expect("a server of ours");
        let info: String = redis::cmd("INFO")
            .arg("cpu")
            .query(&mut connection)
            .expect("INFO cpu");
        let own =
            |line: &&str| line.starts_with("used_cpu_sys:") || line.starts_with("used_cpu_user:");
        let numbers = info
            .lines()
            .filter(own)
            .filter_map(|line| line.split(':').nth(1));
        sum += numbers
            .filter_map(|number| number.trim().parse::<f64>().ok())
            .sum::<f64>();
    }
    sum
}
