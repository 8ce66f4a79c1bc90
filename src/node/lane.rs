//! The queue of one node: what waits, what is on its way, what is owed (P2).
//!
//! ```text
//!   admit ─► waiting ─► next_batch ─► in flight ─► answered
//!              ▲  │                      │
//!     repaired │  └────── broken ◄───────┘      grants, extensions: failed
//!              └── owed ◄────┘                  releases: owed, until the key must have run out
//! ```
//!
//! It knows no socket and no clock. **Bound:** at most `limit` grants and extensions, and one
//! release for each owner token whose grant was taken within its last TTL. So admitting a grant
//! reserves the place of its release: a release is never refused.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Ask, AskId, Fault, FaultKind, Fencing, NOBODY, Order};
use crate::clock::Instant;
use crate::hash::{FastMap, FastSet};

/// What an entry wants of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Ask(Ask),
    /// Whose key is it that refused a grant, and for how long?
    Inspect,
}

/// One request in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: AskId,
    pub(crate) order: Arc<Order>,
    pub(crate) work: Work,
    /// Send the script's text: the server does not know its digest.
    pub(crate) spelled_out: bool,
}

/// What became of an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It waits to be sent.
    Queued,
    /// The grant that it would take back was never sent, and never will be; nor what else
    /// waited for this token. These requests have no other answer.
    Withdrawn(Vec<AskId>),
    /// There is no connection; it goes first over the next one.
    Owed,
}

/// The connection, as far as the queue cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// A connection is being made, and there is no reason yet to think that it will not be:
    /// requests wait for it, each inside its own budget.
    Opening,
    Open,
    /// There is none, and requests need not wait for one.
    Down(Fault),
}

/// Until when a release is of use, and what it tells the fencing counter.
type Terms = (Instant, Option<Fencing>);

#[derive(Debug)]
struct Debt {
    order: Arc<Order>,
    terms: Terms,
}

fn release((until, fence): Terms) -> Work {
    Work::Ask(Ask::Release { until, fence })
}

/// The queue of one node.
#[derive(Debug)]
pub(crate) struct Lane {
    link: Link,
    /// A request that is on its way for longer than this makes the node one that hangs.
    patience: Duration,
    /// Since when the node hangs whose connection was given up for it.
    stuck: Option<Instant>,
    limit: usize,
    waiting: VecDeque<Entry>,
    in_flight: VecDeque<(Entry, Instant)>,
    owed: VecDeque<Debt>,
    /// The rounds whose grants are in `waiting`: they can still be taken back unsent.
    unsent: FastSet<AskId>,
    /// The rounds with releases in `waiting` or in flight: nothing is sent again for these.
    releasing: FastMap<AskId, u32>,
}

impl Lane {
    /// The most commands in one pipeline.
    pub(crate) const BATCH: usize = 512;

    /// The most requests on their way at once. The wait for an answer says whether the node
    /// hangs, so it must not be the length of a queue inside the server.
    pub(crate) const IN_FLIGHT: usize = 2048;

    pub(crate) fn new(patience: Duration, limit: usize) -> Self {
        Lane {
            link: Link::Opening,
            patience,
            stuck: None,
            limit,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            owed: VecDeque::new(),
            unsent: FastSet::default(),
            releasing: FastMap::default(),
        }
    }

    /// Takes a request in.
    ///
    /// # Errors
    /// The node is down, hangs or has no place, and the request is no release.
    pub(crate) fn admit(
        &mut self,
        id: AskId,
        order: &Arc<Order>,
        ask: Ask,
        now: Instant,
    ) -> Result<Admission, Fault> {
        let order = Arc::clone(order);
        if let Ask::Release { until, fence } = ask {
            return Ok(self.admit_release(id, order, (until, fence)));
        }
        if let Link::Down(fault) = &self.link {
            return Err(fault.clone());
        }
        if let Some(hung) = self.hangs(now) {
            let silence = self.patience.saturating_add(hung);
            let detail = format!("no answer for {} ms", silence.as_millis());
            return Err(Fault::new(FaultKind::Timeout, detail));
        }
        if self.waiting.len() + self.in_flight.len() >= self.limit {
            return Err(FaultKind::Overloaded.into());
        }
        if matches!(ask, Ask::Grant { .. }) {
            self.unsent.insert(order.round);
        }
        self.push(id, order, Work::Ask(ask));
        Ok(Admission::Queued)
    }

    fn admit_release(&mut self, id: AskId, order: Arc<Order>, terms: Terms) -> Admission {
        if self.unsent.remove(&order.round) {
            let mut withdrawn = Vec::new();
            self.waiting.retain(|entry| {
                let other = entry.order.round != order.round;
                if !other {
                    withdrawn.push(entry.id);
                }
                other
            });
            return Admission::Withdrawn(withdrawn);
        }
        if matches!(self.link, Link::Down(_)) {
            self.owed.push_back(Debt { order, terms });
            return Admission::Owed;
        }
        *self.releasing.entry(order.round).or_default() += 1;
        self.push(id, order, release(terms));
        Admission::Queued
    }

