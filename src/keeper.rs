//! Keeps the leases of one client: extends them, says when they are lost, lets them go.
//!
//! ```text
//!   hold ─► [ Record: Lease + Cell ] ──timer──► extend ─► renewed | unknown | lost
//!                     │                            │
//!                     └── release ◄── guard        └── lost: Cell::end, release everywhere
//! ```
//!
//! One keeper serves all leases of a client, off one heap of timers: what falls due together goes
//! to each node in one pipeline. The loss of a lease needs no answer of any node (P8).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{debug, warn};

use crate::clock::{Clock, Instant};
use crate::coordinator::{LeaseId, LeaseStore, Secret, Timers};
use crate::error::{ExtendError, Loss, Printable, ReleaseError, Released};
use crate::hash::FastMap;
use crate::metrics::{self, Extended};
use crate::queue::Spec;
use crate::quorum::backoff::part;
use crate::quorum::{Cause, Lease, Outcome, Quorum, Step, Timing};

mod by_hand;
mod cell;
mod hand_over;
mod record;
mod release;
mod span;

pub(crate) use cell::Cell;
pub(crate) use hand_over::HoldId;
use record::Record;
use span::automatic;
pub(crate) use span::by_hand as extension_span;

/// Where the outcome of a release goes.
pub(crate) type ReleaseReply = oneshot::Sender<Result<Released, ReleaseError>>;

/// Where the outcome of an extension by hand goes: the new deadline is in the cell.
pub(crate) type ExtendReply = oneshot::Sender<Result<(), ExtendError>>;

/// Where the secret of a detached lease goes.
pub(crate) type DetachReply = oneshot::Sender<Secret>;

/// All leases of one client.
pub(crate) struct Keeper {
    clock: Clock,
    quorum: Quorum,
    records: FastMap<LeaseId, Record>,
    /// How many leases stand for each key: one, unless the nodes have lost the first.
    keys: HashMap<Arc<[u8]>, u32>,
    releases: FastMap<LeaseId, release::Releasing>,
    /// Extensions that holders have asked for, where there are any.
    by_hand: FastMap<LeaseId, VecDeque<by_hand::ByHand>>,
    timers: Timers<LeaseId>,
    holding: metrics::Holding<Loss>,
    extending: metrics::Extending,
}

/// A lease that has ended, and whose place others may take.
pub(crate) struct Freed(pub(crate) Arc<[u8]>);

impl Keeper {
    pub(crate) fn new(clock: Clock, quorum: Quorum) -> Self {
        Keeper {
            clock,
            quorum,
            records: FastMap::default(),
            keys: HashMap::new(),
            releases: FastMap::default(),
            by_hand: FastMap::default(),
            timers: Timers::default(),
            holding: metrics::Holding::new(LOSSES),
            extending: metrics::Extending::default(),
        }
    }

    /// Takes a granted lease into its care.
    pub(crate) fn hold(
        &mut self,
        id: LeaseId,
        spec: &Arc<Spec>,
        (started, deadline): (Instant, Instant),
        adopted: bool,
        now: Instant,
    ) -> Arc<Cell> {
        let every = spec.terms.extend_every;
        let mut lease = Lease::granted(started, deadline, every, spec.terms.max_hold);
        if let Some(every) = every.filter(|_| self.records.len() >= CROWD) {
            // Leases that were taken in one go are not extended in one go: neighbours in their
            // numbers are far apart in this order.
            lease.hasten(part(every / 2, id.reverse_bits()));
        }
        let cell = Cell::new(Arc::clone(spec), self.clock.clone(), lease.deadline());
        let cell = Arc::new(cell);
        let record = Record {
            lease,
            cell: Arc::clone(&cell),
            granted: started,
            since: now,
            turn: 0,
            adopted,
            armed: Instant::FAR,
            behind: Instant::FAR,
        };
        self.records.insert(id, record);
        self.holding.held(self.records.len());
        *self.keys.entry(Arc::clone(&spec.key)).or_default() += 1;
        self.arm(id, started);
        cell
    }

