//! The services of `examples/services`: what a request is answered, and who does a job. Built and
//! run under `QUORUMLOCK_FULL=1` only, since their frameworks take a minute to build.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use support::{Cluster, eventually, full, send_signal, spawn_tied};

/// What a service says within this has come in time.
const PATIENCE: Duration = Duration::from_secs(20);

/// The services' programs, built once. Nothing where they are not asked for.
fn program(name: &str) -> Option<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if !full() {
        eprintln!("left out: the services are built under QUORUMLOCK_FULL=1");
        return None;
    }
    let directory = BUILT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = root.join("target/services");
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--locked", "--manifest-path"]);
        build.arg(root.join("examples/services/Cargo.toml"));
        build.arg("--target-dir").arg(&target);
        let built = build.output().expect("cargo runs");
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(built.status.success(), "{said}");
        target.join("debug")
    });
    Some(directory.join(name))
}

/// A service and the lines that it says.
struct Service {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Service {
    fn start(mut command: Command, nodes: &Cluster) -> Service {
        command.env("QUORUMLOCK_NODES", nodes.urls().join(","));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = spawn_tied(command).expect("the service runs");
        let (send, lines) = mpsc::channel();
        let said = BufReader::<ChildStdout>::new(child.stdout.take().expect("a pipe")).lines();
        std::thread::spawn(move || {
            said.map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        let said = Vec::new();
        Service { child, lines, said }
    }

    /// Waits until a line with `text` has been said, and returns it.
    fn says(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(line) = self.said.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let said = &mut self.said;
            said.push(line.unwrap_or_else(|_| panic!("it did not say {text:?}")));
        }
    }

    /// What it has said by now.
    fn all(&mut self) -> &[String] {
        self.said.extend(self.lines.try_iter());
        &self.said
    }

    /// Interrupts it, and waits until it has ended well.
    fn end(&mut self) {
        send_signal(self.child.id(), libc::SIGINT).expect("it runs");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request for a report that takes this long.
fn ask(address: &str, ms: u64) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!(
        "POST /reports/march?ms={ms} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it is sent");
    stream
}

/// Status, and the whole answer.
fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    (
        status.unwrap_or_else(|| panic!("no answer: {text:?}")),
        text,
    )
}

#[test]
fn a_request_is_answered_by_who_has_the_lock_and_by_what_is_wrong() {
    let Some(program) = program("axum") else {
        return;
    };
    let nodes = Cluster::start(5);
    let mut command = Command::new(program);
    command.env("LISTEN", "127.0.0.1:0");
    let mut service = Service::start(command, &nodes);
    let said = service.says("listening on ");
    let address = said.trim_start_matches("listening on ");

    let (status, text) = answer(ask(address, 0));
    assert!(
        status == 200 && text.contains("march written, token "),
        "{text}"
    );

    // Somebody is at it for longer than a request waits.
    let gone = ask(address, 3_600_000);
    let held = || {
        nodes
            .probe()
            .owners("quorumlock:{report/march}")
            .iter()
            .flatten()
            .count()
    };
    assert!(eventually(PATIENCE, || held() >= 3));
    let (status, text) = answer(ask(address, 0));
    assert!(status == 409 && text.contains("retry-after: 1"), "{text}");
    assert!(text.contains("report/march"), "{text}");

    // Who goes away takes the request along, and with it the lock.
    drop(gone);
    assert!(eventually(PATIENCE, || held() == 0));
    assert_eq!(answer(ask(address, 0)).0, 200);

    // Three of five nodes are silent.
    nodes.iter().take(3).for_each(support::Server::pause);
    let (status, text) = answer(ask(address, 0));
    assert!(status == 503 && text.contains("retry-after: 5"), "{text}");
    assert!(text.contains("timed out"), "{text}");
    nodes.iter().for_each(support::Server::resume);
    service.end();
}

#[test]
fn a_nightly_job_runs_once_a_period_among_three_processes() {
    let Some(program) = program("cron") else {
        return;
    };
    let nodes = Cluster::start(5);
    let host = |name: &str| {
        let mut command = Command::new(&program);
        command
            .arg(name)
            .env("CRON", "*/8 * * * * *")
            .env("AT_LEAST", "5");
        Service::start(command, &nodes)
    };
    let mut hosts = ["web-1", "web-2", "web-3"].map(host);
    hosts
        .iter_mut()
        .for_each(|host| drop(host.says(" waits for ")));
    // Each host hears of each period, and one of them works in it.
    let periods = |host: &mut Service| {
        let ends = [" is done", " skips: done elsewhere"];
        let of = |line: &&String| ends.iter().any(|end| line.contains(end));
        host.all().iter().filter(of).count()
    };
    let all = eventually(2 * PATIENCE, || {
        hosts.iter_mut().all(|host| periods(host) >= 2)
    });
    // A host that was up before the others may have heard of one period more.
    let most = hosts.iter_mut().map(periods).max();
    let said: Vec<&String> = hosts.iter().flat_map(|host| &host.said).collect();
    assert!(all, "{said:#?}");
    let works = said
        .iter()
        .filter(|line| line.contains(" works, token "))
        .count();
    assert_eq!(Some(works), most, "{said:#?}");
    hosts.iter_mut().for_each(Service::end);
}
