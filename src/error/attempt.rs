//! The last round of an acquisition, with every node's vote.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::node::{Fault, FaultKind};

/// How the last round of an acquisition went.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{Client, Vote};
///
/// let lock = Client::in_memory(3).lock("job");
/// let guard = lock.acquire().await?;
/// let error = lock.try_acquire().await.unwrap_err();
/// let attempt = error.attempt().unwrap();
/// assert_eq!((attempt.resource(), attempt.needed()), (&b"job"[..], 2));
/// assert!(attempt.is_held_here(), "by a guard of this very client");
/// assert!(attempt.rounds() <= 1 && attempt.waited().as_secs() < 30);
/// assert!(attempt.votes().iter().all(|vote| !matches!(vote.vote, Vote::Granted)));
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
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
    Over,
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

    /// How many nodes granted.
    pub(crate) fn granted(&self) -> usize {
        self.count(|vote| matches!(vote, Vote::Granted))
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
            Headline::Over => write!(f, "the lease on {name} is over")?,
            Headline::TooSlow => write!(f, "lock {name} was granted too late to be of use")?,
        }
        if self.votes.is_empty() {
            return f.write_str(": it ran out before the caller was awake");
        }
        let all = self.votes.len();
        let needed = self.needed;
        let granted = self.granted();
        let held = self.count(|vote| matches!(vote, Vote::Held { .. }));
        let failed = self.count(|vote| matches!(vote, Vote::Failed(_)));
        write!(f, ": of {all} nodes (quorum {needed}) {granted} granted, ")?;
        let by = if self.held_here {
            ""
        } else {
            " by another owner"
        };
        write!(f, "{held} held{by}, {failed} failed")?;
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
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::testing::Cluster;
/// use quorumlock::{FaultKind, NodeVote};
///
/// let cluster = Cluster::new(3);
/// cluster.nodes().iter().for_each(|node| node.fail_with(FaultKind::Loading));
/// let error = cluster.client().lock("job").try_acquire().await.unwrap_err();
/// let votes = error.attempt().unwrap().votes();
/// votes.iter().for_each(|vote| println!("{} says {:?}", vote.node, vote.vote));
/// let loading = |vote: &&NodeVote| vote.vote.fault() == Some(FaultKind::Loading);
/// assert!(votes.iter().filter(loading).count() >= 2);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVote {
    /// Host and port, or the socket's path: never with a secret.
    pub node: Arc<str>,
    /// What it said.
    pub vote: Vote,
}

/// What one node said.
///
/// ```
/// use quorumlock::Vote;
///
/// assert_eq!(Vote::Granted.fault(), None);
/// ```
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
    /// The key that was to be taken over is not there any more.
    Absent,
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
