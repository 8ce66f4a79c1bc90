//! What the store reports, and who is to know of it.

use super::{Engine, deliver};
use crate::clock::Instant;
use crate::coordinator::{LeaseStore, Outcome};
use crate::error::{Loss, NodeVote};
use crate::keeper::HoldId;
use crate::queue::{Failure, Served};
use crate::quorum::Failed;

impl<S: LeaseStore> Engine<S> {
    pub(super) fn outcome(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Acquired {
                attempt,
                lease,
                token,
                timing,
                votes,
                started,
                deadline,
            } => match self.queue.acquired(attempt, now, &mut self.store) {
                Some(served) => {
                    let Served { spec, adopted, .. } = &served;
                    let span = (started, deadline);
                    let cell = self.keeper.hold(lease, spec, span, *adopted, now);
                    let hold = HoldId { lease, turn: 0 };
                    deliver(served, hold, token, cell, votes);
                }
                // Its waiter went away in the same turn; nobody else knows of the lease.
                None => self.store.release(now, lease, &timing),
            },
            Outcome::Failed {
                attempt,
                failed,
                votes,
            } => self.failed(attempt, failed, votes, now),
            Outcome::Hint { key, hint } => {
                let moment = (now, (self.chance)());
                self.queue.hint(&key, hint, moment, &mut self.store);
            }
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
                    self.freed(Some(freed), now);
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

    fn failed(&mut self, attempt: u64, failed: Failed, votes: Vec<NodeVote>, now: Instant) {
        let held_here = match self.queue.key_of(attempt) {
            Some(key) => self.keeper.holds(key),
            None => return,
        };
        let failure = Failure {
            failed,
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
}
