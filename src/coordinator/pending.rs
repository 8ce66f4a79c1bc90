//! What the coordinator remembers of requests and of leases.

use std::sync::Arc;
use std::time::Duration;

use tracing::{Span, field};

use super::{AttemptId, LeaseId, Secret};
use crate::clock::Instant;
use crate::error::Vote as SeenVote;
use crate::node::{AskId, Order};
use crate::quorum::{
    Contest, Extension, Fence, FencingToken, NodeSet, Outcome, Presence, Round, Spread, Timing,
};

/// What an answer belongs to.
pub(super) enum Pending {
    Round(Box<Attempt>),
    /// A round that has its quorum; the rest of its answers still tell where the key is.
    Granted {
        lease: LeaseId,
        waiting: NodeSet,
        grants: NodeSet,
        started: Instant,
        deadline: Instant,
    },
    Extension(Box<Extending>),
    Release(Box<Releasing>),
    Raise(Raising),
}

pub(super) struct Attempt {
    pub(super) id: AttemptId,
    pub(super) order: Arc<Order>,
    pub(super) timing: Timing,
    pub(super) round: Round,
    pub(super) seen: Vec<Option<SeenVote>>,
    /// The keys were there before: a failed round takes nothing back.
    pub(super) adopts: bool,
    /// What the refusals say.
    pub(super) contest: Contest,
    /// How often the nodes of others were asked again.
    pub(super) again: u32,
    /// Finds the token, where the round needs one.
    pub(super) fence: Option<Fence>,
    /// The token of an adopted lease.
    pub(super) token: FencingToken,
}

/// Counters that are raised to `to` for the round `of`.
pub(super) struct Raising {
    pub(super) of: AskId,
    pub(super) to: u64,
    pub(super) waiting: NodeSet,
}

pub(super) struct Extending {
    pub(super) lease: LeaseId,
    pub(super) extension: Extension,
    /// Until when a key stands that it has extended.
    pub(super) until: Instant,
    pub(super) present: Instant,
    /// Until it is decided.
    pub(super) span: Span,
    /// Decided: its answers only tell where the key is.
    pub(super) decided: bool,
    /// Reported as unknown: a quorum that answers inside the validity all the same is told, too.
    pub(super) unknown: bool,
    /// The nodes whose clocks are ahead of what ours allows.
    pub(super) ahead: NodeSet,
    /// The nodes that were not asked to set an absent key again: its absence is a deletion.
    pub(super) known: NodeSet,
    /// What the counters were told.
    pub(super) hint: u64,
}

pub(super) struct Releasing {
    pub(super) key: Arc<[u8]>,
    pub(super) lease: LeaseId,
    pub(super) confirmed: NodeSet,
    pub(super) absent: NodeSet,
    pub(super) failed: NodeSet,
    pub(super) reported: bool,
    /// Reported without a quorum.
    pub(super) unconfirmed: bool,
}

/// A lease that stands.
pub(super) struct Held {
    /// Put behind a pointer only while requests are under way.
    pub(super) order: Order,
    /// The nodes that may have the key: a release must reach them.
    pub(super) touched: NodeSet,
    /// Where the key is known to be.
    pub(super) presence: Presence,
    /// The last of those that the grant reserved: what the nodes store.
    pub(super) token: FencingToken,
    /// The longest that an extension may have made a key last, drift included: where it was by
    /// hand, that is more than the TTL of the lock.
    pub(super) span: Duration,
    /// What the nodes' counters should be.
    pub(super) spread: Spread,
}

impl Held {
    pub(super) fn secret(&self) -> Secret {
        Secret {
            owner: self.order.token,
            fence: self.token,
        }
    }
}

impl Extending {
    /// It is decided: its span says how, and ends.
    pub(super) fn trace(&mut self, outcome: Outcome, now: Instant) {
        let span = std::mem::replace(&mut self.span, Span::none());
        if span.is_disabled() {
            return;
        }
        span.record("votes", self.extension.renewed().len());
        let took = now.since(self.extension.started());
        span.record("wait", field::debug(took));
        let (word, deadline) = match outcome {
            Outcome::Renewed { deadline } => ("renewed", deadline),
            Outcome::Deleted => ("deleted", now),
            Outcome::Taken => ("taken", now),
            Outcome::Held | Outcome::Unknown => ("unconfirmed", self.present),
        };
        span.record("outcome", word);
        span.record("validity", field::debug(deadline.since(now)));
    }
}
