//! A held lease: when to extend, what an extension amounts to, when it is lost (P7, P8).
//!
//! ```text
//!            step(now) ─► Extend ─► begin ─► vote(node, …)* ─► outcome(now)
//!               │  └────► Sleep(until)                            ├─ Open
//!               └───────► Lost(cause)  ◄──────────────────────────┤─ Renewed { deadline }
//!                                                                 ├─ Unknown   (tried again)
//!                                                                 └─ Lost(cause)
//! ```
//!
//! The deadline only moves while it has not passed, and only to a later moment. An extension that
//! fails changes nothing: the old deadline stays in force, and another one is tried until then.

use std::time::Duration;

use super::nodes::{NodeSet, Quorum};
use super::timing::Timing;
use crate::clock::Instant;

/// Why a lease is over before its holder has let go of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The validity ran out: no quorum extended it in time.
    Expired,
    /// Somebody deleted the key on so many nodes that no quorum holds it.
    Deleted,
    /// Another owner's token is on so many nodes that no quorum can be ours.
    Taken,
    /// The longest time that a lease may be held, `max_hold`, is over.
    MaxHold,
}

/// What one node says to an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// The key is ours and has the new expiry; or it was absent and is set again.
    Renewed,
    /// Another owner's token is there.
    Taken,
    /// The node had acknowledged our token in its present life, and has no key now.
    Deleted,
    /// No answer of use.
    Failed,
}

/// What to do with the lease now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask all nodes for an extension.
    Extend,
    /// Nothing before this moment.
    Sleep(Instant),
    /// Tell the holder, release everywhere.
    Lost(Cause),
}

/// What an extension amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not decided; the lease is held until its present deadline.
    Held,
    /// A quorum extended it inside the present validity.
    Renewed { deadline: Instant },
    /// No quorum answered. The present deadline stands.
    Unknown,
    /// It cannot be held any longer.
    Lost(Cause),
}

/// The settings of one lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) timing: Timing,
    /// From one extension to the next; `None` where the holder extends by hand.
    pub(crate) extend_every: Option<Duration>,
    /// The longest time that it may be held in all.
    pub(crate) max_hold: Option<Duration>,
}

/// An extension on its way.
#[derive(Clone, Debug)]
struct Extension {
    started: Instant,
    timing: Timing,
    renewed: NodeSet,
    taken: NodeSet,
    deleted: NodeSet,
    failed: NodeSet,
}

/// A lease that is held.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    quorum: Quorum,
    terms: Terms,
    deadline: Instant,
    hold_until: Instant,
    next: Instant,
    extension: Option<Extension>,
}

impl Lease {
    /// A lease granted by a round that began at `started`, good until `deadline`.
    pub(crate) fn granted(
        quorum: Quorum,
        terms: Terms,
        started: Instant,
        deadline: Instant,
    ) -> Self {
        let hold_until = terms
            .max_hold
            .map_or(Instant::FAR, |most| started.after(most));
        let next = terms
            .extend_every
            .map_or(Instant::FAR, |every| started.after(every));
        Lease {
            quorum,
            terms,
            deadline: deadline.min(hold_until),
            hold_until,
            next,
            extension: None,
        }
    }

    /// The end of validity.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The settings that the lease was granted with.
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// What is due at `now`, once [`Lease::outcome`] has been asked for it. The comparison with the deadline comes first, always (P5): a task
    /// that wakes after it must not send an extension.
    pub(crate) fn step(&self, now: Instant) -> Step {
        if now >= self.deadline {
            return Step::Lost(self.over());
        }
        if let Some(extension) = &self.extension {
            return Step::Sleep(self.deadline.min(self.expires(extension)));
        }
        if now >= self.next {
            return Step::Extend;
        }
        Step::Sleep(self.deadline.min(self.next))
    }

    /// The extension that is on its way, by the moment at which it began.
    pub(crate) fn extending(&self) -> Option<Instant> {
        self.extension.as_ref().map(|extension| extension.started)
    }

    /// An extension begins at `now`, read before its first request is queued. `timing` is the
    /// lease's own, or another one for `extend_to`.
    pub(crate) fn begin(&mut self, now: Instant, timing: Timing) {
        self.extension = Some(Extension {
            started: now,
            timing,
            renewed: NodeSet::EMPTY,
            taken: NodeSet::EMPTY,
            deleted: NodeSet::EMPTY,
            failed: NodeSet::EMPTY,
        });
    }

    /// `node` has answered the extension. Its first answer stands.
    pub(crate) fn vote(&mut self, node: usize, vote: Vote) {
        let Some(extension) = &mut self.extension else {
            return;
        };
        if extension.answered().contains(node) || node >= self.quorum.nodes() {
            return;
        }
        match vote {
            Vote::Renewed => extension.renewed.insert(node),
            Vote::Taken => extension.taken.insert(node),
            Vote::Deleted => extension.deleted.insert(node),
            Vote::Failed => extension.failed.insert(node),
        }
    }

    /// What the answers amount to at `now`. A decided extension is over, and the deadline is
    /// moved by it. `pause` is the delay before the next try of one that came to nothing.
    pub(crate) fn outcome(&mut self, now: Instant, pause: Duration) -> Outcome {
        if now >= self.deadline {
            self.extension = None;
            return Outcome::Lost(self.over());
        }
        let Some(extension) = &self.extension else {
            return Outcome::Held;
        };
        let outcome = self.judge(extension, now);
        match outcome {
            Outcome::Held => return outcome,
            Outcome::Renewed { deadline } => {
                self.deadline = deadline;
                if let Some(every) = self.terms.extend_every {
                    self.next = extension.started.after(every);
                }
            }
            Outcome::Unknown if self.terms.extend_every.is_some() => self.next = now.after(pause),
            Outcome::Unknown | Outcome::Lost(_) => {}
        }
        self.extension = None;
        outcome
    }

    /// The extension's votes, weighed inside the present validity.
    fn judge(&self, extension: &Extension, now: Instant) -> Outcome {
        let spare = self.quorum.spare();
        if self.quorum.reached_by(extension.renewed) {
            let deadline = extension.timing.deadline(extension.started);
            let deadline = deadline.max(self.deadline).min(self.hold_until);
            return Outcome::Renewed { deadline };
        }
        if extension.deleted.len() > spare {
            return Outcome::Lost(Cause::Deleted);
        }
        if extension.taken.len() > spare {
            return Outcome::Lost(Cause::Taken);
        }
        let waiting = self.quorum.all().minus(extension.answered());
        let reachable = self.quorum.reached_by(extension.renewed.or(waiting));
        // Deletions are still counted when a quorum is out of reach: three of them are a loss,
        // and a loss must not be taken for an outage.
        let telling = extension.deleted.or(extension.taken).or(waiting).len() > spare;
        let open = !waiting.is_empty() && now < self.expires(extension);
        if open && (reachable || telling) {
            Outcome::Held
        } else {
            Outcome::Unknown
        }
    }

    fn expires(&self, extension: &Extension) -> Instant {
        extension.started.after(extension.timing.node_timeout())
    }

    /// Which of the two ends of a lease its deadline was.
    fn over(&self) -> Cause {
        if self.deadline >= self.hold_until {
            Cause::MaxHold
        } else {
            Cause::Expired
        }
    }
}

impl Extension {
    fn answered(&self) -> NodeSet {
        let present = self.renewed.or(self.taken);
        present.or(self.deleted).or(self.failed)
    }
}

#[cfg(test)]
mod tests;
