//! A Redis or Valkey server: one connection, and a supervisor that keeps making it.
//!
//! ```text
//!            ┌──────── backoff, jittered ◄─────── could not connect ──┐
//!            ▼                                                        │
//!   connect ─► introduce (INFO, marker) ─► session ─► ended ─► once more at once
//!                                            │  ▲
//!                            flush ─► one write ─► answers ─► Inbox
//! ```
//!
//! redis-rs packs the commands and has the values; the socket, the queue, its order, the time
//! limits and the reconnects are ours, since its own would re-order, re-send, hide restarts, and
//! cost a task, a channel and a wake-up for each of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::Interest;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::connect::Target;
use super::ears::Ears;
use super::lane::{Admission, Lane, Link};
use super::{Ask, AskId, Event, Fault, FaultKind, Inbox, NOBODY, Node, Order, Reply, unsent};
use crate::clock::{Clock, Instant};
use crate::metrics;

mod flight;
mod login;
mod session;
mod supervisor;

use session::Session;
use supervisor::supervise;

/// How a node is treated.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    /// Where the marker of the set is (P10).
    pub(crate) marker_key: Vec<u8>,
    /// A request without an answer for so long makes the node one that hangs.
    pub(crate) patience: Duration,
    /// The most grants and extensions in its queue.
    pub(crate) limit: usize,
}

impl Manners {
    /// A connection whose oldest request has waited so long is given up: the socket is half open,
    /// or the server is stopped.
    fn give_up(&self) -> Duration {
        self.patience.saturating_mul(5).max(Duration::from_secs(1))
    }

    /// The time for one connection: name, socket, TLS, credentials and introduction.
    fn connect_within(&self) -> Duration {
        self.patience.saturating_mul(2).max(Duration::from_secs(2))
    }
}

/// The handle of a server: submits, and ends the supervisor when it is dropped.
pub(crate) struct RedisNode {
    shared: Arc<Shared>,
    supervisor: AbortHandle,
}

struct Shared {
    index: usize,
    target: Target,
    manners: Manners,
    line: Mutex<Line>,
    /// The supervisor has something to do that no socket tells it.
    wake: Notify,
    inbox: Inbox,
    clock: Clock,
    meters: metrics::Flush,
}

/// What waits for a server, and the connection where there is one.
struct Line {
    lane: Lane,
    ears: Ears,
    session: Option<Session>,
}

impl RedisNode {
    /// Starts the supervisor on the present `LocalSet`; it connects at once.
    pub(crate) fn spawn(
        index: usize,
        target: Target,
        manners: Manners,
        inbox: Inbox,
        clock: Clock,
    ) -> Self {
        let lane = Lane::new(manners.patience, manners.limit);
        let ears = Ears::default();
        let session = None;
        let shared = Arc::new(Shared {
            index,
            target,
            manners,
            line: Mutex::new(Line {
                lane,
                ears,
                session,
            }),
            wake: Notify::new(),
            inbox,
            clock,
            meters: metrics::Flush::default(),
        });
        let supervisor = tokio::task::spawn_local(supervise(Arc::clone(&shared)));
        RedisNode {
            shared,
            supervisor: supervisor.abort_handle(),
        }
    }
}

impl Drop for RedisNode {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

impl Node for RedisNode {
    fn name(&self) -> &str {
        &self.shared.target.name
    }

    fn submit(
        &mut self,
        id: AskId,
        order: &Arc<Order>,
        ask: Ask,
        now: Instant,
    ) -> Result<(), Fault> {
        let mut line = self.shared.line();
        let reply = match line.lane.admit(id, order, ask, now)? {
            Admission::Queued => return Ok(()),
            Admission::Withdrawn(asks) => {
                for ask in asks {
                    self.shared.answer(ask, Reply::Failed(unsent()));
                }
                Reply::WITHDRAWN
            }
            Admission::Owed => match line.lane.link() {
                Link::Down(fault) => Reply::Failed(fault.clone()),
                Link::Opening | Link::Open => return Ok(()),
            },
        };
        drop(line);
        self.shared.answer(id, reply);
        Ok(())
    }

    fn listen(&mut self, key: &Arc<[u8]>) {
        self.shared.line().ears.listen(key);
    }

    fn ignore(&mut self, key: &Arc<[u8]>) {
        self.shared.line().ears.ignore(key);
    }

    fn hangs(&self, now: Instant) -> Option<Duration> {
        self.shared.line().lane.hangs(now)
    }

    fn flush(&mut self) {
        let mut line = self.shared.line();
        let Line {
            lane,
            ears,
            session,
        } = &mut *line;
        if let Some(session) = session
            && (lane.is_waiting() || ears.is_waiting())
        {
            session.listen(ears);
            session.send(lane, &self.shared);
            if session.wants_supervisor() {
                self.shared.wake.notify_one();
            }
        }
    }
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: Event) {
        self.inbox.push(self.index, event);
    }

    fn answer(&self, id: AskId, reply: Reply) {
        if id != NOBODY {
            let time = None;
            self.tell(Event::Answer { id, reply, time });
        }
    }

    /// There is no connection now; `link` says whether requests should wait for the next one.
    fn broken(&self, link: Link, fault: &Fault) {
        let ended = {
            let mut line = self.line();
            line.ears.cut();
            line.lane.broken(link)
        };
        for entry in ended {
            self.answer(entry.id, Reply::Failed(fault.clone()));
        }
    }

    /// Whether there may be more to read, which nothing else tells.
    fn has_more(&self) -> bool {
        let line = self.line();
        line.session.as_ref().is_some_and(|session| session.more)
    }

    /// What the supervisor waits for: the socket, and whether to look after a silent server.
    fn attention(&self) -> (Interest, bool) {
        match &mut self.line().session {
            Some(session) if session.wants_write() => {
                (Interest::READABLE | Interest::WRITABLE, session.watch())
            }
            Some(session) => (Interest::READABLE, session.watch()),
            None => (Interest::READABLE, false),
        }
    }

    /// # Errors
    /// The server has been silent for too long.
    fn check_silence(&self, give_up: Duration) -> Result<(), Fault> {
        let Line { lane, session, .. } = &mut *self.line();
        if let Some(session) = session {
            session.watched = session.is_waiting();
        }
        match lane.silence(self.clock.now()) {
            Some(silence) if silence >= give_up => {
                let detail = format!("no answer for {} ms", silence.as_millis());
                Err(Fault::new(FaultKind::Timeout, detail))
            }
            _ => Ok(()),
        }
    }

    /// Reads what has come, and sends what may be sent since.
    ///
    /// # Errors
    /// The connection is of no use any more. What was answered before its end still counts.
    fn receive(&self) -> Result<(), Fault> {
        let mut events = Vec::new();
        let mut line = self.line();
        let Line { lane, session, .. } = &mut *line;
        let Some(session) = session else {
            return Ok(());
        };
        let received = session.receive(lane, self, &mut events);
        session.send(lane, self);
        drop(line);
        self.inbox.push_all(self.index, events);
        received
    }
}
