//! MONITOR on a thread: which commands a server was really sent.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::probe::Probe;
use super::{encode, eventually};

const LIMIT: Duration = Duration::from_secs(5);

/// One command as MONITOR showed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The server's wall clock, in seconds.
    pub at: f64,
    /// The client's address, or "lua" for a call made by a script.
    pub from: String,
    pub args: Vec<Vec<u8>>,
}

impl Seen {
    /// The command's name in capitals.
    pub fn name(&self) -> String {
        self.args
            .first()
            .map(|a| String::from_utf8_lossy(a).to_uppercase())
            .unwrap_or_default()
    }
}

/// Collects what a server runs until it is stopped or dropped.
///
/// The server itself leaves out AUTH, and whatever else it holds to be secret or administrative.
pub struct Monitor {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    lines: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Monitor {
    /// Returns when the server has begun to report.
    pub fn on(port: u16) -> Monitor {
        let shared = Arc::new(Shared::default());
        let reader =
            connect(port).unwrap_or_else(|error| panic!("no MONITOR on port {port}: {error}"));
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || collect(reader, &theirs));
        Monitor {
            port,
            shared,
            thread: Some(thread),
        }
    }

    /// All commands that were run before this call, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.catch_up();
        let lines = self
            .shared
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let seen = lines.iter().filter_map(|line| parse_line(line));
        seen.filter(|seen| !seen.args.iter().any(|arg| arg.starts_with(MARK.as_bytes())))
            .collect()
    }

    /// The commands of this name, in any case.
    pub fn of(&self, name: &str) -> Vec<Seen> {
        self.seen()
            .into_iter()
            .filter(|seen| seen.name() == name.to_uppercase())
            .collect()
    }

    /// The last look, and the end of the thread.
    pub fn stop(self) -> Vec<Seen> {
        self.seen()
    }

    /// Runs a command of our own and waits until it is reported: all earlier ones are in then. A
    /// server that is gone will report nothing more anyway.
    fn catch_up(&self) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!(
            "{MARK}{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let asked =
            Probe::connect(self.port).and_then(|mut probe| probe.try_command(&["ECHO", &mark]));
        if asked.is_ok() {
            let reported = eventually(LIMIT, || {
                let lines = self
                    .shared
                    .lines
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                lines.iter().rev().any(|line| line.contains(&mark))
                    || self.thread.as_ref().is_none_or(JoinHandle::is_finished)
            });
            assert!(reported, "MONITOR on port {} fell behind", self.port);
        }
    }
}

const MARK: &str = "monitor-mark-";

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn connect(port: u16) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&encode(&["MONITOR"]))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    if line.trim_end() != "+OK" {
        return Err(io::Error::other(format!("the server answered {line:?}")));
    }
    reader
        .get_ref()
        .set_read_timeout(Some(Duration::from_millis(20)))?;
    Ok(reader)
}

fn collect(mut reader: BufReader<TcpStream>, shared: &Shared) {
    let mut line = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        // Bytes read before a timeout stay in `line`; the next turn goes on behind them.
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.ends_with(b"\n") => {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                shared
                    .lines
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(text);
                line.clear();
            }
            Ok(_) => return,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

/// `+1700000000.123456 [0 127.0.0.1:50000] "SET" "key" "va\x00lue"`
fn parse_line(line: &str) -> Option<Seen> {
    let (at, rest) = line.strip_prefix('+')?.split_once(" [")?;
    let (place, rest) = rest.split_once("] ")?;
    let from = place
        .split_once(' ')
        .map_or(place, |(_, from)| from)
        .to_owned();
    Some(Seen {
        at: at.parse().ok()?,
        from,
        args: unquote(rest.as_bytes()),
    })
}

/// Undoes the server's quoting: words in double quotes, with backslash escapes.
fn unquote(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < text.len() {
        match (&mut word, text[at]) {
            (None, b'"') => word = Some(Vec::new()),
            (None, _) => {}
            (Some(_), b'"') => words.extend(word.take()),
            (Some(word), b'\\') => {
                let (byte, used) = unescape(&text[at + 1..]);
                word.push(byte);
                at += used;
            }
            (Some(word), byte) => word.push(byte),
        }
        at += 1;
    }
    words
}

/// The byte behind a backslash, and how many characters spell it.
fn unescape(text: &[u8]) -> (u8, usize) {
    match text {
        [b'x', high, low, ..] => {
            let digits = [*high, *low];
            let hex = std::str::from_utf8(&digits).ok();
            (
                hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())
                    .unwrap_or(b'?'),
                3,
            )
        }
        [b'n', ..] => (b'\n', 1),
        [b'r', ..] => (b'\r', 1),
        [b't', ..] => (b'\t', 1),
        [b'a', ..] => (7, 1),
        [b'b', ..] => (8, 1),
        [other, ..] => (*other, 1),
        [] => (b'\\', 0),
    }
}
