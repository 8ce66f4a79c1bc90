//! The seam below keeper and queue: a place that grants leases, whatever it is made of.

use std::sync::Arc;
use std::time::Duration;

use tracing::Span;

use crate::clock::Instant;
use crate::error::NodeVote;
use crate::node::OwnerToken;
use crate::quorum::{Failed, FencingToken, Hint, Outcome as Extended, Timing};
use crate::status::NodeStatus;

/// Names one round of one acquisition. Chosen by whoever asks.
pub(crate) type AttemptId = u64;

/// What proves that a lease is ours, to whoever adopts it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    pub(crate) owner: OwnerToken,
    /// No secret, but the lease keeps it.
    pub(crate) fence: FencingToken,
}

/// Names a lease that was granted.
pub(crate) type LeaseId = u64;

/// A place that grants leases. The coordinator of Redlock is the first of its kind.
pub(crate) trait LeaseStore {
    /// Begins one round for the lock at `key`.
    fn acquire(&mut self, now: Instant, attempt: AttemptId, key: &Arc<[u8]>, timing: &Timing);
    /// Begins one round that takes over a lease which somebody else has let go of without a
    /// release, and which `secret` proves.
    fn adopt(
        &mut self,
        now: Instant,
        attempt: AttemptId,
        key: &Arc<[u8]>,
        secret: Secret,
        timing: &Timing,
    );
    /// Nobody waits for the round any more: what it has set is taken back.
    fn abandon(&mut self, now: Instant, attempt: AttemptId);
    /// Begins one extension of a lease that is valid until `present`; how it goes is recorded in
    /// `span`.
    fn extend(
        &mut self,
        now: Instant,
        lease: LeaseId,
        timing: &Timing,
        present: Instant,
        span: Span,
    );
    /// Gives the lease up everywhere. Nothing is sent for it afterwards.
    fn release(&mut self, now: Instant, lease: LeaseId, timing: &Timing);
    /// What proves the lease, where it is held.
    fn secret(&self, lease: LeaseId) -> Option<Secret>;
    /// Lets go of the lease without a release: whoever has the secret may adopt it.
    fn forget(&mut self, lease: LeaseId) -> Option<Secret>;
    /// Somebody waits for the lock at `key`: what is heard of it comes as a hint. What is asked of
    /// it from now on is answered by those who tell already.
    fn listen(&mut self, key: &Arc<[u8]>);
    /// Ends [`LeaseStore::listen`].
    fn idle(&mut self, now: Instant, key: &Arc<[u8]>);
    /// How many others are known to wait for the lock at `key`.
    fn rivals(&self, key: &[u8]) -> u32;
    /// How long a round takes as a rule.
    fn trip(&self) -> Duration;
    /// The next thing that has come to an end.
    fn outcome(&mut self) -> Option<Outcome>;
    /// Whether an outcome, or an answer that may become one, is there to be taken.
    fn has_news(&self) -> bool;
    /// When [`LeaseStore::turn`] must be called at the latest.
    fn next_timeout(&self) -> Option<Instant>;
    /// Takes in what has arrived and what is due.
    fn turn(&mut self, now: Instant);
    /// Sends what was asked for since the last time, in one piece for each node.
    fn flush(&mut self);
    /// What is left of the releases: how many answers are neither there nor owed by nodes that
    /// are down.
    fn unreleased(&self) -> usize;
    /// How many requests to the nodes, each counted once for all of them, are under way.
    fn pending(&self) -> usize;
    /// What is known of the nodes, without asking them.
    fn nodes(&mut self, now: Instant) -> Vec<NodeStatus>;
}

/// What has come to an end.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The round has a quorum: the lease is held until `deadline`.
    Acquired {
        attempt: AttemptId,
        lease: LeaseId,
        /// The first of those that the grant reserved, one for each holder that it may have.
        token: FencingToken,
        timing: Timing,
        /// How many nodes had granted when it was decided.
        votes: usize,
        started: Instant,
        deadline: Instant,
    },
    /// The round has failed, and is being rolled back.
    Failed {
        attempt: AttemptId,
        failed: Failed,
        votes: Vec<NodeVote>,
    },
    /// What is heard of a lock that somebody waits for.
    Hint { key: Arc<[u8]>, hint: Hint },
    /// The extension that began at `started` is decided. Never [`Extended::Held`].
    Extended {
        lease: LeaseId,
        started: Instant,
        outcome: Extended,
    },
    /// An extension that was reported as unknown has its quorum after all, inside the validity.
    Prolonged { lease: LeaseId, deadline: Instant },
    /// The nodes' clocks show that we stood still: whatever was held is lost (P5).
    Frozen,
    /// The release is answered by a quorum, or cannot be any more. One whose time was spent
    /// without a quorum is told again if a quorum answers after all.
    Released {
        lease: LeaseId,
        confirmed: usize,
        /// On how many nodes nothing of ours was there.
        absent: usize,
    },
}
