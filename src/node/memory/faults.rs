//! What can be done to a server and to the paths that lead to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Fault, FaultKind};
use super::chance::Chance;
use super::server::{ClientId, ConnId, NO_LATENCY, Request, Response, Server};
use crate::clock::Instant;

/// The state of the network between one client and one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Path {
    #[default]
    Open,
    /// Nothing comes through now; it will once the path is mended, as TCP sends again.
    Held,
    /// What is sent is gone for good, and so is the connection it was sent on.
    Swallows,
}

/// What happens to the requests on their way when a connection is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// None of them is carried out.
    Before,
    /// All are carried out; the answers are lost.
    After,
    /// So many of them are carried out, and the rest and the answers are lost.
    Amid(usize),
    /// All are carried out so much later, when the next connection is in use: their bytes were
    /// still in the network.
    Later(Duration),
}

/// How a server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    Empty,
    WithData,
    /// Without the last write: it was not on the disk yet.
    WithoutLastWrite,
    /// With the data of the last [`Server::save`].
    WithOldData,
}

/// The scripted faults of one server.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(super) hung: bool,
    pub(super) refusing: bool,
    /// Subscriptions are refused.
    pub(super) mute: bool,
    pub(super) latency: (Duration, Duration),
    /// The same for a client that is nearer, or further away, than the others.
    pub(super) latencies: BTreeMap<ClientId, (Duration, Duration)>,
    /// What each request keeps it busy for.
    pub(super) service: Duration,
    /// The answer to the next requests, and to how many.
    errors: Option<(Fault, u64)>,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            hung: false,
            refusing: false,
            mute: false,
            latency: NO_LATENCY,
            latencies: BTreeMap::new(),
            service: Duration::ZERO,
            errors: None,
        }
    }
}

impl Faults {
    pub(super) fn latency(&self, client: ClientId, chance: &mut Chance) -> Duration {
        let own = self.latencies.get(&client).copied();
        let (least, most) = own.unwrap_or(self.latency);
        if least == most {
            return least;
        }
        chance.between(least, most)
    }

    /// The error that the next request gets, which stays.
    pub(super) fn present(&self) -> Option<Fault> {
        self.errors.as_ref().map(|(fault, _)| fault.clone())
    }

    /// The error that the next request gets. A server out of memory still lets deletes pass.
    pub(super) fn error(&mut self, release: bool) -> Option<Fault> {
        let (fault, left) = self.errors.as_mut()?;
        if release && fault.kind() == FaultKind::OutOfMemory {
            return None;
        }
        let fault = fault.clone();
        *left -= 1;
        if *left == 0 {
            self.errors = None;
        }
        Some(fault)
    }
}

impl Server {
    /// A request and its answer each take a time from `least` to `most`.
    pub(crate) fn set_latency(&mut self, least: Duration, most: Duration) {
        self.faults.latency = (least, most.max(least));
    }

    /// The same for one client.
    pub(crate) fn set_latency_of(&mut self, client: ClientId, least: Duration, most: Duration) {
        let span = (least, most.max(least));
        self.faults.latencies.insert(client, span);
    }

    /// It is as far away as the others again.
    pub(crate) fn forget_latency_of(&mut self, client: ClientId) {
        self.faults.latencies.remove(&client);
    }

    /// Each request keeps the server busy for so long.
    pub(crate) fn set_service(&mut self, busy: Duration) {
        self.faults.service = busy;
    }

    /// The next `count` requests get `fault` for an answer.
    pub(crate) fn fail(&mut self, fault: Fault, count: u64) {
        self.faults.errors = (count > 0).then_some((fault, count));
    }

    pub(crate) fn stop_failing(&mut self) {
        self.faults.errors = None;
    }

    /// Stopped: sockets take requests in, and none is carried out before [`Server::resume`].
    pub(crate) fn hang(&mut self, now: Instant) {
        self.run(now);
        self.events += 1;
        self.faults.hung = true;
    }

    pub(crate) fn resume(&mut self, now: Instant) {
        if std::mem::take(&mut self.faults.hung) {
            self.free_from = self.free_from.max(now);
            self.ring();
        }
    }

    /// New connections are refused; those that are there stay.
    pub(crate) fn refuse(&mut self, refusing: bool) {
        self.faults.refusing = refusing;
    }

