//! One proxied connection: two lanes of chunks, each chunk with the time when it is due.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use super::link::{Faults, TrapKind};
use super::ports::reset;
use super::resp::FrameCount;

const CONNECT_LIMIT: Duration = Duration::from_millis(500);

/// What becomes of a connection after its turn.
#[derive(PartialEq)]
pub(super) enum Fate {
    Keep,
    Close,
    Reset,
}

pub(super) struct Link {
    client: TcpStream,
    /// `None` until the first byte is due if the connection began in a blackhole.
    server: Option<TcpStream>,
    up: Lane,
    down: Lane,
    requests: FrameCount,
    replies: FrameCount,
    sprung: Option<Sprung>,
    /// Bytes were swallowed: the rest is swallowed as well, for good.
    deaf: bool,
}

/// A trap that a request has set off: replies are caught until the one that is meant is whole.
struct Sprung {
    kind: TrapKind,
    reply: u64,
    caught: Vec<u8>,
}

#[derive(Default)]
struct Lane {
    queue: VecDeque<(Instant, Item)>,
    /// The source has sent its last byte.
    ended: bool,
    /// The destination took no more at the last try.
    blocked: bool,
}

enum Item {
    Bytes(Vec<u8>),
    End,
}

enum Arrival {
    Nothing,
    Bytes(Vec<u8>),
    End,
}

impl Link {
    /// `None` when the server refused; the client is reset then.
    pub(super) fn new(client: TcpStream, upstream: u16, faults: &Faults) -> Option<Link> {
        client.set_nonblocking(true).ok()?;
        client.set_nodelay(true).ok()?;
        let mut link = Link {
            client,
            server: None,
            up: Lane::default(),
            down: Lane::default(),
            requests: FrameCount::default(),
            replies: FrameCount::default(),
            sprung: None,
            deaf: false,
        };
        if !faults.blackhole && !link.connect(upstream) {
            link.reset();
            return None;
        }
        Some(link)
    }

    /// Reads what there is, and writes what is due.
    pub(super) fn turn(&mut self, faults: &mut Faults, upstream: u16, now: Instant) -> Fate {
        if self.deaf && self.up.ended {
            return Fate::Close;
        }
        let mut fate = self.hear_client(faults, now);
        if fate == Fate::Keep {
            fate = self.hear_server(faults, now);
        }
        if fate != Fate::Keep {
            return fate;
        }
        if !faults.hold_requests && self.up.is_due(now) {
            if self.server.is_none() && !self.connect(upstream) {
                return Fate::Reset;
            }
            // A server that takes nothing more is on its way out; its own end tells the client.
            if let Some(server) = &mut self.server {
                let _ = self.up.flush(server, now);
            }
        }
        if faults.hold_replies {
            return Fate::Keep;
        }
        match self.down.flush(&mut self.client, now) {
            // What the client sent is still to be delivered; the server's own end comes after it.
            Fate::Reset if !self.up.queue.is_empty() => Fate::Keep,
            fate => fate,
        }
    }

    fn hear_client(&mut self, faults: &mut Faults, now: Instant) -> Fate {
        if self.up.ended {
            return Fate::Keep;
        }
        let bytes = match receive(&mut self.client) {
            Arrival::Nothing => return Fate::Keep,
            Arrival::End if self.deaf || faults.blackhole => return Fate::Close,
            Arrival::End => {
                self.up.ended = true;
                self.up.queue.push_back((now + faults.delay, Item::End));
                return Fate::Keep;
            }
            Arrival::Bytes(bytes) => bytes,
        };
        self.deaf |= faults.blackhole;
        if self.deaf {
            return Fate::Keep;
        }
        let sent = self.requests.feed(&bytes);
        if let Some(trap) = faults.trap.take_if(|trap| trap.fits(&bytes)) {
            if trap.kind == TrapKind::BeforeRequest {
                return Fate::Reset;
            }
            self.sprung = Some(Sprung {
                kind: trap.kind,
                reply: sent,
                caught: Vec::new(),
            });
        }
        self.up
            .queue
            .push_back((now + faults.delay, Item::Bytes(bytes)));
        Fate::Keep
    }

