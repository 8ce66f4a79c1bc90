//! The five servers: what they are asked beside the work, and one of them stopped.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, TcpStream},
    thread::{self, JoinHandle},
};

use crate::servers::Servers;

/// Calls of each command, over all nodes.
#[derive(Debug, Default)]
pub struct Calls(BTreeMap<String, u64>);

impl Calls {
    pub fn read(urls: &[String]) -> Result<Self, String> {
        let mut calls = Self::default();
        for url in urls {
            calls.add(&commandstats(url).map_err(|error| error.to_string())?);
        }
        Ok(calls)
    }

    /// Takes lines like `cmdstat_set:calls=3,usec=12,…`.
    fn add(&mut self, info: &str) {
        for line in info.lines() {
            let Some((name, rest)) = line
                .strip_prefix("cmdstat_")
                .and_then(|line| line.split_once(":calls="))
            else {
                continue;
            };
            let digits = rest.split(',').next().unwrap_or_default();
            let count: u64 = digits.parse().unwrap_or_default();
            *self.0.entry(name.to_owned()).or_default() += count;
        }
    }

    /// All calls since `before`, those inside scripts included.
    pub fn since(&self, before: &Self) -> u64 {
        self.0
            .iter()
            // We ask by INFO ourselves.
            .filter(|(name, _)| *name != "info")
            .map(|(name, count)| {
                let earlier = before.0.get(name).copied().unwrap_or_default();
                count.saturating_sub(earlier)
            })
            .sum()
    }
}

fn commandstats(url: &str) -> redis::RedisResult<String> {
    let mut connection = redis::Client::open(url)?.get_connection()?;
    redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut connection)
}

/// A node that is stopped until this value is dropped.
pub struct Stopped<'a> {
    servers: &'a Servers,
    index: usize,
}

impl<'a> Stopped<'a> {
    pub fn new(servers: &'a Servers, index: usize) -> Self {
        servers.pause(index);
        Self { servers, index }
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.servers.resume(self.index);
    }
}

/// Counts what clients send to a node, by MONITOR, which tells it from what scripts call.
pub struct Monitor {
    socket: TcpStream,
    counter: JoinHandle<u64>,
}

impl Monitor {
    pub fn start(url: &str) -> io::Result<Self> {
        let node = url.trim_start_matches("redis://").trim_end_matches('/');
        let mut socket = TcpStream::connect(node)?;
        socket.write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(socket.try_clone()?);
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line)?;
        if line != b"+OK\r\n" {
            return Err(io::Error::other(
                "the node does not let itself be monitored",
            ));
        }
        let counter = thread::spawn(move || {
            let mut sent = 0;
            line.clear();
            while lines
                .read_until(b'\n', &mut line)
                .is_ok_and(|count| count > 0)
            {
                sent += u64::from(is_sent(&line));
                line.clear();
            }
            sent
        });
        Ok(Self { socket, counter })
    }

    /// How many commands clients have sent since the start.
    pub fn stop(self) -> io::Result<u64> {
        self.socket.shutdown(Shutdown::Both)?;
        self.counter
            .join()
            .map_err(|_| io::Error::other("the count was not finished"))
    }
}

/// `+1700000000.123456 [0 127.0.0.1:50000] "GET" …` by a client, `+… [0 lua] "GET" …` by a script.
fn is_sent(line: &[u8]) -> bool {
    let head = line.split(|byte| *byte == b']').next().unwrap_or_default();
    line.starts_with(b"+") && !head.ends_with(b" lua")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_that_came_since_without_our_own_questions() {
        let mut before = Calls::default();
        before.add("cmdstat_set:calls=5,usec=1\r\n");
        let mut after = Calls::default();
        after.add("# Commandstats\r\ncmdstat_set:calls=8,usec=1\r\ncmdstat_get:calls=4,usec=9\r\n");
        after.add("cmdstat_get:calls=1,usec=1\r\ncmdstat_info:calls=9,usec=1\r\n");
        assert_eq!(after.since(&before), 8);
    }

    #[test]
    fn what_is_sent_is_told_from_what_scripts_call() {
        assert!(is_sent(
            b"+1700000000.123456 [0 127.0.0.1:50000] \"GET\" \"a lua] b\"\r\n"
        ));
        assert!(!is_sent(b"+1700000000.123456 [0 lua] \"GET\" \"a\"\r\n"));
    }
}
