//! A set of nodes in memory that several clients share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::{FutureExt, ready};

use super::{Clock, Node};
use crate::client::Client;
use crate::clock;
use crate::config::{Config, ConfigError, Settings};
use crate::engine::{Source, Start};
use crate::key;
use crate::node::Inbox;
use crate::node::memory::inspect::MemoryInspector;
use crate::node::memory::journal::Journal;
use crate::node::memory::server::{Server, Shared};
use crate::node::memory::{MemoryNode, Terms};
use crate::node::survey::Plan;
use crate::quorum::nodes::MOST_NODES;

/// Nodes in memory, without latency and in good health until a test says otherwise.
///
/// Each client of a cluster is as a process of its own: it has its own connections and its own
/// thread. The set counts as an old one, so that the restart guard lets its nodes vote at once.
///
/// ```
/// # futures::executor::block_on(async {
/// use quorumlock::testing::Cluster;
///
/// let cluster = Cluster::new(3);
/// let guard = cluster.client().lock("job").acquire().await.unwrap();
/// assert_eq!(cluster.holders("job"), [3]);
/// guard.release().await.unwrap();
/// assert_eq!(cluster.copies("job"), 0);
/// # });
/// ```
///
/// ```
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::testing::{Clock, Cluster};
///
/// let clock = Clock::new();
/// let cluster = Cluster::with_clock(5, &clock);
/// let config = cluster.config().ttl(Duration::from_secs(2));
/// let guard = cluster.client_with(config)?.lock("job").auto_extend(false).acquire().await?;
/// assert_eq!(cluster.nodes().len(), 5);
/// assert!((0..3).any(|index| cluster.node(index).keys() == ["quorumlock:{job}"]));
/// clock.advance(Duration::from_secs(2));
/// assert!(!guard.is_held());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(super) nodes: Arc<[Node]>,
    clock: clock::Clock,
    clients: Arc<AtomicU32>,
}

/// The most requests that wait for one node, as for a real one.
const QUEUE_LIMIT: usize = 16 * 1024;

