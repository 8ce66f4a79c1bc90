//! What the tests of the client share: settings, names of keys, and worker processes made of the
//! test program itself.
#![allow(dead_code)]

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use quorumlock::{Client, Config, Guard};

use crate::support::{Cluster, ClusterProbe, Seen, send_signal, spawn_tied};

pub const MS: Duration = Duration::from_millis(1);

/// What a machine with all cores busy may be late by.
pub const SLACK: Duration = Duration::from_millis(300);

/// The longest pause between two rounds, by [`settings`]; the mean is half of it.
pub const PAUSE: Duration = Duration::from_millis(100);

/// The node timeout of [`settings`]: longer than the default, since the machine is shared.
pub fn node_timeout(ttl: Duration) -> Duration {
    (ttl / 4).clamp(50 * MS, 500 * MS)
}

/// Settings with this TTL. `max_ttl` is small, so that a restarted node votes again soon.
pub fn settings(urls: impl IntoIterator<Item = String>, ttl: Duration) -> Config {
    let config = Config::new(urls).ttl(ttl).max_ttl(ttl.max(1000 * MS));
    let config = config.node_timeout(node_timeout(ttl));
    config.retry_delay(PAUSE).retry_max_delay(PAUSE)
}

/// Settings for tests in which nothing is to time out, however busy the machine is.
pub fn patient(urls: impl IntoIterator<Item = String>, ttl: Duration) -> Config {
    settings(urls, ttl).node_timeout((ttl / 4).max(ttl.min(1000 * MS) / 2))
}

pub fn client(cluster: &Cluster, ttl: Duration) -> Client {
    open(settings(cluster.urls(), ttl))
}

pub fn open(config: Config) -> Client {
    Client::with_config(config).expect("settings that can be used")
}

/// Takes a free lock for a test that needs it for something else. A machine that gives no
/// processor for a while may cost a round, but not many in a row.
pub async fn take(client: &Client, name: &str) -> Guard {
    let lock = client.lock(name);
    for _ in 0..10 {
        match lock.acquire().await {
            Ok(guard) => return guard,
            Err(error) if error.is_retryable() => eprintln!("once more: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no lock on {name:?} in ten tries");
}

/// The key of the lock on a plain name.
pub fn key(name: &str) -> String {
    format!("quorumlock:{{{name}}}")
}

/// Whether a key is meant to outlive every lock: the marker, and the fencing counters.
pub fn stays(key: &[u8]) -> bool {
    key == b"quorumlock:since" || key.ends_with(b"}:fence")
}

/// Whether this is the SET of a grant, by itself or in a script: only a grant must find nothing.
pub fn is_grant(seen: &Seen) -> bool {
    let absent = seen.args.iter().any(|arg| arg.eq_ignore_ascii_case(b"nx"));
    seen.name() == "SET" && absent && !stays(&seen.args[1])
}

/// The lock keys on all nodes that answer.
pub fn lock_keys(probe: &ClusterProbe) -> Vec<(usize, String)> {
    let keys = probe.all_keys().into_iter();
    let locks = keys.filter(|(_, key)| !stays(key));
    locks
        .map(|(node, key)| (node, String::from_utf8_lossy(&key).into_owned()))
        .collect()
}

/// On how many nodes the key is.
pub fn copies(probe: &ClusterProbe, key: &str) -> usize {
    probe.owners(key).iter().flatten().count()
}

/// A runtime of one thread, driven by the caller.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

/// Chance for tests that race with real servers: a run cannot be replayed anyway.
pub struct Dice(pub u64);

impl Dice {
    pub fn new() -> Dice {
        Dice(getrandom::u64().expect("chance"))
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    pub fn span(&mut self, limit: Duration) -> Duration {
        let nanos = u64::try_from(limit.as_nanos()).expect("a short span");
        Duration::from_nanos(self.below(nanos))
    }
}

/// A process that runs one ignored test of this very program. Killed when it is dropped.
///
/// It speaks through its standard error, one line at a time.
pub struct Worker {
    child: Child,
    lines: mpsc::Receiver<String>,
    heard: Vec<String>,
}

impl Worker {
    /// `entry` is the full path of the test that the worker is.
    pub fn start(entry: &str, vars: &[(&str, &str)]) -> Worker {
        let program = std::env::current_exe().expect("the path of the test program");
        let mut command = Command::new(program);
        command.args([entry, "--exact", "--ignored", "--nocapture"]);
        command.arg("--test-threads=1").envs(vars.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let mut child = spawn_tied(command).expect("a worker");
        let errors = child.stderr.take().expect("a pipe");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(errors).lines();
            lines
                .map_while(Result::ok)
                .all(|line| sender.send(line).is_ok())
        });
        Worker {
            child,
            lines,
            heard: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The rest of the first line that begins with `start` and was not asked for before.
    pub fn hear(&mut self, start: &str, within: Duration) -> String {
        let deadline = Instant::now() + within;
        if let Some(at) = self.heard.iter().position(|line| line.starts_with(start)) {
            return self.heard.remove(at)[start.len()..].trim().to_owned();
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!(
                    "the worker did not say {start:?}; it said {:#?}",
                    self.heard
                );
            };
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
            self.heard.push(line);
        }
    }

    /// Sends a signal to the worker.
    pub fn signal(&self, signal: i32) {
        send_signal(self.pid(), signal).expect("the worker takes a signal");
    }

    /// SIGKILL; returns when the process is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end of the process; all that it said comes along.
    pub fn finish(mut self, within: Duration) -> (ExitStatus, Vec<String>) {
        let deadline = Instant::now() + within;
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.heard.push(line);
        }
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return (status, std::mem::take(&mut self.heard));
            }
            let late = Instant::now() >= deadline;
            assert!(!late, "the worker does not end; it said {:#?}", self.heard);
            std::thread::sleep(MS);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a worker was told by its parent. Panics without it: a worker runs only as a worker.
pub fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: this is a worker's entry"))
}

/// URLs handed to a worker in one variable.
pub fn told_urls() -> Vec<String> {
    told("WORKER_URLS").split(' ').map(str::to_owned).collect()
}