    fn push(&mut self, id: AskId, order: Arc<Order>, work: Work) {
        self.waiting.push_back(Entry {
            id,
            order,
            work,
            spelled_out: false,
        });
    }

    /// Hands what goes out next to `send`, oldest first; it is in flight from now on. Says how much
    /// that was.
    pub(crate) fn send_batch(&mut self, now: Instant, mut send: impl FnMut(&Entry)) -> usize {
        let room = Self::IN_FLIGHT.saturating_sub(self.in_flight.len());
        let count = self.waiting.len().min(Self::BATCH).min(room);
        for entry in self.waiting.drain(..count) {
            if matches!(entry.work, Work::Ask(Ask::Grant { .. })) {
                self.unsent.remove(&entry.order.round);
            }
            send(&entry);
            self.in_flight.push_back((entry, now));
        }
        count
    }

    /// The same, all at once.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn next_batch(&mut self, now: Instant) -> Vec<Entry> {
        let mut batch = Vec::new();
        self.send_batch(now, |entry| batch.push(entry.clone()));
        batch
    }

    /// The oldest request in flight is answered.
    pub(crate) fn answered(&mut self) -> Option<Entry> {
        let (entry, _) = self.in_flight.pop_front()?;
        if matches!(entry.work, Work::Ask(Ask::Release { .. })) {
            self.release_ended(entry.order.round);
        }
        Some(entry)
    }

    /// An answered entry has to be sent once more, as `work`, before all that waits.
    ///
    /// `false` when a release for its token is queued: then it must not be (P2).
    pub(crate) fn again(&mut self, entry: Entry, work: Work, spelled_out: bool) -> bool {
        let release = matches!(work, Work::Ask(Ask::Release { .. }));
        if !release && self.releasing.contains_key(&entry.order.round) {
            return false;
        }
        if release {
            *self.releasing.entry(entry.order.round).or_default() += 1;
        }
        self.waiting.push_front(Entry {
            work,
            spelled_out,
            ..entry
        });
        true
    }

    fn release_ended(&mut self, round: AskId) {
        if let Some(count) = self.releasing.get_mut(&round) {
            *count -= 1;
            if *count == 0 {
                self.releasing.remove(&round);
            }
        }
    }

    /// The connection is gone, or could not be made. All that waited for an answer is returned,
    /// to be failed; the releases among it are owed from now on.
    pub(crate) fn broken(&mut self, link: Link) -> Vec<Entry> {
        self.link = link;
        self.stuck = None;
        self.unsent.clear();
        self.releasing.clear();
        let sent = self.in_flight.drain(..).map(|(entry, _)| entry);
        let ended: Vec<Entry> = sent.chain(self.waiting.drain(..)).collect();
        for entry in &ended {
            if let Work::Ask(Ask::Release { until, fence }) = entry.work {
                let order = Arc::clone(&entry.order);
                let terms = (until, fence);
                self.owed.push_back(Debt { order, terms });
            }
        }
        ended
    }

    /// The connection was given up since the node hangs: until the next one is there it still
    /// does, and costs nobody a wait.
    pub(crate) fn still_hangs(&mut self, since: Instant) {
        self.stuck = Some(since);
    }

    /// A connection is there. What is owed goes first, unless its key must have run out by now.
    pub(crate) fn repaired(&mut self, now: Instant) {
        self.link = Link::Open;
        self.stuck = None;
        let owed: Vec<Debt> = self.owed.drain(..).collect();
        for Debt { order, terms } in owed.into_iter().rev() {
            if terms.0 > now {
                *self.releasing.entry(order.round).or_default() += 1;
                self.waiting.push_front(Entry {
                    id: NOBODY,
                    order,
                    work: release(terms),
                    spelled_out: false,
                });
            }
        }
    }

    /// Drops what is owed for keys that must have run out: a node that stays away for good must
    /// not be remembered for good.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.owed.retain(|debt| debt.terms.0 > now);
    }

    /// For how long the oldest request in flight has had no answer.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        self.in_flight.front().map(|(_, sent)| now.since(*sent))
    }

    /// For how long the node has been one that hangs.
    pub(crate) fn hangs(&self, now: Instant) -> Option<Duration> {
        match self.stuck {
            Some(since) => Some(now.since(since)),
            None => self.silence(now)?.checked_sub(self.patience),
        }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Whether something can be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() && self.in_flight.len() < Self::IN_FLIGHT
    }

    /// All that is still to be done.
    #[cfg(test)]
    pub(crate) fn backlog(&self) -> usize {
        self.waiting.len() + self.in_flight.len() + self.owed.len()
    }
}

#[cfg(test)]
mod tests;
