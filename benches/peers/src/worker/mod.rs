//! The worker of the Rust libraries.

mod peer;

use std::{
    io::{self, BufRead, Write},
    time::Duration,
};

use tokio::{
    runtime::Builder,
    task::JoinSet,
    time::{Instant, sleep_until, timeout, timeout_at},
};

use crate::process::{Answer, Hold, Job, Order, now};
use peer::Peer;

const THREADS: usize = 2;

/// How long a release may take before it is given up: nothing here may hang for good.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// Serves the orders on standard input until it ends.
pub fn serve(name: &str) -> Result<(), String> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut peer = None;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let order = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let answer = runtime
            .block_on(obey(name, order, &mut peer))
            .unwrap_or_else(|error| Answer::Error { error });
        let mut text = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
        text.push('\n');
        let mut output = io::stdout().lock();
        output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush())
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn obey(name: &str, order: Order, peer: &mut Option<Peer>) -> Result<Answer, String> {
    match order {
        Order::Connect {
            urls,
            warm_ms,
            tasks,
            key,
        } => {
            let connected = Peer::connect(name, &urls).await?;
            let warm = Job {
                key,
                tasks,
                ms: warm_ms,
                at: now(),
                shared: false,
                section_us: 0,
            };
            run(&connected, warm).await?;
            *peer = Some(connected);
            Ok(Answer::Ready {
                ready: version(name),
            })
        }
        Order::Run(job) => match peer {
            Some(peer) => run(peer, job).await,
            None => Err("not connected".to_owned()),
        },
    }
}

async fn run(peer: &Peer, job: Job) -> Result<Answer, String> {
    let begin = Instant::now() + Duration::from_micros(job.at.saturating_sub(now()));
    let end = begin + Duration::from_millis(job.ms);
    sleep_until(begin).await;
    if job.shared {
        compete_all(peer, &job, end).await
    } else {
        repeat_all(peer, &job, begin, end).await
    }
}

async fn compete_all(peer: &Peer, job: &Job, end: Instant) -> Result<Answer, String> {
    let mut tasks = JoinSet::new();
    for task in 0..job.tasks {
        tasks.spawn(compete(peer.clone(), job.clone(), task, end));
    }
    let (mut holds, mut failed) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (own, failures) = done.map_err(|error| error.to_string())?;
        holds.extend(own);
        failed += failures;
    }
    Ok(Answer::Holds { holds, failed })
}

/// Takes the one key again and again; the holds, and how often the library gave up.
async fn compete(peer: Peer, job: Job, task: usize, end: Instant) -> (Vec<Hold>, u64) {
    let task = task as u64;
    let (mut holds, mut failed) = (Vec::new(), 0);
    while Instant::now() < end {
        let asked = now();
        let held = loop {
            match timeout_at(end, peer.acquire(&job.key)).await {
                Ok(Some(held)) => break Some(held),
                Ok(None) if Instant::now() < end => {
                    failed += 1;
                    peer.pause().await;
                }
                Ok(None) | Err(_) => break None,
            }
        };
        let Some(held) = held else {
            holds.push((task, asked, 0, 0));
            break;
        };
        let got = now();
        if job.section_us > 0 {
            // Not tokio's sleep, which rounds a millisecond up to two. It keeps a worker busy, as
            // work would; the others run on the other one.
            std::thread::sleep(Duration::from_micros(job.section_us));
        }
        holds.push((task, asked, got, now()));
        let released = timeout(RELEASE_LIMIT, held.release()).await;
        failed += u64::from(released != Ok(true));
    }
    (holds, failed)
}

async fn repeat_all(
    peer: &Peer,
    job: &Job,
    begin: Instant,
    end: Instant,
) -> Result<Answer, String> {
    let mut tasks = JoinSet::new();
    for task in 0..job.tasks {
        let prefix = format!("{}:{task}", job.key);
        tasks.spawn(repeat(peer.clone(), prefix, end));
    }
    let (mut micros, mut failed) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (own, failures) = done.map_err(|error| error.to_string())?;
        micros.extend(own);
        failed += failures;
    }
    let wall_us = begin.elapsed().as_secs_f64() * 1e6;
    micros.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| micros[((micros.len() - 1) as f64 * share).round() as usize];
    Ok(Answer::Pairs {
        p50: at(0.5),
        p99: at(0.99),
        pairs: micros.len() as u64,
        failed,
        wall_us,
    })
}

/// Takes and gives back fresh keys, once at least; how long each pair took, and failures.
async fn repeat(peer: Peer, prefix: String, end: Instant) -> (Vec<f64>, u64) {
    let (mut micros, mut failed) = (Vec::new(), 0);
    loop {
        let begin = Instant::now();
        let done = match peer.acquire(&format!("{prefix}:{}", micros.len())).await {
            Some(held) => timeout(RELEASE_LIMIT, held.release()).await == Ok(true),
            None => false,
        };
        failed += u64::from(!done);
        micros.push(begin.elapsed().as_secs_f64() * 1e6);
        if Instant::now() >= end {
            return (micros, failed);
        }
    }
}

/// The library's name and version, as the lock file of this crate has it.
fn version(name: &str) -> String {
    let name = name.split(' ').next().unwrap_or(name);
    let stated = include_str!("../../Cargo.lock")
        .split("[[package]]")
        .find(|package| package.contains(&format!("name = \"{name}\"\n")))
        .and_then(|package| package.split("version = \"").nth(1))
        .and_then(|rest| rest.split('"').next());
    format!("{name} {}", stated.unwrap_or("?"))
}
