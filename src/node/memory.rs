//! A node whose server is in memory: for tests of services, and for the simulation.
//!
//! The queue in front of it, the decoding of answers and the rules of its supervisor are those of
//! the real node ([`super::redis`]); only socket and server are made up. It has no task of its
//! own: it moves when [`Node::turn`] is called, by the time it is told there.

use std::sync::Arc;
use std::time::Duration;

use super::ears::Ears;
use super::lane::{Admission, Lane, Link};
use super::{Ask, AskId, Event, Fault, Inbox, NOBODY, Node, Order, Reply, unsent};
use crate::clock::{Clock, Instant};
use crate::metrics;

pub(crate) mod audit;
pub(crate) mod chance;
mod channels;
mod counters;
pub(crate) mod faults;
mod hands;
pub(crate) mod inspect;
pub(crate) mod journal;
mod paths;
pub(crate) mod server;
mod service;
mod session;
pub(crate) mod store;
mod survey;
mod touch;

use chance::Chance;
use server::{ClientId, ConnId, Request, Shared};
use session::Session;

/// How a node is treated, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) client: ClientId,
    pub(crate) marker_key: Arc<[u8]>,
    /// A request without an answer for so long makes the node one that hangs.
    pub(crate) patience: Duration,
    /// The most grants and extensions in its queue.
    pub(crate) limit: usize,
    /// Whether the servers work when their clients do; else somebody else keeps them going.
    pub(crate) drives: bool,
}

impl Terms {
    /// As the real node has it: a connection whose oldest request has waited so long is given up.
    fn give_up(&self) -> Duration {
        self.patience.saturating_mul(5).max(Duration::from_secs(1))
    }

    /// As the real node has it: the time for one connection, the introduction included.
    fn connect_within(&self) -> Duration {
        self.patience.saturating_mul(2).max(Duration::from_secs(2))
    }
}

/// As the real node has it: the most pipelines on their way at once.
const WINDOW: usize = 32;

/// One client's end of a connection to a server in memory.
pub(crate) struct MemoryNode {
    index: usize,
    name: String,
    server: Shared,
    terms: Terms,
    lane: Lane,
    ears: Ears,
    inbox: Inbox,
    clock: Clock,
    meters: metrics::Flush,
    chance: Chance,
    state: State,
    /// Connections that failed in a row.
    failures: u32,
}

enum State {
    /// The next connection is tried then.
    Pausing(Instant),
    Opening {
        conn: ConnId,
        until: Instant,
    },
    Open(Session),
}

impl MemoryNode {
    pub(crate) fn new(
        index: usize,
        name: String,
        server: Shared,
        terms: Terms,
        inbox: Inbox,
        clock: Clock,
    ) -> Self {
        let seed = u64::from(terms.client) << 32 | index as u64;
        let chance = Chance::new(server.lock().chance.draw() ^ seed);
        MemoryNode {
            index,
            name,
            server,
            lane: Lane::new(terms.patience, terms.limit),
            ears: Ears::default(),
            terms,
            inbox,
            clock,
            meters: metrics::Flush::default(),
            chance,
            state: State::Pausing(Instant::from_nanos(0)),
            failures: 0,
        }
    }

    fn tell(&self, event: Event) {
        self.inbox.push(self.index, event);
    }

    fn answer(&self, id: AskId, reply: Reply, time: Option<Duration>) {
        if id != NOBODY {
            self.tell(Event::Answer { id, reply, time });
        }
    }

    fn connect(&mut self, now: Instant) {
        let mut server = self.server.lock();
        let conn = server.connect(self.terms.client, self.inbox.bell(), now);
        let marker_key = Arc::clone(&self.terms.marker_key);
        server.send(conn, Request::Introduce { marker_key }, now);
        drop(server);
        let until = now.after(self.terms.connect_within());
        self.state = State::Opening { conn, until };
    }

    /// There is no connection now; `link` says whether requests should wait for the next one.
    fn broken(&mut self, conn: ConnId, link: Link, fault: &Fault) {
        self.server.lock().leave(conn);
        self.ears.cut();
        for entry in self.lane.broken(link) {
            self.answer(entry.id, Reply::Failed(fault.clone()), None);
        }
    }

