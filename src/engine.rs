//! The engine of one client: queue, keeper and coordinator, driven by commands and time.
//!
//! ```text
//!   client, lock, guard ──Command──► engine ─► queue ─┐
//!            ▲                         │     ► keeper ┼─► LeaseStore (coordinator) ─► nodes
//!            └──── Claim, errors ──────┘              ◄── Outcome
//! ```
//!
//! It is a plain state machine: [`Engine::command`] and [`Engine::turn`] are told the time, and
//! [`Engine::next_timeout`] says when it must be called again. A [`Runner`] feeds it: on a thread
//! of the client's own beside the connections (`engine/thread.rs`), or alone in a simulation.

use tokio::sync::oneshot;

use crate::clock::{Clock, Instant};
use crate::coordinator::{LeaseId, LeaseStore, Outcome};
use crate::error::{AcquireError, Loss, NodeVote};
use crate::hash::FastSet;
use crate::keeper::{Freed, Keeper};
use crate::queue::{Entrant, Failure, Queue, Served, WaiterId};
use crate::quorum::{FencingToken, Quorum, Shortfall};

mod alarm;
mod core;
mod handle;
mod runner;
mod thread;

#[cfg(any(test, feature = "test-util"))]
pub(crate) use self::core::Start;
pub(crate) use self::core::{Core, Source};
pub(crate) use handle::{AcquireReply, Claim, Command, Handle};
pub(crate) use runner::{MakeNodes, Runner, Setup};
pub(crate) use thread::start;

/// How one waiter hears of its lock.
struct Caller {
    handle: Handle,
    reply: AcquireReply,
}

/// Where chance comes from: a uniform draw over all of `u64`.
pub(crate) type Chance = Box<dyn FnMut() -> u64>;

/// The state machine of one client.
pub(crate) struct Engine<S> {
    store: S,
    quorum: Quorum,
    keeper: Keeper,
    queue: Queue<Caller>,
    chance: Chance,
    closing: Option<oneshot::Sender<usize>>,
    closed: bool,
    /// The releases since the end began that no quorum has confirmed.
    unconfirmed: FastSet<LeaseId>,
}

/// The most passes in one turn: what is left after them is done in the next.
const PASSES: usize = 64;

impl<S: LeaseStore> Engine<S> {
    pub(crate) fn new(store: S, quorum: Quorum, clock: Clock, chance: Chance) -> Self {
        Engine {
            store,
            quorum,
            keeper: Keeper::new(clock, quorum),
            queue: Queue::default(),
            chance,
            closing: None,
            closed: false,
            unconfirmed: FastSet::default(),
        }
    }

