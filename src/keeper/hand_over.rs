//! Handing a lease on inside the client: lock cohorting (P12).
//!
//! ```text
//!   release(hold) ─► heir in line? sound? within the cohort's bounds? ─► hand_over: turn + 1
//!                         └──── no ────► release everywhere
//! ```
//!
//! The lease belongs to the keeper. Each holder has a hold of its own, which ends when it is handed
//! on, whatever the lease goes on to do: what a former holder still asks for is not heard.

use std::sync::Arc;

use super::{Cell, Keeper, Record, ReleaseReply};
use crate::clock::Instant;
use crate::coordinator::LeaseId;
use crate::error::{Loss, Released};
use crate::queue::Spec;

/// Names one holder's part of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldId {
    pub(crate) lease: LeaseId,
    /// How many holders the lease has had before.
    pub(crate) turn: u32,
}

impl Keeper {
    /// The lease of `hold`, if that is the present holder's.
    pub(super) fn current(&self, hold: HoldId) -> Option<&Record> {
        let record = self.records.get(&hold.lease)?;
        (record.turn == hold.turn).then_some(record)
    }

    /// Which key `hold` is about, if it has not ended.
    pub(crate) fn key_of(&self, hold: HoldId) -> Option<&Arc<[u8]>> {
        Some(&self.current(hold)?.cell.spec().key)
    }

    /// Hands the lease on to `heir`: the old hold has ended, the new one is returned. `None` where
    /// it must be released instead, and nothing has changed.
    ///
    /// The heir must want what the lease gives, and only where it is extended: else it would get a
    /// part of a TTL for a whole one.
    pub(crate) fn hand_over(
        &mut self,
        hold: HoldId,
        heir: &Arc<Spec>,
        reply: &mut Option<ReleaseReply>,
        now: Instant,
    ) -> Option<(HoldId, Arc<Cell>)> {
        let record = self.current(hold)?;
        let (mine, theirs) = (&record.cell.spec().terms, &heir.terms);
        let same = mine.timing == theirs.timing && mine.extend_every == theirs.extend_every;
        let cohort = mine.cohort;
        let bounds = record.turn < cohort.max_handoffs
            && now < record.granted.after(cohort.max_time)
            && !record.adopted;
        let sound = record.lease.is_sound(now, &mine.timing);
        if !(same && mine.extend_every.is_some() && bounds && sound) {
            return None;
        }
        let max_hold = theirs.max_hold;
        self.refuse(hold.lease, Loss::Released);
        self.holding.handed_on();
        let record = self.records.get_mut(&hold.lease)?;
        self.holding.ended(now.since(record.since));
        record.since = now;
        record.cell.end(Loss::Released);
        record.turn += 1;
        record.lease.handed_over(now, max_hold);
        let deadline = record.lease.deadline();
        let cell = Arc::new(Cell::new(Arc::clone(heir), self.clock.clone(), deadline));
        record.cell = Arc::clone(&cell);
        let hold = HoldId {
            turn: record.turn,
            ..hold
        };
        self.arm(hold.lease, now);
        if let Some(reply) = reply.take() {
            let _ = reply.send(Ok(Released::InTime));
        }
        Some((hold, cell))
    }
}