    /// No connection could be made: the node is down.
    fn failed(&mut self, conn: ConnId, fault: &Fault, now: Instant) {
        let news = !matches!(self.lane.link(), Link::Down(_));
        self.broken(conn, Link::Down(fault.clone()), fault);
        if news {
            self.tell(Event::Down(fault.clone()));
        }
        let pause = pause(self.failures, &mut self.chance);
        self.failures = self.failures.saturating_add(1);
        self.lane.forget(now);
        self.state = State::Pausing(now.after(pause));
    }

    /// A connection has ended: the next one is tried at once, and requests wait for it.
    fn ended(&mut self, conn: ConnId, fault: &Fault, now: Instant) {
        let hung = self.lane.hangs(now);
        self.broken(conn, Link::Opening, fault);
        if let Some(hung) = hung {
            self.lane.still_hangs(now.before(hung));
        }
        let why = fault.clone();
        self.tell(Event::Lost { why, hung });
        self.connect(now);
    }
}

/// As the real node has it: 25 ms at first, doubling to half a second; half is left to chance.
fn pause(failures: u32, chance: &mut Chance) -> Duration {
    let whole = 25u64.checked_shl(failures.min(8)).unwrap_or(500).min(500);
    let half = Duration::from_millis(whole) / 2;
    chance.between(half, half * 2)
}

impl Drop for MemoryNode {
    fn drop(&mut self) {
        if let State::Opening { conn, .. } | State::Open(Session { conn, .. }) = &self.state {
            self.server.lock().leave(*conn);
        }
    }
}

impl Node for MemoryNode {
    fn name(&self) -> &str {
        &self.name
    }

    fn submit(
        &mut self,
        id: AskId,
        order: &Arc<Order>,
        ask: Ask,
        now: Instant,
    ) -> Result<(), Fault> {
        let reply = match self.lane.admit(id, order, ask, now)? {
            Admission::Queued => return Ok(()),
            Admission::Withdrawn(asks) => {
                for ask in asks {
                    self.answer(ask, Reply::Failed(unsent()), None);
                }
                Reply::WITHDRAWN
            }
            Admission::Owed => match self.lane.link() {
                Link::Down(fault) => Reply::Failed(fault.clone()),
                Link::Opening | Link::Open => return Ok(()),
            },
        };
        self.answer(id, reply, None);
        Ok(())
    }

    fn listen(&mut self, key: &Arc<[u8]>) {
        self.ears.listen(key);
    }

    fn ignore(&mut self, key: &Arc<[u8]>) {
        self.ears.ignore(key);
    }

    fn hangs(&self, now: Instant) -> Option<Duration> {
        self.lane.hangs(now)
    }

    fn flush(&mut self) {
        if self.lane.is_waiting() || self.ears.is_waiting() {
            self.send(self.clock.now());
        }
    }

    fn due(&self) -> Option<Instant> {
        let now = self.clock.now();
        let server = self.server.lock();
        let (conn, own) = match &self.state {
            State::Pausing(until) => (None, Some(*until)),
            State::Opening { conn, until } => (Some(*conn), Some(*until)),
            State::Open(session) => {
                let silence = self.lane.silence(now);
                let left = silence.map(|silence| self.terms.give_up().saturating_sub(silence));
                (Some(session.conn), left.map(|left| now.after(left)))
            }
        };
        let reply = conn.and_then(|conn| server.next_reply(conn));
        let work = self.terms.drives.then(|| server.due()).flatten();
        own.into_iter().chain(reply).chain(work).min()
    }

    fn turn(&mut self, now: Instant) {
        if let State::Pausing(until) = self.state
            && now >= until
        {
            self.connect(now);
        }
        if self.terms.drives {
            self.server.lock().run(now);
        }
        if let State::Opening { conn, until } = self.state {
            self.opening(conn, until, now);
        }
        self.serve(now);
        self.send(now);
    }
}
