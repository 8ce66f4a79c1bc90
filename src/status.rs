//! What a client knows of its nodes, for people and dashboards.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::node::Fault;

/// Where a node stands in its life, as the client sees it.
///
/// ```text
///            ┌──────────── lost ◄───────────┐
///            ▼                              │
///   Idle ─► Connecting ─► Restarting ─► Ready ◄─► Suspect
///            │    ▲                         │
///            ▼    └── connected ── Down ◄───┤
///        Excluded ◄─────────────────────────┘
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeState {
    /// The client has no connections: it was not used yet, or it is closed.
    Idle,
    /// A connection is being made, and requests wait for it. If there was one before, this is how
    /// it ended.
    Connecting {
        /// Why the last connection ended.
        why: Option<Fault>,
    },
    /// It is asked, and its vote counts.
    Ready,
    /// It does not answer. It gets no new requests and so costs nothing; what it was sent last is
    /// the probe that brings it back at its first answer.
    Suspect {
        /// For how long it has said nothing.
        why: Fault,
    },
    /// It, or its data, is so young that it may have forgotten a lease: it is asked, and its vote
    /// does not count yet.
    Restarting {
        /// How long until it counts.
        left: Duration,
    },
    /// It serves no locks before somebody changes something: wrong credentials, a permission that
    /// is missing, a replica, a foreign cluster slot, or the same server as an earlier node.
    Excluded {
        /// What stands in the way.
        why: Fault,
    },
    /// There is no connection, or its last answer was an error that passes (loading, busy, out of
    /// memory). It is tried again and again, with pauses of up to half a second.
    Down {
        /// What went wrong.
        why: Fault,
    },
}

impl NodeState {
    /// What went wrong, where something did.
    ///
    /// ```
    /// use quorumlock::NodeState;
    ///
    /// assert!(NodeState::Ready.why().is_none());
    /// ```
    #[must_use]
    pub fn why(&self) -> Option<&Fault> {
        match self {
            NodeState::Connecting { why } => why.as_ref(),
            NodeState::Suspect { why } | NodeState::Excluded { why } | NodeState::Down { why } => {
                Some(why)
            }
            NodeState::Idle | NodeState::Ready | NodeState::Restarting { .. } => None,
        }
    }

    /// Every word for a node that has a client.
    pub(crate) const WORDS: &'static [&'static str] = &[
        "connecting",
        "ready",
        "suspect",
        "restarting",
        "excluded",
        "down",
    ];

    /// In one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            NodeState::Idle => "idle",
            NodeState::Connecting { .. } => "connecting",
            NodeState::Ready => "ready",
            NodeState::Suspect { .. } => "suspect",
            NodeState::Restarting { .. } => "restarting",
            NodeState::Excluded { .. } => "excluded",
            NodeState::Down { .. } => "down",
        }
    }
}

/// One word, and why: `suspect: timed out (no answer for 80 ms)`.
impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            NodeState::Restarting { left } => write!(f, ": has a vote in {left:.1?}"),
            other => match other.why() {
                Some(why) => write!(f, ": {why}"),
                None => Ok(()),
            },
        }
    }
}

/// One node, as the client sees it now: an answer of [`Client::nodes`](crate::Client::nodes).
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{NodeState, testing::Cluster};
///
/// let cluster = Cluster::new(3);
/// cluster.node(2).kill();
/// let client = cluster.client();
/// let guard = client.lock("job").acquire().await?;
/// let nodes = client.nodes().await;
/// assert!(nodes[0].votes() && nodes[0].state() == &NodeState::Ready);
/// println!("{} for {:?}: {}", nodes[2].name(), nodes[2].since(), nodes[2].state());
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    pub(crate) name: Arc<str>,
    pub(crate) state: NodeState,
    pub(crate) since: Duration,
}

impl NodeStatus {
    /// How errors and logs call the node: never with a secret.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> &NodeState {
        &self.state
    }

    /// For how long it has stood there, on the boot-time clock. A restarting node: for how long
    /// it, or its data, has been there. Zero for an idle one.
    #[must_use]
    pub fn since(&self) -> Duration {
        self.since
    }

    /// Whether a grant of it would count in a round that begins now.
    #[must_use]
    pub fn votes(&self) -> bool {
        self.state == NodeState::Ready
    }
}

impl fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeStatus { name, state, since } = self;
        let word = state.word();
        let rest = state.to_string();
        let rest = rest.strip_prefix(word).unwrap_or_default();
        write!(f, "{name} {word} for {since:.1?}{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::FaultKind;

    #[test]
    fn a_status_reads_as_a_sentence() {
        let status = |state| NodeStatus {
            name: "a:6379".into(),
            state,
            since: Duration::from_millis(1500),
        };
        let why = Fault::new(FaultKind::Timeout, "no answer for 80 ms");
        let suspect = status(NodeState::Suspect { why });
        assert_eq!(
            suspect.to_string(),
            "a:6379 suspect for 1.5s: timed out (no answer for 80 ms)"
        );
        assert!(!suspect.votes());
        let left = Duration::from_secs(3);
        assert_eq!(
            status(NodeState::Restarting { left }).to_string(),
            "a:6379 restarting for 1.5s: has a vote in 3.0s"
        );
        assert_eq!(
            status(NodeState::Ready).to_string(),
            "a:6379 ready for 1.5s"
        );
        assert!(status(NodeState::Ready).votes());
    }
}
