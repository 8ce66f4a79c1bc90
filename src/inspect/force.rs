//! What `Client::force_release` says.

use std::sync::Arc;

use super::owner::OwnerId;
use super::verdict::{KeyState, NodeKey};
use crate::config::ConfigError;
use crate::quorum::Quorum;

/// What a forced release found and deleted.
///
/// Its `Display` is a table of at most 100 columns. With the feature `serde` it can be serialised.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::Client;
///
/// let client = Client::in_memory(5);
/// let _stuck = client.lock("job").auto_extend(false).acquire().await?;
/// let freed = client.force_release("job").await?;
/// assert_eq!((freed.resource(), freed.was_held(), freed.needed()), (&b"job"[..], true, 3));
/// assert_eq!(freed.deleted(), freed.owners()[0].1);
/// assert_eq!(freed.nodes().len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it says whose lock was taken"]
pub struct ForcedRelease {
    pub(super) resource: Arc<[u8]>,
    pub(super) owners: Vec<(OwnerId, usize)>,
    pub(super) nodes: Vec<NodeKey>,
    pub(super) quorum: Quorum,
}

impl ForcedRelease {
    /// What was freed, byte for byte.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// Whose keys were deleted on how many nodes, most first.
    #[must_use]
    pub fn owners(&self) -> &[(OwnerId, usize)] {
        &self.owners
    }

    /// Whether keys of one owner were deleted on a quorum of nodes: it held the lock.
    #[must_use]
    pub fn was_held(&self) -> bool {
        self.most() >= self.needed()
    }

    /// On how many nodes a key was deleted.
    #[must_use]
    pub fn deleted(&self) -> usize {
        self.owners.iter().map(|(_, count)| count).sum()
    }

    /// What was under the key on each node before: a lock is deleted, foreign data is not. In the
    /// order of the configuration.
    #[must_use]
    pub fn nodes(&self) -> &[NodeKey] {
        &self.nodes
    }

    /// How many nodes make a quorum.
    #[must_use]
    pub fn needed(&self) -> usize {
        self.quorum.needed()
    }

    fn most(&self) -> usize {
        self.owners.first().map_or(0, |(_, count)| *count)
    }

    /// Whether no holder is left that could go on: one who lost so many keys gives the lease up at
    /// its next extension (P7), and one who had no quorum has no lease. With fewer, a holder whose
    /// other keys are on the silent nodes would heal what was deleted.
    pub(super) fn is_certain(&self) -> bool {
        let failed = |node: &&NodeKey| matches!(node.state, KeyState::Failed(_));
        let silent = self.nodes.iter().filter(failed).count();
        let most = self.most();
        most > self.quorum.spare() || most + silent < self.needed()
    }
}

/// Why a lock may not be free after a forced release.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForceReleaseError {
    /// Too few nodes answered: the holder, if there is one, may have its key on the silent nodes
    /// and set it again on the others. Where a key was found, it was deleted. Call it again once
    /// the nodes answer.
    #[error("{}", .0.unconfirmed())]
    Unconfirmed(Box<ForcedRelease>),
    /// The resource has no name that can be used. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
}

impl ForceReleaseError {
    /// What was found and deleted all the same.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::testing::Cluster;
    ///
    /// let cluster = Cluster::new(5);
    /// let guard = cluster.client().lock("job").acquire().await?;
    /// (0..3).for_each(|index| cluster.node(index).kill());
    /// let error = cluster.client().force_release("job").await.unwrap_err();
    /// assert_eq!(error.partial().unwrap().deleted(), 2);
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn partial(&self) -> Option<&ForcedRelease> {
        match self {
            ForceReleaseError::Unconfirmed(freed) => Some(freed),
            ForceReleaseError::Invalid(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::inspect::Content;
    use crate::node::{FaultKind, OwnerToken};

    /// `1` a key of the holder, `0` none, `x` silent.
    fn freed(text: &str) -> ForcedRelease {
        let content = |sign: char| match sign {
            '1' => Ok(Content::Lock {
                owner: OwnerToken::new([1; 20]),
                left: None,
            }),
            '0' => Ok(Content::Absent),
            _ => Err(FaultKind::Timeout.into()),
        };
        let contents: Vec<_> = text.chars().map(content).collect();
        ForcedRelease {
            resource: Arc::from(&b"job"[..]),
            owners: super::super::verdict::owners(&contents),
            nodes: super::super::verdict::name(vec!["n".into(); contents.len()], &contents),
            quorum: Quorum::of(contents.len()),
        }
    }

    #[test]
    fn it_is_certain_where_no_holder_can_go_on() {
        for (text, certain, held) in [
            ("11111", true, true),
            ("111xx", true, true),
            ("11000", true, false),
            ("00000", true, false),
            ("000xx", true, false),
            // The holder has two more keys on the silent nodes, and would heal these two.
            ("110xx", false, false),
            ("11xxx", false, false),
            ("1100x", false, false),
            ("xxxxx", false, false),
            // Of four, two that are gone leave no quorum of three.
            ("11xx", true, false),
            ("1xxx", false, false),
            ("x", false, false),
        ] {
            let freed = freed(text);
            assert_eq!(
                (freed.is_certain(), freed.was_held()),
                (certain, held),
                "{text}"
            );
        }
    }
}
