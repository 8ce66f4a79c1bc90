//! What the nodes' keys mean by quorum. Pure: contents go in, a state comes out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::owner::OwnerId;
use crate::node::inspect::{Content, Label};
use crate::node::{Fault, OwnerToken};
use crate::quorum::Quorum;

/// The state of a lock by quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// One owner's key is on a quorum of nodes.
    Held {
        /// Whose.
        owner: OwnerId,
        /// On how many nodes it was seen.
        nodes: usize,
        /// For how long a quorum keeps it yet, by the nodes' clocks, unless it is extended: the
        /// quorum-th longest. `None` for keys that never expire, which this library does not
        /// write.
        left: Option<Duration>,
    },
    /// A quorum of nodes has no key: nobody holds it.
    Free,
    /// Nobody holds it, and nobody could be granted it at this moment: several contend for it, a
    /// holder's last keys run out, or foreign data stands in the way.
    Split,
    /// Too few nodes answered to tell.
    Unknown,
}

/// One node, and what is under the key there.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{Client, KeyState};
///
/// let status = Client::in_memory(3).status("job").await?;
/// for node in status.nodes() {
///     assert!(node.node().starts_with("memory-"));
///     assert_eq!(node.state(), &KeyState::Absent);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeKey {
    pub(super) node: Arc<str>,
    pub(super) state: KeyState,
}

impl NodeKey {
    /// Host and port, or the socket's path: never with a secret.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What is there.
    #[must_use]
    pub fn state(&self) -> &KeyState {
        &self.state
    }
}

/// What is under a lock's key on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// A lock.
    Lock {
        /// Whose.
        owner: OwnerId,
        /// For how long yet, by the node's clock; `None` if it does not expire.
        left: Option<Duration>,
    },
    /// Nothing.
    Absent,
    /// Something that is not a lock of this library.
    Foreign,
    /// The node did not say.
    Failed(Fault),
}

/// The contents for people, under the names of their nodes.
pub(super) fn name(names: Vec<String>, contents: &[Result<Content, Fault>]) -> Vec<NodeKey> {
    let state = |content: &Result<Content, Fault>| match content {
        Ok(Content::Lock { owner, left }) => KeyState::Lock {
            owner: OwnerId::of(owner),
            left: *left,
        },
        Ok(Content::Absent) => KeyState::Absent,
        Ok(Content::Foreign) => KeyState::Foreign,
        Err(fault) => KeyState::Failed(fault.clone()),
    };
    let both = names.into_iter().zip(contents);
    let named = both.map(|(name, content)| NodeKey {
        node: name.into(),
        state: state(content),
    });
    named.collect()
}

/// On how many nodes each owner's key is, most first. Owners are told apart by their whole token.
pub(super) fn owners(contents: &[Result<Content, Fault>]) -> Vec<(OwnerId, usize)> {
    let counts = by_owner(contents).into_iter();
    let mut counts: Vec<_> = counts
        .map(|(token, lefts)| (OwnerId::of(&token), lefts.len()))
        .collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// The times left of each owner's keys.
fn by_owner(contents: &[Result<Content, Fault>]) -> BTreeMap<OwnerToken, Vec<Option<Duration>>> {
    let mut owners: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for content in contents {
        if let Ok(Content::Lock { owner, left }) = content {
            owners.entry(*owner).or_default().push(*left);
        }
    }
    owners
}

/// What the owner that has a quorum says of itself; labels of other owners say nothing of this
/// one.
pub(super) fn label<'a>(
    quorum: Quorum,
    contents: &[Result<Content, Fault>],
    mut labels: impl Iterator<Item = &'a Label>,
) -> Option<String> {
    let owners = by_owner(contents);
    let holds = |lefts: &Vec<_>| lefts.len() >= quorum.needed();
    let (holder, _) = owners.iter().find(|(_, lefts)| holds(lefts))?;
    let label = labels.find(|label| label.owner == *holder)?;
    Some(label.text.clone())
}

/// What the contents of all N nodes come to.
pub(super) fn judge(quorum: Quorum, contents: &[Result<Content, Fault>]) -> LockState {
    let needed = quorum.needed();
    let count = |wanted: fn(&Result<Content, Fault>) -> bool| {
        contents.iter().filter(|content| wanted(content)).count()
    };
    let silent = count(Result::is_err);
    let mut most = 0;
    for (token, mut lefts) in by_owner(contents) {
        most = most.max(lefts.len());
        if lefts.len() < needed {
            continue;
        }
        let nodes = lefts.len();
        // One that never expires is the longest.
        lefts.sort_by_key(|left| std::cmp::Reverse(left.unwrap_or(Duration::MAX)));
        return LockState::Held {
            owner: OwnerId::of(&token),
            nodes,
            left: lefts.get(needed - 1).copied().flatten(),
        };
    }
    if count(|content| matches!(content, Ok(Content::Absent))) >= needed {
        LockState::Free
    } else if quorum.nodes() - silent < needed || most + silent >= needed {
        // The silent ones may all have the key of the owner with most, or of one unseen.
        LockState::Unknown
    } else {
        LockState::Split
    }
}

#[cfg(test)]
mod tests;
