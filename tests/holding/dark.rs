//! F23: nodes that stop and come back, seen by a program that registers nothing.
//! Tier: 3 outages every day, 20 under full.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorumlock::{Client, RestartGuard};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_millis(500);
const LOCKS: usize = 10;

#[test]
fn outages_end_no_process_and_flood_no_log() {
    let outages = pick(3, 20);
    let cluster = Cluster::start(5);
    let dir = tempfile::tempdir().expect("a directory");
    let stop = dir.path().join("stop");
    let (urls, stop_text) = (cluster.urls().join(" "), stop.to_str().expect("plain"));
    let vars = [("WORKER_URLS", &*urls), ("WORKER_STOP", stop_text)];
    let mut worker = Worker::start("dark::program", &vars);
    worker.hear("all held", Duration::from_secs(20));
    for _ in 0..outages {
        cluster.iter().for_each(Server::kill);
        std::thread::sleep(3 * TTL);
        cluster.iter().for_each(Server::restart_empty);
        worker.hear("all held", Duration::from_secs(20));
    }
    // Plain contention with one node down.
    cluster[0].kill();
    std::thread::sleep(pick(4, 40) * TTL);
    std::fs::write(&stop, "").expect("a file");
    let summary = worker.hear("summary ", Duration::from_secs(20));
    let (status, said) = worker.finish(Duration::from_secs(10));
    assert!(status.success(), "{said:#?}");

    let counts: BTreeMap<&str, usize> = summary
        .split(';')
        .filter_map(|part| part.rsplit_once('='))
        .map(|(name, count)| (name.trim(), count.parse().expect("a number")))
        .collect();
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    assert_eq!(count("panics"), 0, "{summary}\n{said:#?}");
    assert_eq!(count("ERROR"), 0, "{summary}");
    // One warning for each node that goes, and none while it is away.
    let gone = 5 * outages + 1;
    let down = count("WARN the node is down");
    assert!((5..=gone).contains(&down), "{down} of {gone}: {summary}");
    let lost = count("WARN lock lost");
    assert!((LOCKS..=LOCKS * (outages + 1)).contains(&lost), "{summary}");
    assert_eq!(count("WARN"), down + lost, "more warnings: {summary}");
}

/// Holds ten locks and waits for each of them a second time, until it is told to stop.
#[test]
#[ignore = "a process of the test above"]
fn program() {
    let log = Log::default();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(log.clone()))
        .expect("the first subscriber");
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    std::panic::set_hook(Box::new(move |info| {
        eprintln!("panic: {info}");
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    let config = settings(told_urls(), TTL).restart_guard(RestartGuard::Off);
    let client = open(config);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let held = Arc::new(AtomicUsize::new(0));
    let over = Arc::new(AtomicBool::new(false));
    for one in 0..LOCKS {
        let (client, held) = (client.clone(), Arc::clone(&held));
        runtime.spawn(hold(client.clone(), format!("held-{one}"), held));
        runtime.spawn(wait(client, format!("held-{one}"), Arc::clone(&over)));
    }
    let stop = told("WORKER_STOP");
    let mut before = 0;
    // Two minutes at most.
    for _ in 0..60_000 {
        std::thread::sleep(2 * MS);
        let now = held.load(Ordering::SeqCst);
        if now == LOCKS && before < LOCKS {
            eprintln!("all held");
        }
        before = now;
        if Path::new(&stop).exists() {
            break;
        }
    }
    // Before the end of the tasks, which is not what is looked at.
    let log = log.0.lock().expect("the log").clone();
    over.store(true, Ordering::SeqCst);
    let lines = log.iter().map(|(line, count)| format!("{line}={count}"));
    let panics = format!("panics={}", panics.load(Ordering::SeqCst));
    let lines: Vec<String> = lines.chain([panics]).collect();
    eprintln!("summary {}", lines.join(";"));
    runtime.shutdown_background();
}

async fn hold(client: Client, name: String, held: Arc<AtomicUsize>) {
    let lock = client.lock(name).wait_forever();
    loop {
        // Retryable or not, the next try may do better.
        let Ok(guard) = lock.acquire().await else {
            continue;
        };
        held.fetch_add(1, Ordering::SeqCst);
        guard.lost().await;
        held.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits in line behind the holder, and is in its way for a moment at most when it is served.
async fn wait(client: Client, name: String, over: Arc<AtomicBool>) {
    let lock = client.lock(name).wait(2 * TTL);
    while !over.load(Ordering::SeqCst) {
        drop(lock.acquire().await);
        tokio::time::sleep(20 * MS).await;
    }
}

/// Counts what is logged, by level and message.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<BTreeMap<String, usize>>>);

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let level = *event.metadata().level();
        if level > Level::WARN {
            return;
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        let mut counts = self.0.lock().expect("the log");
        *counts.entry(level.to_string()).or_default() += 1;
        *counts.entry(format!("{level} {}", message.0)).or_default() += 1;
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}").replace([';', '='], ",");
        }
    }
}
