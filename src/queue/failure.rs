//! From a failed round to the error that its caller gets.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{AcquireError, Attempt, Headline, NodeVote};
use crate::quorum::{Failed, Quorum, Shortfall};

/// A failed round, as the queue needs to know it.
pub(crate) struct Failure {
    pub(crate) failed: Failed,
    pub(crate) votes: Vec<NodeVote>,
    pub(crate) quorum: Quorum,
    pub(crate) held_here: bool,
    /// One uniform draw over all of `u64`.
    pub(crate) chance: u64,
}

/// What the acquisition has seen besides.
pub(super) struct Seen<'a> {
    pub(super) resource: &'a Arc<[u8]>,
    pub(super) rounds: u32,
    pub(super) waited: Duration,
}

impl Failure {
    pub(super) fn into_error(self, seen: Seen<'_>) -> AcquireError {
        let (headline, error): (_, fn(Box<Attempt>) -> AcquireError) = match self.failed.why {
            Shortfall::Contended => (Headline::Contended, AcquireError::Contended),
            Shortfall::Unavailable => (Headline::Unavailable, AcquireError::Unavailable),
            Shortfall::Rejected => (Headline::Rejected, AcquireError::Rejected),
            Shortfall::TooSlow => (Headline::TooSlow, AcquireError::TooSlow),
        };
        error(Box::new(Attempt {
            headline,
            resource: Arc::clone(seen.resource),
            votes: self.votes,
            needed: self.quorum.needed(),
            rounds: seen.rounds,
            waited: seen.waited,
            held_here: self.held_here,
        }))
    }
}
