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

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::clock::{Clock, Instant};
use crate::coordinator::{LeaseId, LeaseStore};
use crate::error::{AcquireError, Loss};
use crate::hash::FastSet;
use crate::keeper::{Cell, Freed, HoldId, Keeper, ReleaseReply};
use crate::queue::{Entrant, Queue, Served, WaiterId};
use crate::quorum::{FencingToken, Quorum};

mod alarm;
mod commands;
mod core;
mod handle;
mod outcome;
mod runner;
mod thread;

#[cfg(any(test, feature = "test-util"))]
pub(crate) use self::core::Start;
pub(crate) use self::core::{Core, Source};
pub(crate) use commands::Commands;
pub(crate) use handle::{AcquireReply, Claim, Command, Handle, Won};
pub(crate) use runner::{MakeNodes, Runner, Setup};
pub(crate) use thread::start;

/// How one waiter hears of its lock.
struct Caller {
    handle: Handle,
    reply: AcquireReply,
}

/// Where chance comes from: a uniform draw over all of `u64`.
pub(crate) type Chance = Box<dyn FnMut() -> u64 + Send>;

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
                hold,
                timing,
                span,
                reply,
            } => {
                let store = &mut self.store;
                let reply = (reply, span);
                let freed = self.keeper.extend(hold, timing, reply, now, store);
                self.freed(freed, now);
            }
            Command::Release { hold, token, reply } => self.release(hold, token, reply, now),
            Command::Detach { hold, token, reply } => {
                let store = &mut self.store;
                let freed = self.keeper.detach(hold, token, reply, now, store);
                self.freed(freed, now);
            }
            Command::Secret { hold, reply } => {
                if self.keeper.key_of(hold).is_some()
                    && let Some(secret) = self.store.secret(hold.lease)
                {
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
        let moment = (now, (self.chance)());
        self.queue.enter(id, entrant, held, moment, &mut self.store);
    }

    /// The holder lets go: the lease is handed on to the next in line, or released.
    fn release(
        &mut self,
        hold: HoldId,
        token: FencingToken,
        mut reply: Option<ReleaseReply>,
        now: Instant,
    ) {
        let key = self.keeper.key_of(hold);
        if let Some((heir, spec)) = key.and_then(|key| self.queue.heir(key))
            && let Some((hold, cell)) = self.keeper.hand_over(hold, spec, &mut reply, now)
        {
            return match self.queue.served(heir, 0, now, &mut self.store) {
                Some(served) => deliver(served, hold, token.plus(1), cell, 0),
                None => self.release(hold, token, None, now),
            };
        }
        let store = &mut self.store;
        let freed = self.keeper.release(hold, reply, Loss::Released, now, store);
        self.freed(freed, now);
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
                self.freed(Some(freed), now);
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

    fn freed(&mut self, freed: Option<Freed>, now: Instant) {
        if let Some(Freed(key)) = freed {
            let moment = (now, (self.chance)());
            self.queue.freed(&key, moment, &mut self.store);
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

    /// How many requests are under way.
    pub(crate) fn pending(&self) -> usize {
        self.store.pending()
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

/// Gives a hold to whoever waits for it. Dropped, wherever that happens, the claim comes back as a
/// release.
fn deliver(
    served: Served<Caller>,
    hold: HoldId,
    token: FencingToken,
    cell: Arc<Cell>,
    votes: usize,
) {
    let Served {
        rounds,
        waited,
        reply: caller,
        ..
    } = served;
    let claim = Claim {
        hold,
        token,
        cell,
        handle: caller.handle,
        kept: false,
    };
    let won = Won {
        claim,
        rounds,
        votes,
        waited,
    };
    let _ = caller.reply.send(Ok(won));
}

#[cfg(test)]
mod tests;
