//! The plain client outside the product: blocking, with a time limit on everything.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::resp::{Reply, encode, parse};

const TIMEOUT: Duration = Duration::from_millis(1000);
/// A SCAN that takes more steps than this does not end.
const SCAN_STEPS: usize = 100_000;

/// One connection to one server on loopback.
pub struct Probe {
    stream: TcpStream,
    buffer: Vec<u8>,
    timeout: Duration,
    broken: bool,
}

impl Probe {
    pub fn connect(port: u16) -> io::Result<Probe> {
        Probe::connect_within(port, TIMEOUT)
    }

    /// `timeout` is the limit of the connect and of each later command.
    pub fn connect_within(port: u16, timeout: Duration) -> io::Result<Probe> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Probe {
            stream,
            buffer: Vec::new(),
            timeout,
            broken: false,
        })
    }

    /// Sends a command and reads its reply; panics when the connection fails.
    pub fn command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Reply {
        self.try_command(args).unwrap_or_else(|error| {
            let name = args
                .first()
                .map(|arg| String::from_utf8_lossy(arg.as_ref()).into_owned());
            panic!("no reply to {}: {error}", name.unwrap_or_default())
        })
    }

    pub fn try_command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Reply> {
        self.send(&encode(args))?;
        self.receive(Instant::now() + self.timeout)
    }

    /// Sends bytes as they are: several commands made by `encode`, half of one, or garbage.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::new(
                ErrorKind::NotConnected,
                "an earlier reply is missing",
            ));
        }
        let sent = self.stream.write_all(bytes);
        self.broken |= sent.is_err();
        sent
    }

    /// Reads one reply. After an error the connection is of no use any more.
    pub fn receive(&mut self, deadline: Instant) -> io::Result<Reply> {
        let reply = self.read_reply(deadline);
        self.broken |= reply.is_err();
        reply
    }

    fn read_reply(&mut self, deadline: Instant) -> io::Result<Reply> {
        loop {
            if let Some((reply, used)) = parse(&self.buffer)? {
                self.buffer.drain(..used);
                return Ok(reply);
            }
            // Past the deadline there is one more look: the reply may be here already.
            let left = deadline.saturating_duration_since(Instant::now());
            self.stream
                .set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                Err(error) if is_no_data(&error) && left.is_zero() => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Err(error) if is_no_data(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        match self.command(&[b"GET", key.as_ref()]) {
            Reply::Bulk(value) => Some(value),
            Reply::Nil => None,
            other => panic!("GET answered {other:?}"),
        }
    }

    /// Milliseconds; -1 when the key never expires, -2 when there is none.
    pub fn pttl(&mut self, key: impl AsRef<[u8]>) -> i64 {
        expect_int(&self.command(&[b"PTTL", key.as_ref()]))
    }

    /// All keys that match, sorted, by SCAN.
    pub fn keys(&mut self, pattern: &str) -> Vec<Vec<u8>> {
        self.try_keys(pattern)
            .unwrap_or_else(|error| panic!("no reply to SCAN: {error}"))
    }

    pub fn try_keys(&mut self, pattern: &str) -> io::Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        let mut cursor = "0".to_owned();
        for _ in 0..SCAN_STEPS {
            let reply = self.try_command(&["SCAN", &cursor, "MATCH", pattern, "COUNT", "1000"])?;
            let Some([next, found]) = reply.items() else {
                panic!("SCAN answered {reply:?}")
            };
            let found = found.items().unwrap_or_default();
            keys.extend(
                found
                    .iter()
                    .filter_map(|key| key.bytes().map(<[u8]>::to_vec)),
            );
            cursor = next.text().unwrap_or_default();
            if cursor == "0" {
                keys.sort();
                keys.dedup();
                return Ok(keys);
            }
        }
        panic!("SCAN did not end after {SCAN_STEPS} steps");
    }

    pub fn flushall(&mut self) {
        self.expect_ok(&["FLUSHALL"]);
    }

    /// Writes a string as a stranger would, with or without an expiry.
    pub fn set_raw(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        px: Option<Duration>,
    ) {
        let (key, value) = (key.as_ref(), value.as_ref());
        match px.map(|px| px.as_millis().to_string()) {
            Some(px) => self.expect_ok(&[b"SET", key, value, b"PX", px.as_bytes()]),
            None => self.expect_ok(&[b"SET", key, value]),
        }
    }

    /// One line for each connection, this one among them.
    pub fn client_list(&mut self) -> Vec<String> {
        let list = self
            .command(&["CLIENT", "LIST"])
            .text()
            .expect("CLIENT LIST is text");
        list.lines().map(str::to_owned).collect()
    }

    /// A section of INFO, name to value.
    pub fn info(&mut self, section: &str) -> BTreeMap<String, String> {
        let info = self
            .command(&["INFO", section])
            .text()
            .expect("INFO is text");
        let pairs = info.lines().filter_map(|line| line.split_once(':'));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// How often the server has run a command ("set", "client|list"), scripts' calls included.
    pub fn commandstats(&mut self, command: &str) -> u64 {
        let stats = self.info("commandstats");
        let name = format!("cmdstat_{}", command.to_lowercase());
        let Some(line) = stats.get(&name) else {
            return 0;
        };
        let calls = line
            .strip_prefix("calls=")
            .and_then(|rest| rest.split(',').next());
        calls
            .and_then(|calls| calls.parse().ok())
            .unwrap_or_else(|| panic!("odd line {line:?}"))
    }

    fn expect_ok<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        assert_eq!(self.command(args), Reply::Simple("OK".into()));
    }

    /// Whether the connection is open with nothing to read, as far as this end knows.
    pub(super) fn is_quiet(&self) -> bool {
        let peek = self
            .stream
            .set_nonblocking(true)
            .and_then(|()| self.stream.peek(&mut [0]));
        let quiet = matches!(peek, Err(error) if error.kind() == ErrorKind::WouldBlock);
        quiet && !self.broken && self.stream.set_nonblocking(false).is_ok()
    }
}

fn is_no_data(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn expect_int(reply: &Reply) -> i64 {
    reply
        .int()
        .unwrap_or_else(|| panic!("no number: {reply:?}"))
}
