//! A server that several clients share: what arrives, in order, and what goes back.
//!
//! ```text
//!   send ─► on its way ─(latency)─► queue ─ run(now) ─► Store
//!                  ▲ held, swallowed          │
//!   receive ◄─ on its way ◄──(latency)────────┘
//! ```
//!
//! Each request is carried out at the moment of its arrival, in the order of arrival, whoever
//! calls [`Server::run`] and however late. Time comes in as an argument.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::sync::Notify;

use super::super::lane::Work;
use super::super::{Fault, OwnerToken};
use super::audit::Audit;
use super::chance::Chance;
use super::faults::{Faults, Path};
use super::hands::Hands;
use super::journal::Journal;
use super::store::Store;
use crate::clock::Instant;

/// Names a client of a server: all of its connections share one network path.
pub(crate) type ClientId = u32;

/// Names a connection.
pub(crate) type ConnId = u64;

/// What a client sends in one piece.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// `SUBSCRIBE`, or `UNSUBSCRIBE`.
    Listen { key: Arc<[u8]>, yes: bool },
    /// `INFO server` and the marker's script.
    Introduce { marker_key: Arc<[u8]> },
    /// A pipeline, and the marker read behind it where it holds a grant.
    Batch {
        asks: Vec<Question>,
        marker_key: Option<Arc<[u8]>>,
    },
}

/// One entry of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) key: Box<[u8]>,
    pub(crate) token: OwnerToken,
    pub(crate) work: Work,
}

/// What comes back, in one piece.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    Introduced(Vec<Value>),
    Batch {
        answers: Vec<Result<Vec<Value>, Fault>>,
        marker: Option<Value>,
    },
    /// Notes on the key arrive from now on.
    Listening(Arc<[u8]>),
    /// A note.
    Note {
        key: Arc<[u8]>,
        payload: Vec<u8>,
    },
    /// The connection has ended.
    Ended(Fault),
}

/// One connection, as the server's side of the network has it.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) client: ClientId,
    pub(super) bell: Arc<Notify>,
    pub(super) last_in: Instant,
    pub(super) last_out: Instant,
    pub(super) replies: VecDeque<(Instant, Response)>,
    /// What it has subscribed to.
    pub(super) channels: BTreeSet<Arc<[u8]>>,
    /// What waits for its path to be mended, both ways.
    pub(super) held_in: Vec<Request>,
    pub(super) held_out: Vec<Response>,
    /// Requests on their way or in the socket.
    pub(super) pending: usize,
    /// Something was swallowed: nothing comes through any more, ever.
    pub(super) broken: bool,
    /// The server has ended it.
    pub(super) dead: bool,
    /// The client has given it up.
    pub(super) left: bool,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(super) index: usize,
    pub(super) chance: Chance,
    pub(super) store: Store,
    /// What is on its disk.
    pub(super) saved: Store,
    pub(super) hands: Hands,
    pub(super) run_id: String,
    /// When it was started, in seconds of its own clock.
    pub(super) born: u64,
    /// Whether its data was ever lost.
    pub(super) lost_data: bool,
    pub(super) queue: BTreeMap<(Instant, u64), (ConnId, Request)>,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) faults: Faults,
    pub(super) paths: BTreeMap<ClientId, Path>,
    /// Before this nothing is carried out: it was busy, or stood still.
    pub(super) free_from: Instant,
    pub(super) journal: Journal,
    /// How many requests it has carried out.
    pub(super) served: u64,
    /// Connections made and ended, requests that came, commands carried out, answers and notes
    /// that were received, and faults.
    pub(super) events: u64,
    pub(crate) audit: Audit,
    next: u64,
}

/// A server and the handles on it.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Server>>);

impl Shared {
    pub(crate) fn new(server: Server) -> Self {
        Shared(Arc::new(Mutex::new(server)))
    }

