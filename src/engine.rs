//! The engine of one client: queue, keeper and coordinator, driven by commands and time.
//!
//! ```text
//!   client, lock, guard ──Command──► engine ─► queue ─┐
//!            ▲                         │     ► keeper ┼─► LeaseStore (coordinator) ─► nodes
//!            └──── Claim, errors ──────┘              ◄── Outcome
//! ```
//!
//! It is a plain state machine: [`Engine::command`] and [`Engine::turn`] are told the time, and
//! [`Engine::next_timeout`] says when it must be called again. A thread of the client's own runs
//! it beside the connections (`engine/thread.rs`); a simulation runs it alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, Instant};
use crate::coordinator::{LeaseId, LeaseStore, Outcome};
use crate::error::{AcquireError, ExtendError, Loss};
use crate::keeper::{Cell, ExtendReply, Freed, Keeper, ReleaseReply};
use crate::queue::{Failure, Queue, Served, Spec, WaiterId};
use crate::quorum::{Quorum, Timing};

mod alarm;
mod thread;

pub(crate) use thread::{Setup, start};

/// Where the outcome of an acquisition goes. The claim inside it releases the lease when it is
/// dropped, so that an outcome which nobody takes out is not lost.
pub(crate) type AcquireReply = oneshot::Sender<Result<Claim, AcquireError>>;

/// What callers ask of the engine.
pub(crate) enum Command {
    Acquire {
        id: WaiterId,
        spec: Arc<Spec>,
        handle: Handle,
        reply: AcquireReply,
    },
    Cancel {
        id: WaiterId,
    },
    Extend {
        lease: LeaseId,
        timing: Option<Timing>,
        reply: ExtendReply,
    },
    Release {
        lease: LeaseId,
        reply: Option<ReleaseReply>,
    },
    /// Release everything, refuse what comes, and end. The reply is the number of releases that
    /// were not confirmed in time.
    Close {
        reply: oneshot::Sender<usize>,
    },
}

/// The callers' end of an engine.
#[derive(Clone)]
pub(crate) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    waiters: Arc<AtomicU64>,
    process: u32,
}

impl Handle {
    pub(crate) fn new(commands: mpsc::UnboundedSender<Command>) -> Self {
        Handle {
            commands,
            waiters: Arc::new(AtomicU64::new(1)),
            process: std::process::id(),
        }
    }

    /// A fresh name for an acquisition.
    pub(crate) fn new_waiter(&self) -> WaiterId {
        self.waiters.fetch_add(1, Ordering::Relaxed)
    }

    /// `false` when the engine has ended, or lives in another process: a fork has no threads but
    /// the one that forked.
    pub(crate) fn send(&self, command: Command) -> bool {
        self.is_of_this_process() && self.commands.send(command).is_ok()
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }
}

/// A granted lease on its way to its holder. Dropping it lets the lease go.
#[must_use]
pub(crate) struct Claim {
    pub(crate) lease: LeaseId,
    pub(crate) cell: Arc<Cell>,
    pub(crate) spec: Arc<Spec>,
    handle: Handle,
    kept: bool,
}

impl Claim {
    /// Asks the engine for something about this lease. `false` when there is no engine any more.
    pub(crate) fn send(&self, command: Command) -> bool {
        self.handle.send(command)
    }

    /// Lets the lease go, and says how that went on `reply`. `false` when nobody will.
    pub(crate) fn release(mut self, reply: ReleaseReply) -> bool {
        self.kept = true;
        self.handle.send(Command::Release {
            lease: self.lease,
            reply: Some(reply),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // In a forked child the lease is the parent's.
        if !self.kept && self.handle.is_of_this_process() {
            self.cell.end(Loss::Released);
            self.handle.send(Command::Release {
                lease: self.lease,
                reply: None,
            });
        }
    }
}

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
    unconfirmed: usize,
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
            unconfirmed: 0,
        }
    }

    /// Takes a command in. [`Engine::turn`] must follow.
    pub(crate) fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Acquire {
                id,
                spec,
                handle,
                reply,
            } => self.acquire(now, id, spec, Caller { handle, reply }),
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
            Command::Close { reply } => {
                self.close(now);
                self.closing = Some(reply);
            }
        }
    }

    fn acquire(&mut self, now: Instant, id: WaiterId, spec: Arc<Spec>, caller: Caller) {
        if self.closed {
            let _ = caller.reply.send(Err(AcquireError::Closed));
            return;
        }
        let held = self.keeper.holds(&spec.key);
        self.queue
            .enter(id, spec, caller, held, now, &mut self.store);
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
            let mut busy = false;
            while let Some(outcome) = self.store.outcome() {
                self.outcome(outcome, now);
                busy = true;
            }
            for freed in self.keeper.turn(now, &mut self.store) {
                self.queue.freed(&freed.0, now, &mut self.store);
                busy = true;
            }
            self.queue.turn(now, &mut self.store);
            if !busy {
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
                timing,
                started,
                deadline,
            } => match self.queue.acquired(attempt) {
                Some(served) => self.grant(served, lease, started, deadline),
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
            Outcome::Released {
                lease,
                confirmed,
                absent,
            } => {
                if confirmed < self.quorum.needed() {
                    self.unconfirmed += usize::from(self.closed);
                }
                self.keeper.released(lease, confirmed, absent);
            }
        }
    }

    fn grant(
        &mut self,
        served: Served<Caller>,
        lease: LeaseId,
        started: Instant,
        deadline: Instant,
    ) {
        let Served { spec, reply } = served;
        let cell = self.keeper.hold(lease, &spec, started, deadline);
        let claim = Claim {
            lease,
            cell,
            spec,
            handle: reply.handle,
            kept: false,
        };
        // Dropped, wherever that happens, the claim comes back as a release.
        let _ = reply.reply.send(Ok(claim));
    }

    fn failed(
        &mut self,
        attempt: u64,
        why: crate::quorum::Shortfall,
        votes: Vec<crate::error::NodeVote>,
        now: Instant,
    ) {
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

    /// Whether there is nothing left to send before the end.
    pub(crate) fn is_quiet(&self) -> bool {
        self.closed && self.store.is_quiet()
    }

    /// Whether somebody has asked for the end.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Tells whoever closed the client how it went.
    pub(crate) fn report(&mut self) {
        if let Some(reply) = self.closing.take() {
            let _ = reply.send(self.unconfirmed);
        }
    }
}

/// What an extension by hand gets when the engine is gone.
pub(crate) const fn extend_closed() -> ExtendError {
    ExtendError::Lost(Loss::Closed)
}
