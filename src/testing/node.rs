//! What a test can do to one node.

use std::time::Duration;

use crate::clock::Clock;
use crate::key;
use crate::node::memory::faults::Restart;
use crate::node::memory::server::Shared;
use crate::node::{Fault, FaultKind};

/// One node of a [`Cluster`](super::Cluster). Clones are the same node.
///
/// ```
/// # futures::executor::block_on(async {
/// use quorumlock::FaultKind;
/// use quorumlock::testing::Cluster;
///
/// let cluster = Cluster::new(5);
/// cluster.node(0).hang();
/// cluster.node(1).fail_with(FaultKind::Loading);
/// let guard = cluster.client().lock("job").acquire().await.unwrap();
/// assert!(guard.is_held());
/// assert_eq!(cluster.copies("job"), 3);
/// # });
/// ```
///
/// ```
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::testing::{Clock, Cluster};
/// use quorumlock::{AcquireError, FaultKind};
///
/// let clock = Clock::new();
/// let cluster = Cluster::with_clock(3, &clock);
/// let (client, node) = (cluster.client(), cluster.node(0));
/// node.delay(Duration::ZERO);
/// let guard = client.lock("job").auto_extend(false).acquire().await?;
/// assert_eq!(node.keys(), ["quorumlock:{job}"]);
/// node.wipe();
/// assert!(node.keys().is_empty());
/// guard.release().await?;
///
/// // Each of these leaves two of three nodes, which are enough.
/// node.refuse();
/// node.heal();
/// node.fail_next(FaultKind::Busy, 1);
/// client.lock("job").acquire().await?.release().await?;
/// node.kill();
/// client.lock("job").acquire().await?.release().await?;
/// node.restart_with_data();
/// client.lock("job").acquire().await?.release().await?;
/// node.restart_empty();
/// client.lock("job").acquire().await?.release().await?;
/// node.hang();
/// client.lock("job").acquire().await?.release().await?;
/// node.resume();
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) server: Shared,
    pub(super) clock: Clock,
}

impl Node {
    /// It takes requests in and answers none, as a process that was stopped.
    pub fn hang(&self) {
        self.server.lock().hang(self.clock.now());
    }

    /// It answers again, first what it took in while it hung.
    pub fn resume(&self) {
        self.server.lock().resume(self.clock.now());
    }

    /// It refuses new connections; those that are there stay.
    pub fn refuse(&self) {
        self.server.lock().refuse(true);
    }

    /// Its process ends, and with it every connection. New ones are refused until it is started
    /// by [`Node::restart_empty`] or [`Node::restart_with_data`].
    pub fn kill(&self) {
        self.server.lock().kill(self.clock.now());
    }

    /// Its process ends and starts again without its data. It has no vote until the setting
    /// `restart_delay` has passed, unless the setting `restart_guard` is off.
    pub fn restart_empty(&self) {
        let now = self.clock.now();
        self.server.lock().restart(Restart::Empty, now);
    }

    /// Its process ends and starts again with its data. As for its vote see
    /// [`Node::restart_empty`].
    pub fn restart_with_data(&self) {
        let now = self.clock.now();
        self.server.lock().restart(Restart::WithData, now);
    }

    /// Its data is gone (`FLUSHALL`); its process and connections stay.
    pub fn wipe(&self) {
        self.server.lock().wipe(self.clock.now());
    }

    /// A request and its answer take so long to cross the network, each.
    pub fn delay(&self, latency: Duration) {
        self.server.lock().set_latency(latency, latency);
    }

    /// Every request gets this for an answer until [`Node::heal`].
    pub fn fail_with(&self, kind: FaultKind) {
        self.fail_next(kind, u64::MAX);
    }

    /// The next `count` requests get this for an answer.
    pub fn fail_next(&self, kind: FaultKind, count: u64) {
        let fault = Fault::new(kind, "as the test says");
        self.server.lock().fail(fault, count);
    }

    /// It answers, takes connections, and does so at once. What it has lost stays lost.
    pub fn heal(&self) {
        let mut server = self.server.lock();
        server.stop_failing();
        server.refuse(false);
        server.set_latency(Duration::ZERO, Duration::ZERO);
        server.set_service(Duration::ZERO);
        server.resume(self.clock.now());
    }

    /// The keys it has, as text, but for the marker that each node carries, and the fencing
    /// counters, which outlive their locks.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let names = self
            .read(|key, _| (!key.ends_with(MARKER) && !key.ends_with(COUNTER)).then(|| text(key)));
        names.into_iter().flatten().collect()
    }

    /// The owner token under the key of `resource`, whatever the prefix.
    pub(super) fn owner(&self, resource: &[u8]) -> Option<Vec<u8>> {
        let ending = key::lock_key("", resource);
        let owners = self.read(|key, value| key.ends_with(&ending).then(|| value.to_vec()));
        owners.into_iter().flatten().next()
    }

    fn read<T>(&self, look: impl Fn(&[u8], &[u8]) -> T) -> Vec<T> {
        self.server.lock().look(self.clock.now(), look)
    }
}

/// How the name of every marker ends.
const MARKER: &[u8] = b"since";

/// How the name of every fencing counter ends.
const COUNTER: &[u8] = b":fence";

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
