//! The cold start of the command: until its child runs, and until it has ended, on five local
//! nodes, beside what `flock` needs for the same child and one acquire with a new client.
//!
//! Whole processes in interleaved rounds; a ratio is the median of those within a round.
//!
//! ```text
//! cargo bench --features cli --bench cli
//! ```

mod support;

use std::{
    fs,
    io::Read,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use quorumlock::Client;
use support::{Servers, is_measured, load_average, quantile};
use tokio::runtime::Runtime;

const NODES: usize = 5;

/// What one round has measured.
struct Round {
    flock: Times,
    command: Times,
    acquire: Duration,
}

#[derive(Clone, Copy)]
struct Times {
    /// Until the child has said something.
    running: Duration,
    /// Until the command has ended.
    whole: Duration,
}

fn main() {
    let servers = Servers::start(NODES);
    let dir = tempfile::tempdir().expect("a directory");
    let nodes = format!("nodes = {:?}\n", servers.urls());
    fs::write(dir.path().join("quorumlock.toml"), nodes).expect("a file");
    let runtime = Runtime::new().expect("a runtime");
    let before = load_average();
    let count = if is_measured() { 101 } else { 2 };
    // The first of each loads pages and scripts.
    round(dir.path(), &runtime, &servers, 0);
    let rounds: Vec<_> = (1..=count)
        .map(|index| round(dir.path(), &runtime, &servers, index))
        .collect();
    println!("{count} rounds, load {before} → {}\n", load_average());
    println!("| {:<34} | median ms | ratio |", "");
    println!("|---|---:|---:|");
    let of = |what: &dyn Fn(&Round) -> Duration| {
        let mut all: Vec<_> = rounds.iter().map(what).collect();
        quantile(&mut all, 0.5)
    };
    let row =
        |name: &str, what: &dyn Fn(&Round) -> Duration, floor: &dyn Fn(&Round) -> Duration| {
            let ratio = |round: &Round| {
                let ratio = what(round).as_secs_f64() / floor(round).as_secs_f64();
                Duration::from_secs_f64(ratio)
            };
            let (median, ratio) = (of(what), of(&ratio));
            let (millis, ratio) = (median.as_secs_f64() * 1e3, ratio.as_secs_f64());
            println!("| {name:<34} | {millis:>9.2} | {ratio:>5.2} |");
        };
    let running = |round: &Round| round.flock.running + round.acquire;
    let whole = |round: &Round| round.flock.whole + round.acquire;
    row(
        "flock, until the child runs",
        &|round| round.flock.running,
        &running,
    );
    row("one acquire, new client", &|round| round.acquire, &running);
    row(
        "quorumlock, until the child runs",
        &|round| round.command.running,
        &running,
    );
    row("flock, whole", &|round| round.flock.whole, &whole);
    row("quorumlock, whole", &|round| round.command.whole, &whole);
}

fn round(dir: &Path, runtime: &Runtime, servers: &Servers, index: usize) -> Round {
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorumlock"));
        command.args(["run", &format!("job-{index}"), "--", "echo", "up"]);
        times(command, dir)
    };
    let flock = || {
        let mut command = Command::new("flock");
        command.args(["lock", "echo", "up"]);
        times(command, dir)
    };
    let acquire = || {
        let begin = Instant::now();
        let client = Client::open(servers.urls()).expect("a client");
        let guard = client.lock(format!("bench-{index}"));
        let guard = runtime.block_on(guard.acquire()).expect("a free lock");
        let took = begin.elapsed();
        drop(guard);
        runtime.block_on(client.close()).expect("nodes that answer");
        took
    };
    // By turns, so that nobody is always the first.
    if index.is_multiple_of(2) {
        let (flock, acquire) = (flock(), acquire());
        Round {
            command: command(),
            flock,
            acquire,
        }
    } else {
        let command = command();
        Round {
            command,
            flock: flock(),
            acquire: acquire(),
        }
    }
}

fn times(mut command: Command, dir: &Path) -> Times {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUORUMLOCK_") {
            command.env_remove(name);
        }
    }
    command.current_dir(dir).stdin(Stdio::null());
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut byte = [0];
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut byte).expect("the child speaks");
    let running = begin.elapsed();
    let status = child.wait().expect("its end");
    assert!(status.success(), "{status}");
    Times {
        running,
        whole: begin.elapsed(),
    }
}