    /// Takes a command in. [`Engine::turn`] must follow.
    pub(crate) fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Acquire {
                id,
                spec,
                wait,
                adopts,
                handle,
                reply,
            } => {
                let reply = Caller { handle, reply };
                let entrant = Entrant {
                    spec,
                    wait,
                    adopts,
                    reply,
                };
                self.acquire(now, id, entrant);
            }
            Command::Cancel { id } => {
                let keeper = &self.keeper;
                let held = |key: &[u8]| keeper.holds(key);
                self.queue.cancel(id, held, now, &mut self.store);
            }
            Command::Extend {
                lease,
                timing,
                reply,
            } => {
                let store = &mut self.store;
                let freed = self.keeper.extend(lease, timing, reply, now, store);
                self.freed(freed, now);
            }
            Command::Release { lease, reply } => {
                let store = &mut self.store;
                let freed = self
                    .keeper
                    .release(lease, reply, Loss::Released, now, store);
                self.freed(freed, now);
            }
            Command::Detach { lease, reply } => {
                let freed = self.keeper.detach(lease, reply, now, &mut self.store);
                self.freed(freed, now);
            }
            Command::Secret { lease, reply } => {
                if let Some(secret) = self.store.secret(lease) {
                    let _ = reply.send(secret);
                }
            }
            Command::Nodes { reply } => {
                let _ = reply.send(self.store.nodes(now));
            }
            Command::Close { reply } => {
                self.close(now);
                self.closing = Some(reply);
            }
        }
    }

    fn acquire(&mut self, now: Instant, id: WaiterId, entrant: Entrant<Caller>) {
        if self.closed {
            let _ = entrant.reply.reply.send(Err(AcquireError::Closed));
            return;
        }
        let held = self.keeper.holds(&entrant.spec.key);
        self.queue.enter(id, entrant, held, now, &mut self.store);
    }

    /// Releases what is held and refuses what is asked from now on.
    pub(crate) fn close(&mut self, now: Instant) {
        self.closed = true;
        for caller in self.queue.close(now, &mut self.store) {
            let _ = caller.reply.send(Err(AcquireError::Closed));
        }
        self.keeper.release_all(now, &mut self.store);
    }

    /// Takes in what has arrived, does what is due, sends what came of it.
    pub(crate) fn turn(&mut self, now: Instant) {
        for _ in 0..PASSES {
            self.store.turn(now);
            while let Some(outcome) = self.store.outcome() {
                self.outcome(outcome, now);
            }
            for freed in self.keeper.turn(now, &mut self.store) {
                self.queue.freed(&freed.0, now, &mut self.store);
            }
            self.queue.turn(now, &mut self.store);
            // A round that begins over nodes that are down ends at once: with an outcome that
            // nothing else would wake us for.
            if !self.store.has_news() {
                break;
            }
        }
        self.store.flush();
    }

    fn outcome(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Acquired {
                attempt,
                lease,
                token,
                timing,
                started,
                deadline,
            } => match self.queue.acquired(attempt) {
                Some(served) => self.grant(served, (lease, token), started, deadline),
                // Its waiter went away in the same turn; nobody else knows of the lease.
                None => self.store.release(now, lease, &timing),
            },
            Outcome::Failed {
                attempt,
                why,
                votes,
            } => self.failed(attempt, why, votes, now),
            Outcome::Extended {
                lease,
                started,
                outcome,
            } => {
                let chance = (self.chance)();
                let store = &mut self.store;
                let freed = self
                    .keeper
                    .extended(lease, started, outcome, now, chance, store);
                self.freed(freed, now);
            }
            Outcome::Prolonged { lease, deadline } => {
                let store = &mut self.store;
                let freed = self.keeper.prolonged(lease, deadline, now, store);
                self.freed(freed, now);
            }
            Outcome::Frozen => {
                for freed in self.keeper.lose_all(now, Loss::Frozen, &mut self.store) {
                    self.queue.freed(&freed.0, now, &mut self.store);
                }
            }
            Outcome::Released {
                lease,
                confirmed,
                absent,
            } => {
                if confirmed >= self.quorum.needed() {
                    self.unconfirmed.remove(&lease);
                } else if self.closed {
                    self.unconfirmed.insert(lease);
                }
                self.keeper.released(lease, confirmed, absent);
            }
        }
    }

    fn grant(
        &mut self,
        served: Served<Caller>,
        (lease, token): (LeaseId, FencingToken),
        started: Instant,
        deadline: Instant,
    ) {
        let Served { spec, reply } = served;
        let cell = self.keeper.hold(lease, &spec, started, deadline);
        let claim = Claim {
            lease,
            token,
            cell,
            handle: reply.handle,
            kept: false,
        };
        // Dropped, wherever that happens, the claim comes back as a release.
        let _ = reply.reply.send(Ok(claim));
    }

    fn failed(&mut self, attempt: u64, why: Shortfall, votes: Vec<NodeVote>, now: Instant) {
        let held_here = match self.queue.key_of(attempt) {
            Some(key) => self.keeper.holds(key),
            None => return,
        };
        let failure = Failure {
            why,
            votes,
            quorum: self.quorum,
            held_here,
            chance: (self.chance)(),
        };
        let store = &mut self.store;
        if let Some(unserved) = self.queue.failed(attempt, failure, now, store) {
            let _ = unserved.reply.reply.send(Err(unserved.error));
        }
    }

    fn freed(&mut self, freed: Option<Freed>, now: Instant) {
        if let Some(Freed(key)) = freed {
            self.queue.freed(&key, now, &mut self.store);
        }
    }

    /// When [`Engine::turn`] must be called at the latest.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let store = self.store.next_timeout();
        let timeouts = [store, self.keeper.next_timeout(), self.queue.next_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// How many answers to releases stand between us and the end.
    pub(crate) fn unreleased(&self) -> usize {
        self.store.unreleased()
    }

    /// Whether somebody has asked for the end.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Tells whoever closed the client how it went.
    pub(crate) fn report(&mut self) {
        if let Some(reply) = self.closing.take() {
            let _ = reply.send(self.unconfirmed.len());
        }
    }
}

#[cfg(test)]
mod tests;
