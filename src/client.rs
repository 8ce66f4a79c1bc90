//! The client: a set of nodes and its settings.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::config::{Config, ConfigError, Settings};
use crate::coordinator::Rules;
use crate::engine::{self, Command, Handle, Setup};
use crate::error::AcquireError;
use crate::key;
use crate::lock::Lock;
use crate::node::redis::{Manners, RedisNode};
use crate::node::{Inbox, Node};

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
    inner: Arc<Inner>,
}

struct Inner {
    settings: Arc<Settings>,
    source: Source,
    engine: Mutex<Option<Handle>>,
    closed: AtomicBool,
}

/// Makes the nodes and names their clock, once for each engine.
pub(crate) struct Source {
    pub(crate) clock: Clock,
    pub(crate) nodes: Arc<dyn Fn(Inbox, Clock) -> Vec<Box<dyn Node>> + Send + Sync>,
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
        let source = Source {
            clock: Clock::Boot,
            nodes: Arc::new(nodes),
        };
        Ok(Client::over(settings, source))
    }

    /// A client of whatever nodes `source` makes.
    pub(crate) fn over(settings: Settings, source: Source) -> Self {
        Client {
            inner: Arc::new(Inner {
                settings: Arc::new(settings),
                source,
                engine: Mutex::new(None),
                closed: AtomicBool::new(false),
            }),
        }
    }

    /// The lock on `resource`: any bytes or text but none, up to 64 KiB. Does no I/O.
    ///
    /// Two resources are the same if their bytes are: case and Unicode normal forms count.
    #[must_use]
    pub fn lock(&self, resource: impl AsRef<[u8]>) -> Lock {
        Lock::new(self.clone(), resource.as_ref())
    }

    /// Ends the client: releases what its guards hold, lets acquisitions that wait fail with
    /// [`AcquireError::Closed`], and waits for the nodes to confirm, for a second or two node
    /// timeouts at most. The guards hear [`Loss::Closed`](crate::Loss::Closed).
    ///
    /// # Errors
    /// How many releases no quorum has confirmed. Their keys run out with their TTL.
    ///
    /// # Cancel safety
    /// The client is closed from the first poll on; a drop only stops the waiting.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.inner.closed.store(true, Ordering::SeqCst);
        let handle = self.inner.slot().take();
        let Some(handle) = handle else {
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

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.inner.settings
    }

    /// The engine, started if this process has none.
    pub(crate) fn engine(&self) -> Result<Handle, AcquireError> {
        if self.inner.closed.load(Ordering::SeqCst) {
            return Err(AcquireError::Closed);
        }
        let mut slot = self.inner.slot();
        if let Some(handle) = &*slot
            && handle.is_of_this_process()
            && !handle.is_closed()
        {
            return Ok(handle.clone());
        }
        let handle = self
            .inner
            .start()
            .map_err(|error| AcquireError::Thread(Arc::new(error)))?;
        Ok(slot.insert(handle).clone())
    }
}

impl Inner {
    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Handle>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> std::io::Result<Handle> {
        let settings = &self.settings;
        let node_timeout = settings
            .timing(None)
            .map_or(Duration::ZERO, |timing| timing.node_timeout());
        let nodes = Arc::clone(&self.source.nodes);
        engine::start(Setup {
            clock: self.source.clock.clone(),
            rules: Rules {
                guard: settings.guard_mode(),
                restart_delay: settings.restart_delay,
            },
            nodes: Box::new(move |inbox, clock| nodes(inbox, clock)),
            drain: node_timeout.saturating_mul(2).max(Duration::from_secs(1)),
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("nodes", &self.inner.settings.node_names())
            .field("closed", &self.inner.closed.load(Ordering::SeqCst))
            .finish_non_exhaustive()
    }
}

/// Some releases were not confirmed before the client ended.
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