    /// The process ends: all connections do, and new ones are refused.
    pub(crate) fn kill(&mut self, now: Instant) {
        self.run(now);
        self.events += 1;
        self.faults.refusing = true;
        self.faults.hung = false;
        self.queue.clear();
        let ids: Vec<ConnId> = self.conns.keys().copied().collect();
        for id in ids {
            self.end(id, now);
        }
    }

    /// The process ends and comes back at once, under a new run id.
    pub(crate) fn restart(&mut self, how: Restart, now: Instant) {
        self.kill(now);
        match how {
            Restart::Empty => self.store.clear(),
            Restart::WithData => {}
            Restart::WithoutLastWrite => self.store.undo(),
            Restart::WithOldData => self.store = self.saved.clone(),
        }
        self.lost_data |= how == Restart::Empty;
        self.faults.refusing = false;
        self.run_id = format!("{:016x}", self.chance.draw());
        self.born = self.hands.at(now) / 1_000_000_000;
        self.free_from = self.free_from.max(now);
    }

    /// `FLUSHALL`
    pub(crate) fn wipe(&mut self, now: Instant) {
        self.run(now);
        self.events += 1;
        self.store.clear();
        self.lost_data = true;
    }

    /// Ends the connections of `client`.
    pub(crate) fn reset(&mut self, client: ClientId, how: Reset, now: Instant) {
        self.run(now);
        self.events += 1;
        let mut left = match how {
            Reset::Before => 0,
            Reset::After => usize::MAX,
            Reset::Amid(count) => count,
            Reset::Later(_) => 0,
        };
        if self.faults.hung {
            left = 0;
        }
        for id in self.conns_of(client) {
            if let Reset::Later(span) = how {
                self.outlive(id, now.after(span));
            }
            let mine = self.queue.iter().filter(|(_, (conn, _))| *conn == id);
            let numbers: Vec<_> = mine.map(|(number, _)| *number).collect();
            for number in numbers {
                if let Some((_, request)) = self.queue.remove(&number) {
                    let most = left;
                    left = left.saturating_sub(request.len());
                    if most > 0 {
                        self.carry_out(id, request, now, most);
                    }
                }
            }
            self.end(id, now);
        }
    }

    /// What is on its way over `id` comes at `moment`, whatever becomes of the connection.
    fn outlive(&mut self, id: ConnId, moment: Instant) {
        let mine = self.queue.iter().filter(|(_, (conn, _))| *conn == id);
        let numbers: Vec<_> = mine.map(|(number, _)| *number).collect();
        let Some(conn) = self.conns.get(&id).filter(|_| !numbers.is_empty()) else {
            return;
        };
        let (client, bell) = (conn.client, Arc::clone(&conn.bell));
        let ghost = self.connect(client, bell, moment);
        for number in numbers {
            if let Some((_, request)) = self.queue.remove(&number) {
                let place = (moment, self.number());
                self.queue.insert(place, (ghost, request));
                if let Some(conn) = self.conns.get_mut(&ghost) {
                    conn.pending += 1;
                }
            }
        }
        self.leave(ghost);
    }

    /// Keeps what it has now, as a snapshot on its disk.
    pub(crate) fn save(&mut self, now: Instant) {
        self.run(now);
        self.saved = self.store.clone();
    }

    pub(super) fn conns_of(&self, client: ClientId) -> Vec<ConnId> {
        let mine = self.conns.iter().filter(|(_, conn)| conn.client == client);
        mine.map(|(id, _)| *id).collect()
    }

    /// The server's side ends a connection: what it had not sent yet, and what was on its way,
    /// is lost.
    fn end(&mut self, id: ConnId, now: Instant) {
        if let Some(conn) = self.conns.get_mut(&id).filter(|conn| !conn.dead) {
            self.events += 1;
            conn.dead = true;
            conn.pending = 0;
            conn.replies.clear();
            conn.held_in.clear();
            conn.held_out.clear();
            let fault = Fault::new(FaultKind::ConnectionLost, "reset by the server");
            self.respond(id, Response::Ended(fault), now);
        }
        self.conns.retain(|_, conn| !(conn.left && conn.dead));
    }
}

impl Request {
    /// How many commands it holds.
    pub(super) fn len(&self) -> usize {
        match self {
            Request::Introduce { .. } | Request::Listen { .. } => 1,
            Request::Batch { asks, .. } => asks.len(),
        }
    }
}