impl Cluster {
    /// A cluster of `nodes` nodes, 1 to 32, by the machine's clock.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Cluster::by(nodes, clock::Clock::Boot, 0, &Journal::default())
    }

    /// A cluster that lives by `clock`, as do its clients.
    #[must_use]
    pub fn with_clock(nodes: usize, clock: &Clock) -> Self {
        let clock = clock::Clock::Manual(clock.hands.clone());
        Cluster::by(nodes, clock, 0, &Journal::default())
    }

    pub(super) fn by(nodes: usize, clock: clock::Clock, seed: u64, journal: &Journal) -> Self {
        let node = |index| Node {
            server: Shared::new(Server::new(
                index,
                seed ^ (index as u64 + 1) << 48,
                clock.now(),
                journal.clone(),
            )),
            clock: clock.clone(),
        };
        Cluster {
            nodes: (0..nodes.clamp(1, MOST_NODES)).map(node).collect(),
            clock,
            clients: Arc::default(),
        }
    }

    /// The last address leads to the first server, too.
    pub(super) fn with_twins(mut self) -> Self {
        let mut nodes = self.nodes.to_vec();
        if let (Some(first), Some(last)) = (nodes.first().cloned(), nodes.last_mut()) {
            *last = first;
        }
        self.nodes = nodes.into();
        self
    }

    /// A client of these nodes, with all settings at their defaults.
    #[must_use]
    #[allow(clippy::expect_used)]
    pub fn client(&self) -> Client {
        let client = self.client_with(self.config());
        // invariant: the defaults pass the checks, and so do the names that `config` gives.
        client.expect("the defaults are good settings")
    }

    /// A client of these nodes with the settings of `config`. The nodes that it names are not
    /// asked: their names appear in errors, where there are as many as the cluster has.
    ///
    /// # Errors
    /// A setting that cannot be used.
    ///
    /// ```
    /// use std::time::Duration;
    /// use quorumlock::testing::Cluster;
    ///
    /// let cluster = Cluster::new(5);
    /// assert!(cluster.client_with(cluster.config().ttl(Duration::from_secs(2))).is_ok());
    /// let longer_than_max_ttl = cluster.config().ttl(Duration::from_secs(3600));
    /// assert!(cluster.client_with(longer_than_max_ttl).is_err());
    /// ```
    pub fn client_with(&self, config: Config) -> Result<Client, ConfigError> {
        let start = Arc::new(crate::engine::start);
        self.client_by(&config, start, true)
            .map(|(client, _)| client)
    }

    /// A client whose engine is started by `start`, and its number. `drives` as in [`Terms`].
    pub(super) fn client_by(
        &self,
        config: &Config,
        start: Arc<Start>,
        drives: bool,
    ) -> Result<(Client, u32), ConfigError> {
        let settings = config.check()?;
        let number = self.clients.fetch_add(1, Ordering::Relaxed);
        let names = self.names(&settings);
        let terms = Terms {
            client: number,
            marker_key: key::marker_key(&settings.prefix).into(),
            patience: settings.timing(None)?.node_timeout(),
            limit: QUEUE_LIMIT,
            drives,
        };
        let inspector = self.inspector(number, &names, terms.patience);
        for node in self.nodes.iter() {
            let now = self.clock.now();
            node.server.lock().age(&terms.marker_key, now);
        }
        let all_names: Arc<[String]> = names.clone().into();
        let servers: Vec<Shared> = self.nodes.iter().map(|node| node.server.clone()).collect();
        let looked_at = (servers.clone(), self.clock.clone());
        let surveyor = move |plan: Plan| {
            let (servers, clock) = &looked_at;
            let look = |server: &Shared| server.lock().survey(&plan, clock.now());
            servers
                .iter()
                .map(|server| ready(look(server)).boxed_local())
                .collect()
        };
        let nodes = move |inbox: Inbox, clock: clock::Clock| {
            let named = servers.iter().cloned().zip(names.iter().cloned());
            let node = |(index, (server, name))| {
                let (inbox, clock, terms) = (inbox.clone(), clock.clone(), terms.clone());
                let node = MemoryNode::new(index, name, server, terms, inbox, clock);
                Box::new(node) as Box<dyn crate::node::Node>
            };
            named.enumerate().map(node).collect()
        };
        let source = Source {
            clock: self.clock.clone(),
            inspector: Some(Arc::new(inspector)),
            nodes: Arc::new(nodes),
            start,
            surveyor: Arc::new(surveyor),
            names: all_names,
        };
        Ok((Client::over(settings, source), number))
    }

    /// What looks at the servers for client `number`.
    fn inspector(&self, number: u32, names: &[String], patience: Duration) -> MemoryInspector {
        let servers = self.nodes.iter().map(|node| node.server.clone());
        MemoryInspector {
            client: number,
            servers: names.iter().cloned().zip(servers).collect(),
            clock: self.clock.clone(),
            node_timeout: patience,
        }
    }

    fn names(&self, settings: &Settings) -> Vec<String> {
        let names = settings.node_names();
        if names.len() == self.nodes.len() {
            return names;
        }
        let count = 1..=self.nodes.len();
        count.map(|number| format!("memory-{number}")).collect()
    }

    /// Default settings for these nodes: to be changed, and given to [`Cluster::client_with`].
    pub fn config(&self) -> Config {
        let count = 1..=self.nodes.len();
        Config::new(count.map(|number| format!("redis://memory-{number}:6379")))
    }

    /// The node with this number, from 0; from the first again beyond the last.
    #[must_use]
    pub fn node(&self, index: usize) -> Node {
        self.nodes[index % self.nodes.len()].clone()
    }

    /// Every node.
    #[must_use]
    pub fn nodes(&self) -> Vec<Node> {
        self.nodes.to_vec()
    }

    /// On how many nodes there is a key for `resource`, whoever owns it.
    #[must_use]
    pub fn copies(&self, resource: impl AsRef<[u8]>) -> usize {
        self.holders(resource).iter().sum()
    }

    /// On how many nodes each of the owners of `resource` has its key, most first. A lock that is
    /// held has one owner as a rule; during a contest there are several.
    #[must_use]
    pub fn holders(&self, resource: impl AsRef<[u8]>) -> Vec<usize> {
        let mut counts = BTreeMap::new();
        for node in self.nodes.iter() {
            if let Some(owner) = node.owner(resource.as_ref()) {
                *counts.entry(owner).or_insert(0) += 1;
            }
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts
    }
}

impl Client {
    /// A client of `nodes` nodes in memory, 1 to 32, in good health: for tests that need a lock
    /// and no server. For nodes that fail, and for several clients, see
    /// [`Cluster`](crate::testing::Cluster). Needs the feature `test-util`.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let client = Client::in_memory(5);
    /// let guard = client.lock("job").acquire().await.unwrap();
    /// assert!(client.lock("job").try_acquire().await.is_err());
    /// # drop(guard);
    /// # });
    /// ```
    #[must_use]
    pub fn in_memory(nodes: usize) -> Self {
        Cluster::new(nodes).client()
    }
}
