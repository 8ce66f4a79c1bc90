//! The client: a set of nodes and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::config::{Config, ConfigError, Settings};
use crate::engine::{Command, Core, Source};
use crate::error::AttachError;
use crate::guard::Guard;
use crate::key;
use crate::lock::Lock;
use crate::node::redis::{Manners, RedisNode};
use crate::node::survey::{Plan, survey};
use crate::node::{Inbox, Node};
use crate::status::{NodeState, NodeStatus};
use crate::ticket::LeaseTicket;

/// The most requests that wait for one node.
const QUEUE_LIMIT: usize = 16 * 1024;

/// A set of nodes, and how to treat them. Cheap to clone; all clones are one client.
///
/// Making one does no I/O and needs no runtime: it can be built while every node is down, kept in
/// a `static`, and used from one runtime after another. The first lock that is asked for starts
/// the client's own thread, which keeps one connection to each node and holds the leases. The
/// thread ends when the last clone and the last guard are gone.
///
/// After a `fork` the child's first lock starts an engine of its own; what the parent holds stays
/// the parent's.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::Client;
///
/// let client = Client::in_memory(5); // Client::open(["redis://a", "redis://b", "redis://c"])?
/// let guard = client.lock("nightly").acquire().await?;
/// assert!(guard.is_held());
/// guard.release().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    core: Arc<Core>,
}

impl Client {
    /// A client of the nodes at `urls`, with all other settings at their defaults.
    ///
    /// # Errors
    /// A URL that cannot be used, none at all, or one node twice. Nothing is sent, so a node that
    /// is down is no error.
    ///
    /// ```
    /// use quorumlock::Client;
    ///
    /// let client = Client::open(["redis://a:6379", "redis://b:6379", "redis://c:6379"])?;
    /// assert!(Client::open(["http://a"]).is_err());
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn open<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Result<Self, ConfigError> {
        Client::with_config(Config::new(urls))
    }

    /// A client with the settings of `config`.
    ///
    /// # Errors
    /// The setting that cannot be used, its value, where it came from and what to write instead.
    /// Nothing is sent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use quorumlock::{Client, Config};
    ///
    /// let config = Config::new(["redis://a", "redis://b", "redis://c"]).ttl(Duration::from_secs(5));
    /// let client = Client::with_config(config)?;
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn with_config(config: Config) -> Result<Self, ConfigError> {
        let settings = config.check()?;
        let manners = Manners {
            marker_key: key::marker_key(&settings.prefix),
            patience: settings.timing(None)?.node_timeout(),
            limit: QUEUE_LIMIT,
        };
        let targets = settings.targets();
        let nodes = move |inbox: Inbox, clock: Clock| {
            let target = |(index, target)| {
                let (inbox, clock) = (Inbox::clone(&inbox), Clock::clone(&clock));
                let node = RedisNode::spawn(index, target, manners.clone(), inbox, clock);
                Box::new(node) as Box<dyn Node>
            };
            targets.iter().cloned().enumerate().map(target).collect()
        };
        let targets = settings.targets();
        let surveyor = move |plan: Plan| {
            let look = |target| survey(target, plan.clone(), Clock::Boot).boxed_local();
            targets.iter().cloned().map(look).collect()
        };
        let names = settings.node_names();
        let (nodes, surveyor) = (Arc::new(nodes), Arc::new(surveyor));
        let source = Source::threaded(Clock::Boot, nodes, surveyor, names);
        Ok(Client::over(settings, source))
    }

