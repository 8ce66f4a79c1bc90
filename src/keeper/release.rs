//! Letting go: the keeper's part in a release (P6).

use std::sync::Arc;

use super::{DetachReply, Freed, HoldId, Keeper, ReleaseReply};
use crate::clock::Instant;
use crate::coordinator::{LeaseId, LeaseStore, Secret};
use crate::error::{Loss, ReleaseError, Released};
use crate::quorum::FencingToken;

/// Somebody waits to hear how the release went.
pub(super) struct Releasing {
    reply: ReleaseReply,
    valid: bool,
}

impl Keeper {
    /// The holder lets go. `reply` hears how it went; without one nobody waits for it.
    pub(crate) fn release(
        &mut self,
        hold: HoldId,
        reply: Option<ReleaseReply>,
        why: Loss,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Freed> {
        // One that was lost has been released already, and its guard knows why it was lost.
        self.current(hold)?;
        let id = hold.lease;
        let record = self.remove(id, now)?;
        let valid = record.cell.valid_until().is_some() && now < record.lease.deadline();
        if now >= record.lease.deadline() && why == Loss::Released {
            self.holding.lost(Loss::Expired);
        }
        record.cell.end(if valid { why } else { Loss::Expired });
        self.refuse(id, why);
        if let Some(reply) = reply {
            self.releases.insert(id, Releasing { reply, valid });
        }
        store.release(now, id, &record.cell.spec().terms.timing);
        Some(Freed(Arc::clone(&record.cell.spec().key)))
    }

    /// The holder lets go without a release, and hands the secret on. If nobody takes it, the
    /// lease is released after all.
    pub(crate) fn detach(
        &mut self,
        hold: HoldId,
        token: FencingToken,
        reply: DetachReply,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Freed> {
        let id = hold.lease;
        let valid = |record: &super::Record| record.cell.valid_until().is_some();
        if reply.is_closed() || !self.current(hold).is_some_and(valid) {
            return self.release(hold, None, Loss::Released, now, store);
        }
        let record = self.remove(id, now)?;
        record.cell.end(Loss::Detached);
        self.refuse(id, Loss::Detached);
        if let Some(secret) = store.forget(id) {
            // Its own token, not the last of those that the grant reserved.
            let _ = reply.send(Secret {
                fence: token,
                ..secret
            });
        }
        Some(Freed(Arc::clone(&record.cell.spec().key)))
    }

    /// A release has been answered by `confirmed` nodes; on `absent` of them nothing was ours.
    pub(crate) fn released(&mut self, id: LeaseId, confirmed: usize, absent: usize) {
        let Some(Releasing { reply, valid }) = self.releases.remove(&id) else {
            return;
        };
        let outcome = if !valid {
            Ok(Released::AlreadyLost(Loss::Expired))
        } else if absent > self.quorum.spare() {
            Ok(Released::AlreadyLost(Loss::Deleted))
        } else if confirmed >= self.quorum.needed() {
            Ok(Released::InTime)
        } else {
            Err(ReleaseError::Unconfirmed {
                confirmed,
                needed: self.quorum.needed(),
                nodes: self.quorum.nodes(),
            })
        };
        let _ = reply.send(outcome);
    }

    /// Lets go of everything: the client is closed, or nobody is left to hold.
    pub(crate) fn release_all(&mut self, now: Instant, store: &mut dyn LeaseStore) {
        let hold = |(&lease, record): (&LeaseId, &super::Record)| HoldId {
            lease,
            turn: record.turn,
        };
        let mut holds: Vec<HoldId> = self.records.iter().map(hold).collect();
        holds.sort_unstable_by_key(|hold| hold.lease);
        for hold in holds {
            self.release(hold, None, Loss::Closed, now, store);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // After a panic of the engine nobody extends any more: holders hear of it now (P8).
        for record in self.records.values() {
            record.cell.end(Loss::Closed);
        }
    }
}
