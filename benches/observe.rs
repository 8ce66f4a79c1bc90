//! What it costs to be watched: acquire+release pairs without a recorder and with one, and without
//! a subscriber of traces and with one.
//!
//! ```text
//! cargo bench --features metrics --bench observe
//! QUORUMLOCK_BENCH_ROUNDS=25 cargo bench --features metrics --bench observe
//! QUORUMLOCK_BENCH_PAIRS=50000 PROGRAM --bench     # so many pairs, 64 at a time, and no table
//! ```
//!
//! The last form is for comparing programs that were built with the feature and without it.
//!
//! A client finds its counters when it starts; so of two clients in one process, the one that
//! started before the recorder was there counts nothing, and they can take turns. Subscribers are
//! set for the tasks that call, not for the client's thread: what they hear are spans of `acquire`
//! and `release`. While one of them exists, to ask whether anybody listens costs all contenders a
//! little more; so the first table is made before there is any.

mod support;

use std::time::Duration;

use support::{Contender, Plan, Servers, client, interleave, is_measured, pair, setting};
use tokio::runtime::Builder;
use tracing::instrument::WithSubscriber;
use tracing::{Dispatch, level_filters::LevelFilter};
use tracing_subscriber::layer::SubscriberExt;

const NODES: usize = 5;
const WORKERS: usize = 2;
const TASKS: usize = 64;

fn main() {
    let servers = Servers::start(NODES);
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let urls = servers.urls();
        let bare = pair("nobody listens", client(&urls));
        let pairs: usize = setting("QUORUMLOCK_BENCH_PAIRS", 0, 0);
        if pairs > 0 {
            return work_off(&bare, pairs).await;
        }
        // Its counters are found now, and are nobody's.
        assert!(bare.once("first".to_owned()).await);
        let mut contenders = vec![bare.clone()];
        contenders.extend(recorded(&urls));
        measure("A recorder", &contenders).await;

        let traced = [
            bare.clone(),
            heard("a subscriber at INFO", &bare, LevelFilter::INFO),
            heard("a subscriber at DEBUG", &bare, LevelFilter::DEBUG),
        ];
        measure("A subscriber", &traced).await;
    });
}

/// Does so many pairs, and nothing else.
async fn work_off(bare: &Contender, pairs: usize) {
    let tasks = (0..TASKS).map(|task| {
        let bare = bare.clone();
        tokio::spawn(async move {
            for number in 0..pairs / TASKS {
                assert!(bare.once(format!("{task}-{number}")).await);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("a task of the bench");
    }
}

/// The same with an exporter for Prometheus that collects.
#[cfg(feature = "metrics")]
fn recorded(urls: &[String]) -> Option<Contender> {
    let builder = metrics_exporter_prometheus::PrometheusBuilder::new();
    let collected = builder
        .set_buckets(&[0.0005, 0.001, 0.005, 0.01, 0.1, 1.0, 10.0])
        .and_then(|builder| builder.install_recorder());
    let collected = collected.expect("no other recorder");
    // As a scrape does, so that what is collected does not pile up.
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            drop(collected.render());
        }
    });
    Some(pair("a recorder collects", client(urls)))
}

#[cfg(not(feature = "metrics"))]
fn recorded(_: &[String]) -> Option<Contender> {
    None
}

/// The same while a subscriber keeps the spans of this level.
fn heard(name: &str, bare: &Contender, level: LevelFilter) -> Contender {
    let subscriber = tracing_subscriber::registry().with(level);
    let dispatch = Dispatch::new(subscriber);
    let bare = bare.clone();
    Contender::new(name, move |key| {
        let (bare, dispatch) = (bare.clone(), dispatch.clone());
        async move { bare.once(key).with_subscriber(dispatch).await }
    })
}

async fn measure(what: &str, contenders: &[Contender]) {
    for tasks in [1, 64, 1_000] {
        let plan = Plan {
            tasks,
            rounds: setting("QUORUMLOCK_BENCH_ROUNDS", 11, 1),
            slice: Duration::from_millis(if is_measured() { 300 } else { 20 }),
        };
        // On a worker of the runtime, as a service would be.
        let contenders = contenders.to_vec();
        let rounds = tokio::spawn(async move { interleave(plan, &contenders).await });
        println!("{what}\n{}", rounds.await.expect("the rounds"));
    }
}
