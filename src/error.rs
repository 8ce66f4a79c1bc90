//! What can go wrong, one small enum for each operation. Contended, unavailable, rejected and too
//! slow stay apart, and every node's vote is kept.

use std::fmt;
use std::sync::Arc;

use crate::config::ConfigError;

mod attempt;

pub use attempt::{Attempt, NodeVote, Vote};
pub(crate) use attempt::{Headline, Printable};

/// Why a lock was not acquired.
///
/// Whatever the variant: no lease is held, and every node that may have set the key is being
/// sent the release.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody else holds the lock, or contends for it. Enough nodes answered to say so. Try
    /// again later, or do something else meanwhile.
    #[error("{0}")]
    Contended(Box<Attempt>),
    /// No quorum of nodes answered: this says nothing about whether the lock is held. Try again,
    /// and look after the nodes.
    #[error("{0}")]
    Unavailable(Box<Attempt>),
    /// So many nodes refuse to serve us (credentials, permissions, replicas, foreign data under
    /// the key) that trying again is of no use before somebody changes a setting.
    #[error("{0}")]
    Rejected(Box<Attempt>),
    /// A quorum granted, but so late that less than `min_validity` was left. The TTL is too short
    /// for these nodes and this network, or the process stood still.
    #[error("{0}")]
    TooSlow(Box<Attempt>),
    /// A setting of this lock cannot be used. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// The operating system gave no thread to run the client on.
    #[error("the client's thread could not be started: {0}")]
    Thread(Arc<std::io::Error>),
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

impl AcquireError {
    /// The last round, where there was one.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// let lock = quorumlock::Client::in_memory(5).lock("");
    /// let error = lock.acquire().await.unwrap_err();
    /// assert!(error.attempt().is_none(), "a lock without a name: nothing was sent");
    /// # });
    /// # }
    /// ```
    #[must_use]
    pub fn attempt(&self) -> Option<&Attempt> {
        match self {
            AcquireError::Contended(attempt)
            | AcquireError::Unavailable(attempt)
            | AcquireError::Rejected(attempt)
            | AcquireError::TooSlow(attempt) => Some(attempt),
            AcquireError::Invalid(_) | AcquireError::Thread(_) | AcquireError::Closed => None,
        }
    }

    /// Whether another try may fare better without anybody changing a setting.
    ///
    /// ```
    /// assert!(!quorumlock::AcquireError::Closed.is_retryable());
    /// ```
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            AcquireError::Contended(_) | AcquireError::Unavailable(_) | AcquireError::TooSlow(_)
        )
    }
}

/// Why a lease could not be taken over. The ticket can be used again unless it is
/// [`AttachError::Lost`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The lease is over: its key ran out, was released, or belongs to somebody else.
    #[error("{0}")]
    Lost(Box<Attempt>),
    /// No quorum of nodes answered.
    #[error("{0}")]
    Unavailable(Box<Attempt>),
    /// Anything else that keeps a lock from being acquired.
    #[error(transparent)]
    Other(AcquireError),
}

impl From<AcquireError> for AttachError {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Contended(mut attempt) => {
                attempt.headline = Headline::Over;
                AttachError::Lost(attempt)
            }
            AcquireError::Unavailable(attempt) => AttachError::Unavailable(attempt),
            other => AttachError::Other(other),
        }
    }
}

/// Why a lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The validity ran out: no quorum extended it in time.
    Expired,
    /// Somebody deleted the key on so many nodes that no quorum holds it.
    Deleted,
    /// Another owner holds the key on so many nodes that no quorum can be ours.
    Taken,
    /// The clocks of a quorum of nodes show that this process stood still, for longer than its own
    /// clock can tell: a virtual machine that was paused. A quorum whose clocks were set forward
    /// at one moment looks the same, and ends leases early, too.
    Frozen,
    /// The longest time to hold it, `max_hold`, is over.
    MaxHold,
    /// The holder released it.
    Released,
    /// The holder detached it: whoever has the ticket may go on.
    Detached,
    /// The client was closed.
    Closed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Expired => "its validity ran out before a quorum extended it",
            Loss::Deleted => "its key was deleted on too many nodes",
            Loss::Taken => "another owner holds its key on too many nodes",
            Loss::Frozen => "this machine stood still",
            Loss::MaxHold => "it was held for max_hold",
            Loss::Released => "it was released",
            Loss::Detached => "it was detached",
            Loss::Closed => "the client was closed",
        })
    }
}

/// How a release went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Released {
    /// The lock was held to the end and is free now.
    InTime,
    /// The lease was over before the release, for this reason. Whatever the work did after that,
    /// it may not have been alone.
    AlreadyLost(Loss),
}

impl Released {
    /// Whether the lock was held to the end.
    ///
    /// ```
    /// use quorumlock::{Loss, Released};
    ///
    /// assert!(Released::InTime.in_time());
    /// assert!(!Released::AlreadyLost(Loss::Expired).in_time());
    /// ```
    #[must_use]
    pub fn in_time(self) -> bool {
        self == Released::InTime
    }
}

/// Why a release could not be confirmed. The client goes on trying in the background; at the
/// latest the keys run out with their TTL.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// No quorum of nodes confirmed the release within `node_timeout`.
    #[error(
        "the release is not confirmed: {confirmed} of {nodes} nodes answered (quorum {needed})"
    )]
    Unconfirmed {
        /// How many nodes answered.
        confirmed: usize,
        /// How many are needed.
        needed: usize,
        /// How many are configured.
        nodes: usize,
    },
    /// The client was closed, which has released the lock or tried to.
    #[error("the client is closed")]
    Closed,
}

/// Why an extension by hand did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendError {
    /// No quorum confirmed it. The lock is still held, until its present deadline.
    #[error("the extension is not confirmed by a quorum; the lock is held until its old deadline")]
    Unconfirmed,
    /// The lock is not held any more.
    #[error("the lock is lost: {0}")]
    Lost(Loss),
    /// The new TTL cannot be used. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
}

/// Why work under a lock has no result of its own, or one that cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<T, E> {
    /// The lock was not acquired, and the work never began.
    #[error(transparent)]
    Acquire(AcquireError),
    /// The work's own error. It held the lock to its end.
    #[error("{0}")]
    Work(E),
    /// The lock was lost while the work ran.
    #[error("the lock was lost while the work ran: {loss}")]
    Lost {
        /// Why.
        loss: Loss,
        /// What the work returned, if it ended before it was stopped.
        output: Option<Result<T, E>>,
    },
}
