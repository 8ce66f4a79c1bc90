//! What `Client::status` says.

use std::sync::Arc;
use std::time::Duration;

use super::owner::OwnerId;
use super::verdict::{LockState, NodeKey};
use crate::quorum::{FencingToken, Quorum};

/// Who holds one lock, by quorum and on each node.
///
/// Its `Display` is a table of at most 100 columns. With the feature `serde` it can be serialised,
/// spans as whole milliseconds.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::{Client, LockState};
///
/// let client = Client::in_memory(5);
/// let guard = client.lock("job").acquire().await?;
/// let status = client.status("job").await?;
/// assert_eq!((status.resource(), status.needed()), (&b"job"[..], 3));
/// assert!(status.is_held() && !status.is_free());
/// assert!(matches!(status.state(), LockState::Held { owner, .. } if Some(*owner) == status.owner()));
/// assert!(status.left() > Some(Duration::from_secs(8)));
/// assert_eq!((status.nodes().len(), status.label()), (5, None));
/// assert!(status.fencing_counter() >= Some(guard.fencing_token()));
/// assert_eq!(status.fingerprint().len(), 8);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a status is to be looked at"]
pub struct Status {
    pub(super) resource: Arc<[u8]>,
    pub(super) state: LockState,
    pub(super) label: Option<String>,
    pub(super) nodes: Vec<NodeKey>,
    pub(super) quorum: Quorum,
    pub(super) token: Option<FencingToken>,
    pub(super) fingerprint: String,
}

impl Status {
    /// The resource, byte for byte.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// What the nodes come to.
    #[must_use]
    pub fn state(&self) -> &LockState {
        &self.state
    }

    /// Whether one owner has a quorum.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.state, LockState::Held { .. })
    }

    /// Whether a quorum says that nobody has it. Not the opposite of [`Status::is_held`].
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.state == LockState::Free
    }

    /// Who holds it.
    #[must_use]
    pub fn owner(&self) -> Option<OwnerId> {
        match self.state {
            LockState::Held { owner, .. } => Some(owner),
            _ => None,
        }
    }

    /// What the holder says of itself, where it does: see [`Client::label`](crate::Client::label).
    /// It is anybody's text, and no proof of anything.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// For how long it is held yet, as in [`LockState::Held`].
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        match self.state {
            LockState::Held { left, .. } => left,
            _ => None,
        }
    }

    /// Every configured node, in the order of the configuration.
    #[must_use]
    pub fn nodes(&self) -> &[NodeKey] {
        &self.nodes
    }

    /// How many nodes must agree: more than half of the configured ones.
    #[must_use]
    pub fn needed(&self) -> usize {
        self.quorum.needed()
    }

    /// The largest fencing counter that was seen: the last number that a grant reserved, so no
    /// token that was ever granted is larger. `None` where there is none, or no node that says so.
    #[must_use]
    pub fn fencing_counter(&self) -> Option<FencingToken> {
        self.token
    }

    /// Eight digits that stand for the configured list of nodes, in any order: two services that
    /// show different ones do not exclude each other. Addresses count as they are written:
    /// `localhost` and `127.0.0.1` are different ones. It is the beginning of the SHA-1 of the
    /// nodes' names, a line each, sorted: `sort nodes.txt | sha1sum | cut -c1-8`.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}
