//! The parties of a queue: who comes, who waits, who leaves.

use std::sync::Arc;
use std::time::Duration;

use super::Spec;
use crate::clock::Instant;
use crate::coordinator::{AttemptId, Secret};
use crate::error::AcquireError;
use crate::quorum::{Acquisition, Wait};

/// One acquisition that goes on.
pub(super) struct Waiter<R> {
    pub(super) spec: Arc<Spec>,
    pub(super) acquisition: Acquisition,
    pub(super) entered: Instant,
    pub(super) state: State,
    /// How often somebody else was faster since it came.
    pub(super) missed: u32,
    /// Whether it stands in the resource's line: a single try does not.
    pub(super) in_line: bool,
    /// Takes this lease over, instead of asking for a new one.
    pub(super) adopts: Option<Secret>,
    pub(super) reply: R,
}

impl<R> Waiter<R> {
    /// Whether it may wait without asking. One whose rounds are counted makes them.
    pub(super) fn is_parkable(&self) -> bool {
        self.in_line && self.spec.terms.retry.attempts.is_none()
    }
}

/// What it is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Behind somebody of this client.
    Behind,
    /// The round with this number is on.
    Asking(AttemptId),
    /// Until the next round.
    Pausing(Instant),
    /// Until it is heard that the lock is free, or this moment.
    Listening(Instant),
    /// A guard of this client holds the lock: there is nobody to ask before it is free.
    Parked,
}

/// A new acquisition.
pub(crate) struct Entrant<R> {
    pub(crate) spec: Arc<Spec>,
    pub(crate) wait: Wait,
    /// Takes this lease over, instead of asking for a new one.
    pub(crate) adopts: Option<Secret>,
    pub(crate) reply: R,
}

/// A waiter that has got its lock.
pub(crate) struct Served<R> {
    pub(crate) spec: Arc<Spec>,
    /// The lease was somebody else's before.
    pub(crate) adopted: bool,
    /// How many rounds it has made.
    pub(crate) rounds: u32,
    pub(crate) waited: Duration,
    pub(crate) reply: R,
}

/// A waiter that gives up, and why.
pub(crate) struct Unserved<R> {
    pub(crate) reply: R,
    pub(crate) error: AcquireError,
}