    /// A client of whatever nodes `source` makes.
    pub(crate) fn over(settings: Settings, source: Source) -> Self {
        Client {
            core: Arc::new(Core::new(settings, source)),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// The lock on `resource`: any bytes or text but none, up to 64 KiB. Does no I/O.
    ///
    /// Two resources are the same if their bytes are: case and Unicode normal forms count.
    ///
    /// ```
    /// use quorumlock::Client;
    ///
    /// let client = Client::open(["redis://a"])?;
    /// assert_eq!(client.lock("seat/12a").resource(), b"seat/12a");
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    #[must_use]
    pub fn lock(&self, resource: impl AsRef<[u8]>) -> Lock {
        Lock::new(Arc::clone(&self.core), resource.as_ref())
    }

    /// Takes over a lease that [`Guard::detach`](crate::Guard::detach) let go of, here or in
    /// another process: the guard that comes back holds it for a full TTL, and extends it.
    ///
    /// # Errors
    /// [`AttachError::Lost`] the lease is over; [`AttachError::Unavailable`] no quorum answered,
    /// and the ticket is as good as before. A ticket can be attached twice; then both guards hold
    /// the same lease, and the release of either ends it.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the lease to whoever has the ticket.
    ///
    /// # Round trips
    /// One: an extension that restores nothing.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let client = Client::in_memory(5);
    /// let ticket = client.lock("seat/12a").acquire().await?.detach().await.unwrap();
    /// let guard = client.attach(&ticket).await?;
    /// guard.release().await?;
    /// assert!(client.attach(&ticket).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn attach(&self, ticket: &LeaseTicket) -> Result<Guard, AttachError> {
        let lock = self.lock(&ticket.resource).ttl(ticket.ttl);
        Ok(lock.adopt(ticket.secret).await?)
    }

    /// What the client knows of its nodes, in the order of the configuration: whether each is
    /// connected, hangs, or waits for its vote, since when and why.
    ///
    /// It asks no node and starts nothing: the answer is as new as the last thing that a node was
    /// asked for, so an idle client may take a node that hangs for a ready one. A client that was
    /// not used yet, or is closed, has [`NodeState::Idle`] nodes. To ask the nodes themselves see
    /// [`Client::check`].
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    ///
    /// # Round trips
    /// None; one to the client's own thread.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let client = Client::in_memory(3);
    /// assert!(client.nodes().await.iter().all(|node| !node.votes()));
    /// let guard = client.lock("job").acquire().await?;
    /// assert!(client.nodes().await.iter().filter(|node| node.votes()).count() >= 2);
    /// # drop(guard);
    /// # Ok::<(), quorumlock::AcquireError>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn nodes(&self) -> Vec<NodeStatus> {
        if let Some(handle) = self.core.running() {
            let (reply, answer) = oneshot::channel();
            handle.send(Command::Nodes { reply });
            if let Ok(nodes) = answer.await {
                return nodes;
            }
        }
        let idle = |name: String| NodeStatus {
            name: name.into(),
            state: NodeState::Idle,
            since: Duration::ZERO,
        };
        let names = self.core.node_names();
        names.into_iter().map(idle).collect()
    }

    /// Ends the client: releases what its guards hold, lets acquisitions that wait fail with
    /// [`AcquireError::Closed`](crate::AcquireError::Closed), and waits for the nodes to confirm.
    /// The guards hear [`Loss::Closed`](crate::Loss::Closed).
    ///
    /// It gives up when no node has answered a release for a second, or for two node timeouts if
    /// those are more; and after ten times that, whatever is answered: so a hundred thousand locks
    /// get the seconds that they take, and dark nodes hold up nobody.
    ///
    /// # Errors
    /// How many releases no quorum has confirmed. Their keys run out with their TTL.
    ///
    /// # Cancel safety
    /// The client is closed from the first poll on; a drop only stops the waiting.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::{AcquireError, Client, Loss};
    ///
    /// let client = Client::in_memory(5);
    /// let guard = client.lock("job").acquire().await?;
    /// client.close().await?;
    /// assert_eq!(guard.lost().await, Loss::Closed);
    /// assert!(matches!(client.lock("job").acquire().await, Err(AcquireError::Closed)));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn close(&self) -> Result<(), CloseError> {
        let Some(handle) = self.core.close() else {
            return Ok(());
        };
        let (reply, outcome) = oneshot::channel();
        handle.send(Command::Close { reply });
        // An engine that ends without an answer had nothing left to do.
        match outcome.await {
            Ok(0) | Err(_) => Ok(()),
            Ok(unconfirmed) => Err(CloseError { unconfirmed }),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("nodes", &self.core.settings().node_names())
            .field("closed", &self.core.is_closed())
            .finish_non_exhaustive()
    }
}

/// Some releases were not confirmed before the client ended.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::testing::Cluster;
///
/// let cluster = Cluster::new(3);
/// let client = cluster.client();
/// let guard = client.lock("job").acquire().await?;
/// cluster.nodes().iter().for_each(|node| node.kill());
/// assert_eq!(client.close().await.unwrap_err().unconfirmed(), 1);
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{unconfirmed} releases were not confirmed by a quorum; their keys run out with their TTL")]
pub struct CloseError {
    unconfirmed: usize,
}

impl CloseError {
    /// How many.
    #[must_use]
    pub fn unconfirmed(&self) -> usize {
        self.unconfirmed
    }
}