    fn hear_server(&mut self, faults: &Faults, now: Instant) -> Fate {
        let Some(server) = self.server.as_mut().filter(|_| !self.down.ended) else {
            return Fate::Keep;
        };
        let arrival = receive(server);
        if matches!(arrival, Arrival::Nothing) {
            return Fate::Keep;
        }
        self.deaf |= faults.blackhole;
        if self.deaf {
            self.down.ended |= matches!(arrival, Arrival::End);
            return Fate::Keep;
        }
        let bytes = match arrival {
            Arrival::Bytes(bytes) => bytes,
            _ => {
                self.down.ended = true;
                self.down.queue.push_back((now + faults.delay, Item::End));
                return Fate::Keep;
            }
        };
        let answered = self.replies.feed(&bytes);
        let Some(sprung) = &mut self.sprung else {
            self.down
                .queue
                .push_back((now + faults.delay, Item::Bytes(bytes)));
            return Fate::Keep;
        };
        sprung.caught.extend(bytes);
        if answered < sprung.reply {
            return Fate::Keep;
        }
        if sprung.kind == TrapKind::MidReply {
            let half = sprung.caught.len().div_ceil(2);
            let _ = self.client.write(&sprung.caught[..half]);
        }
        Fate::Reset
    }

    /// Passes on what a trap has caught so far, and makes everything under way due at once.
    pub(super) fn heal(&mut self) {
        let now = Instant::now();
        if let Some(sprung) = self.sprung.take() {
            self.down.queue.push_back((now, Item::Bytes(sprung.caught)));
        }
        for (due, _) in self.up.queue.iter_mut().chain(&mut self.down.queue) {
            *due = now;
        }
    }

    /// Loses what was under way.
    pub(super) fn swallow_queued(&mut self) {
        self.deaf |= !self.up.queue.is_empty() || !self.down.queue.is_empty();
        self.up.queue.clear();
        self.down.queue.clear();
        self.sprung = None;
    }

    /// Ends both sides at once; the client's with RST.
    pub(super) fn reset(&self) {
        reset(&self.client);
    }

    /// The sockets to poll, with the events that matter now.
    pub(super) fn interests(&self) -> impl Iterator<Item = (RawFd, libc::c_short)> {
        let events = |source: &Lane, sink: &Lane| {
            let read = if source.ended { 0 } else { libc::POLLIN };
            read | if sink.blocked { libc::POLLOUT } else { 0 }
        };
        let client = (self.client.as_raw_fd(), events(&self.up, &self.down));
        let server = self
            .server
            .as_ref()
            .map(|s| (s.as_raw_fd(), events(&self.down, &self.up)));
        // A socket polled for nothing would still report its end, again and again.
        [Some(client), server]
            .into_iter()
            .flatten()
            .filter(|(_, events)| *events != 0)
    }

    /// When the next chunk can go out, if one waits for nothing but its time.
    pub(super) fn next_due(&self, faults: &Faults) -> Option<Instant> {
        let up = self.up.front().filter(|_| !faults.hold_requests);
        let down = self.down.front().filter(|_| !faults.hold_replies);
        up.into_iter().chain(down).min()
    }

    fn connect(&mut self, upstream: u16) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, upstream));
        let server = TcpStream::connect_timeout(&address, CONNECT_LIMIT);
        let server =
            server.and_then(|s| s.set_nonblocking(true).and(s.set_nodelay(true)).map(|()| s));
        self.server = server.ok();
        self.server.is_some()
    }
}

impl Lane {
    fn front(&self) -> Option<Instant> {
        self.queue
            .front()
            .map(|(due, _)| *due)
            .filter(|_| !self.blocked)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.queue.front().is_some_and(|(due, _)| *due <= now)
    }

    /// Writes the chunks that are due. `Close` when the sink has got its end, `Reset` when it takes
    /// no more.
    fn flush(&mut self, sink: &mut TcpStream, now: Instant) -> Fate {
        self.blocked = false;
        while self.is_due(now) {
            let Some((_, Item::Bytes(bytes))) = self.queue.front_mut() else {
                self.queue.pop_front();
                let _ = sink.shutdown(Shutdown::Write);
                return Fate::Close;
            };
            match sink.write(bytes) {
                Ok(n) if n == bytes.len() => drop(self.queue.pop_front()),
                Ok(n) => drop(bytes.drain(..n)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Fate::Keep;
                }
                Err(_) => {
                    self.queue.clear();
                    return Fate::Reset;
                }
            }
        }
        Fate::Keep
    }
}

/// One read without blocking; a reset counts as an end.
fn receive(source: &mut TcpStream) -> Arrival {
    let mut chunk = [0; 64 << 10];
    match source.read(&mut chunk) {
        Ok(0) => Arrival::End,
        Ok(n) => Arrival::Bytes(chunk[..n].to_vec()),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Arrival::Nothing
        }
        Err(_) => Arrival::End,
    }
}