    /// Whether a guard of this client holds the lock at `key`.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.keys.contains_key(key)
    }

    /// Takes a lease out of the keeper's care.
    fn remove(&mut self, id: LeaseId, now: Instant) -> Option<Record> {
        let record = self.records.remove(&id)?;
        self.holding.ended(now.since(record.since));
        self.holding.held(self.records.len());
        let key = &record.cell.spec().key;
        if let Some(count) = self.keys.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.keys.remove(key);
            }
        }
        Some(record)
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Does what is due. The leases that were lost are returned.
    pub(crate) fn turn(&mut self, now: Instant, store: &mut dyn LeaseStore) -> Vec<Freed> {
        let mut freed = Vec::new();
        while let Some(id) = self.timers.due(now) {
            let due = self
                .records
                .get(&id)
                .is_some_and(|record| record.armed <= now || record.behind <= now);
            if due {
                freed.extend(self.step(id, now, store));
            }
        }
        let records = &self.records;
        self.timers.tidy(records.len(), |moment, id| {
            records
                .get(id)
                .is_some_and(|record| record.is_armed_at(moment))
        });
        freed
    }

    /// Looks at one lease: the deadline first, then what else is due (P5).
    fn step(&mut self, id: LeaseId, now: Instant, store: &mut dyn LeaseStore) -> Option<Freed> {
        let record = self.records.get_mut(&id)?;
        match record.lease.step(now) {
            Step::Lost(Cause::Expired) => return self.lose(id, now, Loss::Expired, store),
            Step::Lost(Cause::MaxHold) => return self.lose(id, now, Loss::MaxHold, store),
            Step::Extend => {
                let timing = record.cell.spec().terms.timing;
                self.extending.began(now.since(record.lease.due()));
                record.lease.begin();
                let span = automatic(&record.cell.spec().resource);
                store.extend(now, id, &timing, record.lease.deadline(), span);
            }
            Step::Sleep(_) => {}
        }
        self.arm(id, now);
        None
    }

    fn arm(&mut self, id: LeaseId, now: Instant) {
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        let until = match record.lease.step(now) {
            Step::Sleep(until) => until,
            // So short a hold is over as it begins: the next turn sees to it.
            Step::Extend | Step::Lost(_) => now,
        };
        if record.arm(until, now) {
            self.timers.set(until, id);
        }
    }

    /// An extension is decided. `chance` delays the next try of one that came to nothing.
    pub(crate) fn extended(
        &mut self,
        id: LeaseId,
        started: Instant,
        outcome: Outcome,
        now: Instant,
        chance: u64,
        store: &mut dyn LeaseStore,
    ) -> Option<Freed> {
        let record = self.records.get_mut(&id)?;
        let answer = match outcome {
            Outcome::Deleted | Outcome::Taken => {
                self.extending.decided(Extended::Lost);
                let deleted = outcome == Outcome::Deleted;
                let loss = if deleted { Loss::Deleted } else { Loss::Taken };
                return self.lose(id, now, loss, store);
            }
            Outcome::Renewed { deadline } => {
                let left = record.lease.deadline().since(now);
                let renewed = record.lease.renewed(
                    now,
                    started,
                    deadline,
                    record.cell.spec().terms.extend_every,
                );
                if !(renewed && record.cell.extend(record.lease.deadline())) {
                    return self.lose(id, now, Loss::Expired, store);
                }
                self.extending.renewed(left);
                Ok(())
            }
            Outcome::Unknown | Outcome::Held => {
                let pause = retry_pause(&record.cell.spec().terms.timing, chance);
                debug!(resource = %Printable(&record.cell.spec().resource), "extension without a quorum");
                record.lease.unknown(now, pause);
                self.extending.decided(Extended::Unconfirmed);
                Err(ExtendError::Unconfirmed)
            }
        };
        self.answer_by_hand(id, answer);
        self.next_by_hand(id, now, store);
        self.step(id, now, store)
    }

    /// An extension that was given up has its quorum after all.
    pub(crate) fn prolonged(
        &mut self,
        id: LeaseId,
        deadline: Instant,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Freed> {
        let record = self.records.get_mut(&id)?;
        record.lease.prolonged(now, deadline);
        if !record.cell.extend(record.lease.deadline()) {
            return self.lose(id, now, Loss::Expired, store);
        }
        self.step(id, now, store)
    }

    /// Every lease is over.
    pub(crate) fn lose_all(
        &mut self,
        now: Instant,
        loss: Loss,
        store: &mut dyn LeaseStore,
    ) -> Vec<Freed> {
        let mut ids: Vec<LeaseId> = self.records.keys().copied().collect();
        ids.sort_unstable();
        let lose = |id| self.lose(id, now, loss, store);
        ids.into_iter().filter_map(lose).collect()
    }

    /// The lease is over before its holder let go: the holder hears of it, the keys are released
    /// behind whatever was sent for them.
    fn lose(
        &mut self,
        id: LeaseId,
        now: Instant,
        loss: Loss,
        store: &mut dyn LeaseStore,
    ) -> Option<Freed> {
        let record = self.remove(id, now)?;
        self.holding.lost(loss);
        warn!(resource = %Printable(&record.cell.spec().resource), %loss, "lock lost");
        record.cell.end(loss);
        let loss = record.cell.loss().unwrap_or(loss);
        self.refuse(id, loss);
        store.release(now, id, &record.cell.spec().terms.timing);
        Some(Freed(Arc::clone(&record.cell.spec().key)))
    }
}

/// How a lease can be over before its holder lets go.
const LOSSES: [Loss; 5] = [
    Loss::Expired,
    Loss::Deleted,
    Loss::Taken,
    Loss::Frozen,
    Loss::MaxHold,
];

/// With so many leases, extensions are spread over the time that they have.
const CROWD: usize = 64;

/// The delay before a failed extension is tried again: a fraction of the node timeout, so that
/// several tries fit into what is left, and never all clients at once.
fn retry_pause(timing: &Timing, chance: u64) -> Duration {
    let whole = timing.node_timeout() / 2;
    whole / 2 + part(whole / 2, chance)
}

#[cfg(test)]
mod tests;