    /// Whether both are handles on one server.
    pub(crate) fn is(&self, other: &Shared) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// A server that has been up for a day at `now`.
    pub(crate) fn new(index: usize, seed: u64, now: Instant, journal: Journal) -> Self {
        let mut chance = Chance::new(seed);
        let hands = Hands::new(now);
        let run_id = format!("{:016x}", chance.draw());
        Server {
            index,
            chance,
            store: Store::default(),
            saved: Store::default(),
            born: hands.at(now) / 1_000_000_000 - 86_400,
            hands,
            run_id,
            lost_data: false,
            queue: BTreeMap::new(),
            conns: BTreeMap::new(),
            faults: Faults::default(),
            paths: BTreeMap::new(),
            free_from: Instant::from_nanos(0),
            journal,
            served: 0,
            events: 0,
            audit: Audit::default(),
            next: 0,
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A new connection of `client`, whose engine `bell` wakes. The first request on it is an
    /// introduction, and shows whether there is anybody to talk to.
    pub(crate) fn connect(&mut self, client: ClientId, bell: Arc<Notify>, now: Instant) -> ConnId {
        let id = self.number();
        self.events += 1;
        let conn = Conn {
            client,
            bell,
            last_in: now,
            last_out: now,
            replies: VecDeque::new(),
            channels: BTreeSet::new(),
            held_in: Vec::new(),
            held_out: Vec::new(),
            pending: 0,
            broken: false,
            dead: false,
            left: false,
        };
        self.conns.insert(id, conn);
        id
    }

    /// The client has given the connection up. What it has sent may still be carried out.
    pub(crate) fn leave(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.left = true;
            conn.replies.clear();
            conn.held_out.clear();
        }
        self.sweep(id);
    }

    pub(super) fn sweep(&mut self, id: ConnId) {
        let over = |conn: &Conn| conn.left && conn.pending == 0 && conn.held_in.is_empty();
        if self.conns.get(&id).is_some_and(over) {
            self.conns.remove(&id);
        }
    }

    pub(crate) fn send(&mut self, id: ConnId, request: Request, now: Instant) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        if let Request::Batch { asks, .. } = &request {
            let pending = conn.pending + conn.held_in.len();
            self.audit.sent(conn.client, asks, pending);
        }
        let path = self.paths.get(&conn.client).copied().unwrap_or_default();
        match path {
            _ if conn.dead || conn.broken => {}
            Path::Open => self.deliver(id, request, now),
            Path::Held => conn.held_in.push(request),
            Path::Swallows => conn.broken = true,
        }
    }

    /// Puts a request on its way to the server.
    pub(super) fn deliver(&mut self, id: ConnId, request: Request, now: Instant) {
        let number = self.number();
        if let Some(conn) = self.conns.get_mut(&id) {
            let latency = self.faults.latency(conn.client, &mut self.chance);
            conn.last_in = conn.last_in.max(now.after(latency));
            conn.pending += 1;
            self.queue.insert((conn.last_in, number), (id, request));
        }
    }

    /// Puts an answer on its way to the client.
    pub(super) fn respond(&mut self, id: ConnId, response: Response, now: Instant) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let latency = self.faults.latency(conn.client, &mut self.chance);
        let path = self.paths.get(&conn.client).copied().unwrap_or_default();
        match path {
            _ if conn.left || conn.broken => {}
            Path::Open => {
                conn.last_out = conn.last_out.max(now.after(latency));
                conn.replies.push_back((conn.last_out, response));
                conn.bell.notify_one();
            }
            Path::Held => conn.held_out.push(response),
            Path::Swallows => conn.broken = true,
        }
    }

    /// The next answer that has arrived over the connection.
    pub(crate) fn receive(&mut self, id: ConnId, now: Instant) -> Option<Response> {
        let conn = self.conns.get_mut(&id)?;
        if conn.replies.front()?.0 > now {
            return None;
        }
        self.events += 1;
        conn.replies.pop_front().map(|(_, response)| response)
    }

    /// When the next answer arrives over the connection.
    pub(crate) fn next_reply(&self, id: ConnId) -> Option<Instant> {
        let (arrives, _) = self.conns.get(&id)?.replies.front()?;
        Some(*arrives)
    }

    /// When the next request is due to be carried out.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.faults.hung {
            return None;
        }
        let ((arrives, _), _) = self.queue.first_key_value()?;
        Some((*arrives).max(self.free_from))
    }

    /// Carries out what has arrived by `now`.
    pub(crate) fn run(&mut self, now: Instant) {
        while let Some(moment) = self.due().filter(|&due| due <= now) {
            if let Some((_, (id, request))) = self.queue.pop_first() {
                self.carry_out(id, request, moment, usize::MAX);
            }
        }
    }
}

/// How long a request and its answer take to cross the network.
pub(crate) const NO_LATENCY: (Duration, Duration) = (Duration::ZERO, Duration::ZERO);
