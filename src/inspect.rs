//! `Client::status`, `list` and `force_release`: what the nodes have, and how an operator frees it.
//!
//! ```text
//!   names of keys ─► node/inspect × N, on a thread of their own ─► contents × N
//!                                                                      │
//!   Status, Listing, ForcedRelease ◄── verdict (pure): by quorum ◄─────┘
//! ```
//!
//! The nodes are the truth here, not what this client believes: the engine is not asked.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

mod force;
#[cfg(feature = "serde")]
mod json;
mod label;
mod list;
mod owner;
mod status;
mod table;
mod verdict;

use crate::client::Client;
use crate::config::{ConfigError, check_resource};
use crate::error::Printable;
use crate::key;
use crate::node::inspect::{Inspector, Scan};
use crate::node::script;
use crate::quorum::{FencingToken, Quorum};
pub use force::{ForceReleaseError, ForcedRelease};
pub use label::Label;
pub use list::{Listed, Listing};
pub use owner::OwnerId;
pub use status::Status;
pub use verdict::{KeyState, LockState, NodeKey};

/// The most locks in one listing, and the most bytes of names from one node.
const MOST_LISTED: usize = 10_000;
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The longest time in which names are looked for. A million keys took 1.2 to 1.8 s on a busy
/// machine, so that some millions fit.
const LOOK: Duration = Duration::from_secs(10);

