//! Runs the examples that need servers, on servers of their own, so that they cannot rot.

mod support;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use support::{Cluster, Postgres, eventually, send_signal, spawn_tied};

/// The example's program. `cargo test` has built it as a rule; where only this test was asked for,
/// cargo builds it now, with the features and the profile of this test.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let directory = test
        .parent()
        .and_then(Path::parent)
        .expect("a profile's directory");
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--example", name, "--profile", profile]);
    build.arg("--features").arg(features().join(","));
    build
        .arg("--target-dir")
        .arg(directory.parent().expect("a target directory"));
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    // What cargo tells a test of its package: a build script that looks would run again.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_MANIFEST")
            || name.to_string_lossy().starts_with("CARGO_PKG")
        {
            build.env_remove(name);
        }
    }
    let built = build.output().expect("cargo runs");
    assert!(built.status.success(), "{}", text(&built.stderr));
    directory.join("examples").join(name)
}

/// Those of this build, so that nothing is built twice.
fn features() -> Vec<&'static str> {
    let all = [
        ("cli", cfg!(feature = "cli")),
        ("metrics", cfg!(feature = "metrics")),
        ("postgres", cfg!(feature = "postgres")),
        ("serde", cfg!(feature = "serde")),
        ("test-util", cfg!(feature = "test-util")),
        ("tls", cfg!(feature = "tls")),
    ];
    all.iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| *name)
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(name: &str, nodes: &Cluster, postgres: Option<&Postgres>) -> String {
    let mut command = Command::new(program(name));
    command.env("QUORUMLOCK_NODES", nodes.urls().join(","));
    if let Some(postgres) = postgres {
        command.env("QUORUMLOCK_POSTGRES", postgres.config("postgres"));
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .stdin(Stdio::null())
        .output()
        .expect("the example runs");
    let told = text(&stdout);
    assert!(
        status.success(),
        "{name}: {status}\n{told}{}",
        text(&stderr)
    );
    told
}

#[test]
fn seat_booking_sells_no_seat_twice() {
    let (nodes, postgres) = (Cluster::start(5), Postgres::shared());
    let told = run("seat_booking", &nodes, Some(&postgres));
    assert!(told.contains("each sold once"), "{told}");
    println!("{told}");
}

#[test]
fn the_operator_sees_a_lock_and_frees_it() {
    let nodes = Cluster::start(3);
    for node in nodes.iter() {
        let (owner, ttl) = ("ab".repeat(20), std::time::Duration::from_secs(60));
        let mut probe = node.probe();
        probe.set_raw("quorumlock:{job}", owner, Some(ttl));
    }
    let operator = |verb: &str, name: &str| {
        let mut command = Command::new(program("operator"));
        command.env("QUORUMLOCK_NODES", nodes.urls().join(","));
        let output = command.args([verb, name]).output();
        let output = output.expect("the example runs");
        (output.status.code(), text(&output.stdout))
    };
    let (code, told) = operator("status", "job");
    assert!(code == Some(0) && told.contains("by abababab…"), "{told}");
    println!("{told}");
    let (code, told) = operator("list", "j");
    assert!(code == Some(0) && told.contains("\n\"job\"  "), "{told}");
    println!("{told}");
    let (code, told) = operator("force-release", "job");
    assert!(
        code == Some(0) && told.contains("it held the lock"),
        "{told}"
    );
    println!("{told}");
    assert_eq!(operator("status", "job").0, Some(1));
}

#[test]
fn shared_file_refuses_the_stale_line() {
    let told = run("shared_file", &Cluster::start(5), None);
    assert!(told.contains("Ada's second line is not in it"), "{told}");
    println!("{told}");
}

#[test]
fn a_program_without_async_writes_its_report() {
    let told = run("blocking", &Cluster::start(5), None);
    assert!(told.contains("5 pages written"), "{told}");
    assert!(told.contains("released: InTime"), "{told}");
    println!("{told}");
}

/// A candidate whose lines go to `news`.
fn candidate(name: &str, nodes: &Cluster, news: &Sender<String>) -> Child {
    let mut command = Command::new(program("leader_election"));
    command.arg(name).stdin(Stdio::null());
    command.env("QUORUMLOCK_NODES", nodes.urls().join(","));
    command.stdout(Stdio::piped());
    let mut child = spawn_tied(command).expect("the example runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let news = news.clone();
    std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .try_for_each(|line| news.send(line))
    });
    child
}

