//! The practical limit: one thread, blocking sockets, commands written by hand.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::Contender;

/// The product's own scripts: the bare client asks the same of the servers.
const GRANT: &str = include_str!("../../src/node/grant.lua");
const RELEASE: &str = concat!(
    include_str!("../../src/node/lift.lua"),
    include_str!("../../src/node/release.lua")
);

/// As the library's defaults have it, in milliseconds and numbers.
const TTL: &str = "10000";
const RETENTION: &str = "86400000";
const MAX_TTL: &str = "60000";
const BLOCK: &str = "65";

/// A client that does nothing but Redlock's commands: all tasks ask at the same moment, one write
/// to each server carries what all of them ask, and one thread reads all answers.
///
/// It is no lock, and no library could be it: it waits for every server, knows no time, and takes
/// nothing back. It says how much of a pair's cost is the servers' and the kernel's.
struct Bare {
    servers: Vec<BufReader<TcpStream>>,
    fenced: bool,
    grant: String,
    release: String,
}

/// The bare client as a contender, with fencing counters or without.
///
/// # Panics
/// If one of the servers does not answer.
pub fn bare_pair(name: &str, urls: &[String], fenced: bool) -> Contender {
    let bare = Arc::new(Mutex::new(Bare::connect(urls, fenced)));
    Contender::whole(name, move |tasks, prefix, end| {
        bare.lock()
            .expect("no panic before")
            .repeat(tasks, prefix, end)
    })
}

impl Bare {
    fn connect(urls: &[String], fenced: bool) -> Self {
        let connect = |url: &String| {
            let address = url.trim_start_matches("redis://").trim_end_matches('/');
            let stream = TcpStream::connect(address).expect("a server that we started");
            stream.set_nodelay(true).expect("a socket option");
            BufReader::with_capacity(1 << 16, stream)
        };
        let mut bare = Bare {
            servers: urls.iter().map(connect).collect(),
            fenced,
            grant: String::new(),
            release: String::new(),
        };
        bare.grant = bare.load(GRANT);
        bare.release = bare.load(RELEASE);
        bare
    }

    fn load(&mut self, script: &str) -> String {
        let mut out = Vec::new();
        pack(&mut out, &["SCRIPT", "LOAD", script]);
        let mut digest = String::new();
        for server in &mut self.servers {
            server.get_mut().write_all(&out).expect("a live server");
            digest = bulk(server);
        }
        digest
    }

    /// Pairs of all tasks, in step, until `end`; each latency, and the number of failures.
    fn repeat(&mut self, tasks: usize, prefix: &str, end: Instant) -> (Vec<Duration>, usize) {
        let (mut latencies, mut failures, mut pass) = (Vec::new(), 0, 0);
        let quorum = self.servers.len() / 2 + 1;
        loop {
            let begin = Instant::now();
            let (mut grants, mut releases) = (Vec::new(), Vec::new());
            for task in 0..tasks {
                let (key, token) = (
                    format!("{prefix}:{task}:{pass}"),
                    format!("{:040x}", pass * tasks + task),
                );
                self.ask(&mut grants, &mut releases, &key, &token);
            }
            for out in [grants, releases] {
                let granted = self.round(&out, tasks);
                failures += granted.iter().filter(|&&votes| votes < quorum).count();
            }
            let now = Instant::now();
            latencies.extend(std::iter::repeat_n(now - begin, tasks));
            pass += 1;
            if now >= end {
                return (latencies, failures);
            }
        }
    }

    fn ask(&self, grants: &mut Vec<u8>, releases: &mut Vec<u8>, key: &str, token: &str) {
        if self.fenced {
            let counter = format!("{key}:fence");
            let call = ["EVALSHA", &self.grant, "2", key, &counter, token, TTL, "0"];
            pack(
                grants,
                &[&call[..], &[RETENTION, MAX_TTL, BLOCK, "0"]].concat(),
            );
        } else {
            pack(grants, &["SET", key, token, "NX", "PX", TTL]);
        }
        pack(releases, &["EVALSHA", &self.release, "1", key, token]);
    }

    /// One write to each server, and as many answers from each as there are tasks: how many servers
    /// said yes to each.
    fn round(&mut self, out: &[u8], tasks: usize) -> Vec<usize> {
        for server in &mut self.servers {
            server.get_mut().write_all(out).expect("a live server");
        }
        let mut votes = vec![0; tasks];
        for server in &mut self.servers {
            for vote in &mut votes {
                *vote += usize::from(yes(server));
            }
        }
        votes
    }
}

/// Appends a command.
fn pack(out: &mut Vec<u8>, words: &[&str]) {
    write!(out, "*{}\r\n", words.len()).expect("memory");
    for word in words {
        write!(out, "${}\r\n{word}\r\n", word.len()).expect("memory");
    }
}

fn line(server: &mut impl BufRead) -> String {
    let mut line = String::new();
    server.read_line(&mut line).expect("a live server");
    line
}

fn bulk(server: &mut impl BufRead) -> String {
    line(server);
    line(server).trim_end().to_owned()
}

/// Whether the next answer is OK, 1, or a list that begins with 1.
fn yes(server: &mut impl BufRead) -> bool {
    let answer = line(server);
    let Some(items) = answer.strip_prefix('*') else {
        return matches!(answer.trim_end(), "+OK" | ":1");
    };
    let items: usize = items.trim_end().parse().expect("a number");
    let items: Vec<String> = (0..items).map(|_| line(server)).collect();
    items.first().is_some_and(|first| first.trim_end() == ":1")
}