impl Client {
    /// Who holds the lock on `resource`, by quorum and on each node, and for how long: for people.
    /// A program that wants the lock should ask for it ([`Lock::try_acquire`]): what this says is
    /// past when it arrives.
    ///
    /// It reads the keys as they are: a node that has no vote at the moment (restarting, listed
    /// twice) counts here as well; see [`Client::check`] for that. It writes nothing, starts nothing,
    /// and works on a closed client, too: each node gets a short connection of its own, and
    /// `node_timeout` for that together with its answer. A node without an answer is in the
    /// result with its [`Fault`](crate::Fault); where that leaves the question open, the state is
    /// [`LockState::Unknown`], never [`LockState::Free`]. It works from any executor.
    ///
    /// # Errors
    /// The resource has no name, or one of more than 64 KiB. Nothing was sent.
    ///
    /// # Cancel safety
    /// Dropping the future ends the asking.
    ///
    /// # Round trips
    /// The connection, and one.
    ///
    /// # Guarantee
    /// None for the time after the answers. The nodes do not answer at one moment either: a lock
    /// that changes hands may look split.
    ///
    /// [`Lock::try_acquire`]: crate::Lock::try_acquire
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let client = Client::in_memory(5);
    /// assert!(client.status("nightly").await?.is_free());
    /// let guard = client.lock("nightly").acquire().await?;
    /// let status = client.status("nightly").await?;
    /// assert!(status.is_held(), "{status}");
    /// assert!(status.fencing_counter() >= Some(guard.fencing_token()));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn status(&self, resource: impl AsRef<[u8]>) -> Result<Status, ConfigError> {
        let resource: Arc<[u8]> = Arc::from(resource.as_ref());
        check_resource(&resource)?;
        let look = self.look();
        let key = key::lock_key(&look.prefix, &resource);
        let answers = look.nodes.read([key].into(), true).await;
        let mut contents = Vec::with_capacity(answers.len());
        let (mut counter, mut labels) = (None, Vec::new());
        for answer in answers.into_iter().flatten() {
            contents.push(answer.map(|reading| {
                counter = counter.max(reading.counter);
                labels.extend(reading.label);
                reading.content
            }));
        }
        Ok(Status {
            resource,
            label: verdict::label(look.quorum, &contents, labels.iter()),
            state: verdict::judge(look.quorum, &contents),
            nodes: verdict::name(look.nodes.names(), &contents),
            quorum: look.quorum,
            token: counter.map(FencingToken::from_u64),
            fingerprint: look.fingerprint(),
        })
    }

    /// The locks whose resource begins with `prefix`, all for `""`, with their state by quorum:
    /// for people.
    ///
    /// Names are looked for with SCAN on all nodes, 500 keys a step, so that no server is held up
    /// by it, and for 10 s at the most; then every node is asked for every name, for as long. The
    /// result has 10,000 locks at the most, the first ones in the order of their bytes among those
    /// that were found. [`Listing::is_complete`] says whether names may be missing for either
    /// limit, or since nodes failed. As for connections, time limits and faults it is like
    /// [`Client::status`].
    ///
    /// The user needs `+scan` beside the permissions of a lock; nothing else does.
    ///
    /// There is no error: a node's fault is in the listing.
    ///
    /// # Cancel safety
    /// Dropping the future ends the asking.
    ///
    /// # Round trips
    /// Two connections; one trip for 500 keys of any kind on the node, and one for 128 names that
    /// were found.
    ///
    /// # Guarantee
    /// A complete listing has every lock that was held throughout the call. Others may have come
    /// and gone.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let client = Client::in_memory(5);
    /// let guard = client.lock("seat/12a").acquire().await?;
    /// let listing = client.list("seat/").await;
    /// assert_eq!(listing.locks()[0].resource(), b"seat/12a");
    /// assert!(listing.is_complete());
    /// # drop(guard);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn list(&self, prefix: impl AsRef<[u8]>) -> Listing {
        let (start, look) = (prefix.as_ref(), self.look());
        let scan = Scan {
            start: key::lock_key_start(&look.prefix, start).into(),
            most: MOST_LISTED,
            most_bytes: MOST_BYTES,
            within: LOOK,
        };
        let found = list::gather(look.nodes.scan(scan).await, look.quorum, &look.prefix);
        let keys: Arc<[Vec<u8>]> = found.keys.into();
        let answers = match keys.is_empty() {
            true => Vec::new(),
            false => look.nodes.read(Arc::clone(&keys), false).await,
        };
        Listing {
            prefix: Arc::from(start),
            locks: list::judge(&keys, &answers, look.quorum, &look.prefix),
            nodes: list::faults(look.nodes.names(), found.faults, &answers),
            complete: found.complete,
            quorum: look.quorum,
            fingerprint: look.fingerprint(),
        }
    }

    /// Frees the lock on `resource` whoever holds it: for an operator who knows that the holder
    /// must not go on, or is gone.
    ///
    /// The lock's key is deleted on every node, where it holds a lock; anything else is left alone
    /// and told. The fencing counter stays, so that the next holder's token is larger.
    ///
    /// **The holder may still be at work.** It hears of it ([`Loss::Deleted`]) at its next
    /// extension, within `extend_every` and a node timeout, and does not set its key again; until
    /// then somebody else may be granted the lock. Only a resource that checks the [fencing
    /// token](crate::FencingToken) is protected meanwhile. As for connections and time limits it
    /// is like [`Client::status`], and the user needs no more than for a lock.
    ///
    /// # Errors
    /// [`ForceReleaseError::Unconfirmed`] too few nodes answered to be certain; call it again once
    /// they do. [`ForceReleaseError::Invalid`] as for [`Client::status`]; nothing was sent.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the key deleted on some nodes, all or none. It can be called
    /// again.
    ///
    /// # Round trips
    /// The connection, and one.
    ///
    /// [`Loss::Deleted`]: crate::Loss::Deleted
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::{Client, Loss};
    /// use quorumlock::testing::Cluster;
    ///
    /// let cluster = Cluster::new(5);
    /// let config = cluster.config().ttl(std::time::Duration::from_millis(300));
    /// let holder = cluster.client_with(config)?;
    /// let guard = holder.lock("nightly").acquire().await?;
    /// let freed = cluster.client().force_release("nightly").await?;
    /// assert!(freed.was_held(), "{freed}");
    /// assert_eq!(guard.lost().await, Loss::Deleted);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn force_release(
        &self,
        resource: impl AsRef<[u8]>,
    ) -> Result<ForcedRelease, ForceReleaseError> {
        let resource: Arc<[u8]> = Arc::from(resource.as_ref());
        check_resource(&resource)?;
        let look = self.look();
        let key = key::lock_key(&look.prefix, &resource);
        let contents = look.nodes.delete(key.into()).await;
        let freed = ForcedRelease {
            resource,
            owners: verdict::owners(&contents),
            nodes: verdict::name(look.nodes.names(), &contents),
            quorum: look.quorum,
        };
        let (name, deleted) = (Printable(&freed.resource), freed.deleted());
        warn!(resource = %name, deleted, owners = ?freed.owners, "released by force");
        match freed.is_certain() {
            true => Ok(freed),
            false => Err(ForceReleaseError::Unconfirmed(Box::new(freed))),
        }
    }

    fn look(&self) -> Look {
        let core = self.core();
        let nodes = core.inspector();
        Look {
            quorum: Quorum::of(nodes.names().len()),
            nodes,
            prefix: core.settings().prefix.clone(),
        }
    }
}

/// Where to look.
struct Look {
    nodes: Arc<dyn Inspector>,
    quorum: Quorum,
    prefix: String,
}

impl Look {
    /// See [`Status::fingerprint`].
    fn fingerprint(&self) -> String {
        let mut names = self.nodes.names();
        names.sort_unstable();
        let mut digest = script::digest(&(names.join("\n") + "\n"));
        digest.truncate(8);
        digest
    }
}
