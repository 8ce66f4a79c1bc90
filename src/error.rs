//! What can go wrong, one small enum for each operation. Contended, unavailable, rejected and too
//! slow stay apart, and every node's vote is kept.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::config::ConfigError;
use crate::node::{Fault, FaultKind};

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
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            AcquireError::Contended(_) | AcquireError::Unavailable(_) | AcquireError::TooSlow(_)
        )
    }
}

/// How the last round of an acquisition went.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub(crate) headline: Headline,
    pub(crate) resource: Arc<[u8]>,
    pub(crate) votes: Vec<NodeVote>,
    pub(crate) needed: usize,
    pub(crate) rounds: u32,
    pub(crate) waited: Duration,
    pub(crate) held_here: bool,
}

/// How an error's text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Headline {
    Contended,
    Unavailable,
    Rejected,
    TooSlow,
}

impl Attempt {
    /// What was to be locked.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// Every configured node's vote, in the order of the configuration.
    #[must_use]
    pub fn votes(&self) -> &[NodeVote] {
        &self.votes
    }

    /// How many grants a lock needs.
    #[must_use]
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// How many rounds were made in all.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// For how long the acquisition went on.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Whether a guard of this very client holds the lock: a task that waits for itself.
    #[must_use]
    pub fn is_held_here(&self) -> bool {
        self.held_here
    }

    fn count(&self, wanted: impl Fn(&Vote) -> bool) -> usize {
        self.votes.iter().filter(|vote| wanted(&vote.vote)).count()
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Printable(&self.resource);
        match self.headline {
            Headline::Contended if self.held_here => {
                write!(f, "lock {name} is held by this very client")?;
            }
            Headline::Contended => write!(f, "lock {name} is held or contended")?,
            Headline::Unavailable => write!(f, "no quorum for lock {name}")?,
            Headline::Rejected => write!(f, "the nodes reject lock {name}")?,
            Headline::TooSlow => write!(f, "lock {name} was granted too late to be of use")?,
        }
        if self.votes.is_empty() {
            return f.write_str(": it ran out before the caller was awake");
        }
        let all = self.votes.len();
        let needed = self.needed;
        let granted = self.count(|vote| matches!(vote, Vote::Granted));
        let held = self.count(|vote| matches!(vote, Vote::Held { .. }));
        let failed = self.count(|vote| matches!(vote, Vote::Failed(_)));
        write!(f, ": of {all} nodes (quorum {needed}) {granted} granted, ")?;
        write!(f, "{held} held by another owner, {failed} failed")?;
        let mut before = " (";
        for NodeVote { node, vote } in &self.votes {
            if let Vote::Failed(fault) = vote {
                write!(f, "{before}{node}: {fault}")?;
                before = "; ";
            }
        }
        f.write_str(if failed > 0 { ")" } else { "" })?;
        write!(f, "; {} in {:.1?}", Rounds(self.rounds), self.waited)
    }
}

struct Rounds(u32);

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 round"),
            rounds => write!(f, "{rounds} rounds"),
        }
    }
}

/// One node's part in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVote {
    /// Host and port, or the socket's path: never with a secret.
    pub node: Arc<str>,
    /// What it said.
    pub vote: Vote,
}

/// What one node said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vote {
    /// It set the key for us. If no quorum did, this has been taken back.
    Granted,
    /// Another owner's key is there.
    Held {
        /// For how long yet, by the node's clock, where it said so.
        left: Option<Duration>,
    },
    /// It gave no answer of use.
    Failed(Fault),
    /// The outcome was certain without it.
    NotWaitedFor,
}

impl Vote {
    /// The fault of a node that failed.
    #[must_use]
    pub fn fault(&self) -> Option<FaultKind> {
        match self {
            Vote::Failed(fault) => Some(fault.kind()),
            _ => None,
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
    /// The longest time to hold it, `max_hold`, is over.
    MaxHold,
    /// The holder released it.
    Released,
    /// The client was closed.
    Closed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Expired => "its validity ran out before a quorum extended it",
            Loss::Deleted => "its key was deleted on too many nodes",
            Loss::Taken => "another owner holds its key on too many nodes",
            Loss::MaxHold => "it was held for max_hold",
            Loss::Released => "it was released",
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

/// A resource's name as people read it: text as it is, anything else escaped.
pub(crate) struct Printable<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) if text.len() <= 200 => write!(f, "{text:?}"),
            Ok(text) => {
                let start: String = text.chars().take(60).collect();
                write!(f, "{start:?}… ({} bytes)", text.len())
            }
            Err(_) => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(headline: Headline, votes: Vec<Vote>) -> Attempt {
        let vote = |(index, vote)| NodeVote {
            node: format!("n{}:6379", index + 1).into(),
            vote,
        };
        Attempt {
            headline,
            resource: Arc::from(&b"nightly"[..]),
            votes: votes.into_iter().enumerate().map(vote).collect(),
            needed: 3,
            rounds: 4,
            waited: Duration::from_millis(2012),
            held_here: false,
        }
    }

    #[test]
    fn the_text_alone_tells_what_is_the_matter() {
        let held = Vote::Held { left: None };
        let refused = Fault::from(FaultKind::ConnectionRefused);
        let votes = vec![
            held.clone(),
            held,
            Vote::Failed(refused),
            Vote::Granted,
            Vote::Granted,
        ];
        let text = attempt(Headline::Contended, votes).to_string();
        assert_eq!(
            text,
            "lock \"nightly\" is held or contended: of 5 nodes (quorum 3) 2 granted, 2 held by \
             another owner, 1 failed (n3:6379: connection refused); 4 rounds in 2.0s"
        );
    }

    #[test]
    fn a_name_that_is_no_text_is_escaped() {
        assert_eq!(Printable(b"a\0\xff").to_string(), r#""a\x00\xff""#);
        assert_eq!(Printable("é\"".as_bytes()).to_string(), r#""é\"""#);
        let long = "x".repeat(10_000);
        assert!(Printable(long.as_bytes()).to_string().len() < 100);
    }
}