/// What the candidates say, each line until somebody asked for it.
struct News {
    lines: Receiver<String>,
    kept: Vec<String>,
}

impl News {
    /// The first line with `text` in it that was not asked for yet.
    fn of(&mut self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(at) = self.kept.iter().position(|line| line.contains(text)) {
                return self.kept.remove(at);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            self.kept
                .push(line.unwrap_or_else(|_| panic!("nobody said {text:?}: {:?}", self.kept)));
        }
    }

    /// Who leads next, and the term.
    fn leader(&mut self) -> (String, u64) {
        let line = self.of(" leads, term ");
        let (name, term) = line.split_once(" leads, term ").expect("both");
        (name.to_owned(), term.parse().expect("a number"))
    }
}

#[test]
fn a_leader_steps_down_on_loss_and_hands_over_when_it_leaves() {
    let nodes = Cluster::start(3);
    let (send, lines) = mpsc::channel();
    let mut news = News {
        lines,
        kept: Vec::new(),
    };
    let ada = candidate("ada", &nodes, &send);
    let (first, term) = news.leader();
    assert_eq!(first, "ada");
    let bob = candidate("bob", &nodes, &send);
    news.of("bob stands");

    for node in nodes.iter() {
        node.probe().command(&["DEL", "quorumlock:{leader}"]);
    }
    // The next one may lead before: a holder hears of a deletion at its next extension.
    news.of("ada steps down: ");
    let (next, second_term) = news.leader();
    assert!(second_term > term, "{second_term} after {term}");

    // An interrupted leader releases, and says so by its exit status.
    let (mut leaves, mut stays) = match next.as_str() {
        "ada" => (ada, bob),
        _ => (bob, ada),
    };
    send_signal(leaves.id(), libc::SIGINT).expect("it runs");
    assert!(leaves.wait().expect("it ends").success());
    let (last, third_term) = news.leader();
    assert!(last != next && third_term > second_term, "{last}");
    send_signal(stays.id(), libc::SIGINT).expect("it runs");
    assert!(stays.wait().expect("it ends").success());
    let free = || {
        nodes
            .probe()
            .owners("quorumlock:{leader}")
            .iter()
            .all(Option::is_none)
    };
    assert!(eventually(Duration::from_secs(2), free));
}

/// What a scraper gets from this address.
#[cfg(feature = "metrics")]
fn scrape(address: &str) -> String {
    use std::io::{Read, Write};

    let mut stream = std::net::TcpStream::connect(address).expect("the example listens");
    let limit = Some(Duration::from_secs(10));
    stream.set_read_timeout(limit).expect("a limit");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Every metric is exported, with its help, and counts.
#[cfg(feature = "metrics")]
#[test]
fn the_service_that_is_watched_exports_every_metric() {
    let nodes = Cluster::start(3);
    let mut command = Command::new(program("prometheus"));
    command
        .arg("0")
        .env("QUORUMLOCK_NODES", nodes.urls().join(","));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut service = spawn_tied(command).expect("the example runs");
    let mut lines = BufReader::new(service.stdout.take().expect("a pipe")).lines();
    let url = lines.next().expect("a line").expect("text");
    let address = url.strip_prefix("http://").expect("a URL");
    let address = address.strip_suffix("/metrics").expect("a path").to_owned();
    // The last one there is: the kept lock is extended.
    let extended = "quorumlock_extensions_total{outcome=\"renewed\"} ";
    let counted = || {
        let told = scrape(&address);
        told.contains(extended) && !told.contains(&format!("{extended}0\n"))
    };
    assert!(eventually(Duration::from_secs(20), counted));
    let told = scrape(&address);
    for name in quorumlock::metrics::names() {
        // A failure has yet to happen.
        let there = told.contains(&format!("# TYPE {name} ")) && told.contains("# HELP ");
        assert!(
            there || name == "quorumlock_node_failures_total",
            "{name}: {told}"
        );
    }
    send_signal(service.id(), libc::SIGINT).expect("it runs");
    assert!(service.wait().expect("it ends").success());
}
