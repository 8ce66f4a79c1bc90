//! What all clones of a client share: the settings, and the engine once it runs.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::{Handle, MakeNodes, Setup};
use crate::clock::Clock;
use crate::config::{ConfigError, Settings};
use crate::coordinator::{Counters, Rules};
use crate::error::AcquireError;
use crate::node::inspect::{Inspector, ServerInspector};
use crate::node::survey::Surveyor;
use crate::queue::Terms;

/// Starts an engine: on a thread, or in a simulation that runs it itself.
pub(crate) type Start = dyn Fn(Setup) -> io::Result<Handle> + Send + Sync;

/// Where the nodes come from, and by which clock they live.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) clock: Clock,
    /// Looks at the keys of the nodes, where these are no servers that the settings name.
    pub(crate) inspector: Option<Arc<dyn Inspector>>,
    pub(crate) nodes: Arc<MakeNodes>,
    pub(crate) start: Arc<Start>,
    /// Looks at the nodes, for `check`.
    pub(crate) surveyor: Arc<Surveyor>,
    /// How the nodes are called, in their order.
    pub(crate) names: Arc<[String]>,
}

impl Source {
    /// Nodes under an engine on a thread of its own.
    pub(crate) fn threaded(
        clock: Clock,
        nodes: Arc<MakeNodes>,
        surveyor: Arc<Surveyor>,
        names: Vec<String>,
    ) -> Self {
        let start = Arc::new(super::start);
        Source {
            clock,
            inspector: None,
            nodes,
            start,
            surveyor,
            names: names.into(),
        }
    }
}

/// The shared part of a client.
pub(crate) struct Core {
    settings: Arc<Settings>,
    source: Source,
    engine: Mutex<Option<Handle>>,
    closed: AtomicBool,
    terms: OnceLock<Result<Arc<Terms>, ConfigError>>,
}

impl Core {
    pub(crate) fn new(settings: Settings, source: Source) -> Self {
        Core {
            settings: Arc::new(settings),
            source,
            engine: Mutex::new(None),
            closed: AtomicBool::new(false),
            terms: OnceLock::new(),
        }
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// What looks at the keys of the nodes, beside the engine.
    pub(crate) fn inspector(&self) -> Arc<dyn Inspector> {
        if let Some(inspector) = &self.source.inspector {
            return Arc::clone(inspector);
        }
        let node_timeout = self
            .settings
            .timing(None)
            .map(|timing| timing.node_timeout());
        let node_timeout = node_timeout.unwrap_or(Duration::ZERO);
        let targets = self.settings.targets();
        Arc::new(ServerInspector::new(targets, node_timeout))
    }

    /// How the nodes are called, in their order.
    pub(crate) fn node_names(&self) -> Vec<String> {
        self.source.names.to_vec()
    }

    /// What looks at the nodes, and by which clock.
    pub(crate) fn surveyor(&self) -> (Arc<Surveyor>, Clock) {
        (Arc::clone(&self.source.surveyor), self.source.clock.clone())
    }

    /// The terms of every lock that has no settings of its own.
    pub(crate) fn terms(&self) -> Result<Arc<Terms>, ConfigError> {
        let make = || {
            let settings = &self.settings;
            let (timing, extend_every) = settings.terms(None, settings.auto_extend)?;
            Ok(Arc::new(Terms {
                timing,
                retry: settings.retry,
                extend_every,
                max_hold: settings.max_hold,
                cohort: settings.cohort,
            }))
        };
        self.terms.get_or_init(make).clone()
    }

    /// The engine, started if this process has none yet: at the first lock, after a fork, and if
    /// its thread has died.
    pub(crate) fn engine(&self) -> Result<Handle, AcquireError> {
        if self.is_closed() {
            return Err(AcquireError::Closed);
        }
        let mut slot = self.slot();
        if let Some(handle) = &*slot
            && handle.is_of_this_process()
            && !handle.is_closed()
        {
            return Ok(handle.clone());
        }
        let handle = self
            .start()
            .map_err(|error| AcquireError::Thread(Arc::new(error)))?;
        Ok(slot.insert(handle).clone())
    }

    /// The engine that runs, if one does.
    pub(crate) fn running(&self) -> Option<Handle> {
        let slot = self.slot();
        let usable = |handle: &&Handle| handle.is_of_this_process() && !handle.is_closed();
        slot.as_ref().filter(usable).cloned()
    }

    /// No engine from now on. The one that runs is returned, to be told.
    pub(crate) fn close(&self) -> Option<Handle> {
        self.closed.store(true, Ordering::SeqCst);
        self.slot().take()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn slot(&self) -> MutexGuard<'_, Option<Handle>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> io::Result<Handle> {
        let settings = &self.settings;
        let node_timeout = settings.timing(None).map(|timing| timing.node_timeout());
        let node_timeout = node_timeout.unwrap_or(Duration::ZERO);
        (self.source.start)(Setup {
            clock: self.source.clock.clone(),
            rules: Rules {
                guard: settings.guard_mode(),
                restart_delay: settings.restart_delay,
                patience: node_timeout,
                drift: settings.drift,
                counters: settings.fencing.then(|| Counters {
                    retention: settings.fence_retention,
                    max_ttl: settings.max_ttl,
                    block: u64::from(settings.cohort.max_handoffs) + 1,
                }),
            },
            nodes: Arc::clone(&self.source.nodes),
            drain: node_timeout.saturating_mul(2).max(Duration::from_secs(1)),
        })
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}
