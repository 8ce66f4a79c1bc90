//! The lock on one resource.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing::{Instrument, warn};

use crate::config::{ConfigError, check_resource};
use crate::coordinator::Secret;
use crate::engine::Core;
use crate::error::{AcquireError, Loss, Printable, Released, RunError};
use crate::guard::{Guard, Held};
use crate::key;
use crate::queue::{Spec, Terms};
use crate::quorum::Wait;

mod claim;
mod notice;

/// The lock on one resource, with the settings it is used with. Holds nothing by itself.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::{AcquireError, Client};
///
/// let client = Client::in_memory(5);
/// let lock = client.lock("seat/12a").ttl(Duration::from_secs(5));
/// let guard = lock.acquire().await?;
/// assert!(matches!(lock.try_acquire().await, Err(AcquireError::Contended(_))));
/// guard.release().await?;
/// assert!(lock.try_acquire().await.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::{Client, Loss};
///
/// let lock = Client::in_memory(5).lock("job").ttl(Duration::from_secs(2)).auto_extend(false);
/// assert_eq!(lock.resource(), b"job");
/// let patient = lock.clone().wait_forever();
/// let hasty = lock.wait(Duration::from_millis(10)).max_hold(Duration::from_millis(50));
/// let guard = hasty.acquire().await?;
/// assert!(hasty.acquire().await.is_err());
/// assert_eq!(guard.lost().await, Loss::MaxHold);
/// assert!(patient.acquire().await?.is_held());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone)]
pub struct Lock {
    core: Arc<Core>,
    resource: Arc<[u8]>,
    ttl: Option<Duration>,
    wait: Option<Wait>,
    auto_extend: Option<bool>,
    max_hold: Option<Duration>,
    /// Made at first use.
    spec: OnceLock<Result<Arc<Spec>, ConfigError>>,
}

impl Lock {
    pub(crate) fn new(core: Arc<Core>, resource: &[u8]) -> Self {
        Lock {
            core,
            resource: Arc::from(resource),
            ttl: None,
            wait: None,
            auto_extend: None,
            max_hold: None,
            spec: OnceLock::new(),
        }
    }

    /// How long the lease is good for without an extension: instead of the setting `ttl`, in
    /// whole milliseconds, no longer than `max_ttl`.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self.changed()
    }

    /// How long [`Lock::acquire`] waits: instead of the setting `wait`. Independent of the TTL.
    /// Zero makes one round, as [`Lock::try_acquire`] does.
    #[must_use]
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = Some(Wait::For(limit));
        self.changed()
    }

    /// [`Lock::acquire`] waits until it has the lock.
    #[must_use]
    pub fn wait_forever(mut self) -> Self {
        self.wait = Some(Wait::Forever);
        self.changed()
    }

    /// Whether the guard extends itself: instead of the setting `auto_extend`.
    #[must_use]
    pub fn auto_extend(mut self, yes: bool) -> Self {
        self.auto_extend = Some(yes);
        self.changed()
    }

    /// The longest time that the guard may hold: instead of the setting `max_hold`.
    #[must_use]
    pub fn max_hold(mut self, limit: Duration) -> Self {
        self.max_hold = Some(limit);
        self.changed()
    }

    /// What it locks.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    fn changed(mut self) -> Self {
        self.spec = OnceLock::new();
        self
    }

    /// Waits until the lock is ours, for as long as the setting `wait` says, and returns the
    /// guard that holds it. Tasks of one client are served in the order in which they came.
    ///
    /// For a single try see [`Lock::try_acquire`]; for work that must stop when the lock is lost
    /// see [`Lock::run`].
    ///
    /// # Errors
    /// [`AcquireError::Contended`] somebody had it all the time; [`AcquireError::Unavailable`] no
    /// quorum answered; [`AcquireError::Rejected`] too many nodes will not serve us, told at
    /// once; [`AcquireError::TooSlow`] the grant came too late to be of use;
    /// [`AcquireError::Invalid`] a setting of this lock; [`AcquireError::Closed`]. Nothing is
    /// held then, and what was set is being deleted.
    ///
    /// # Cancel safety
    /// Dropping the future ends the acquisition. What it has set by then is deleted on every
    /// node, also where the answer was still under way.
    ///
    /// # Round trips
    /// One when the lock is free: all nodes are asked at once, and the quorum-th grant decides. A
    /// second one when the fencing counters of a quorum do not agree, which brings them together.
    /// None when it is handed on by a guard of the same client. While somebody else holds it, two
    /// to find that out and to listen, and none until the nodes tell that it is free; where they
    /// cannot tell, one after each delay of `retry.delay`.
    ///
    /// # Guarantee
    /// Nobody else holds the lock until [`Guard::remaining`] is over, on the boot-time clock, as
    /// long as clocks run apart by less than the drift allowance. A process that stands still may
    /// wake up after that: check [`Guard::is_held`] before each step that matters.
    ///
    /// Source: the Redlock page, steps 1 to 5; we part from it in that the key is deleted on
    /// every node whose outcome is unknown, too, and in that each round has a token of its own.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        let wait = self.wait.unwrap_or(self.core.settings().wait);
        self.claim(wait, None).await
    }

    /// Makes one round, whatever the setting `wait`, and returns the guard if the lock was free.
    ///
    /// # Errors
    /// As for [`Lock::acquire`], within `node_timeout`.
    ///
    /// # Cancel safety
    /// As for [`Lock::acquire`].
    ///
    /// # Round trips
    /// As for [`Lock::acquire`]; under `fencing = false` two when somebody else holds the lock, to
    /// learn for how long.
    pub async fn try_acquire(&self) -> Result<Guard, AcquireError> {
        self.claim(Wait::For(Duration::ZERO), None).await
    }

    /// Takes over the lease that `secret` proves, in one round.
    pub(crate) async fn adopt(&self, secret: Secret) -> Result<Guard, AcquireError> {
        self.claim(Wait::For(Duration::ZERO), Some(secret)).await
    }

    /// Acquires the lock, runs `work` under it, and releases it.
    ///
    /// `work` gets a [`Held`] to look at, and is dropped at its next `await` when the lock is
    /// lost: what must not run without the lock belongs into it.
    ///
    /// # Errors
    /// [`RunError::Acquire`] the work never began; [`RunError::Work`] its own error;
    /// [`RunError::Lost`] the lock was lost while it ran, with its output if it had one by then.
    /// A release that fails is logged, and never hides what the work has returned.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases the lock.
    ///
    /// # Round trips
    /// Those of [`Lock::acquire`], and one for the release.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let lock = Client::in_memory(5).lock("report");
    /// let pages = lock.run(async |held| {
    ///     assert!(held.is_held());
    ///     Ok::<_, std::io::Error>(12)
    /// });
    /// assert_eq!(pages.await.unwrap(), 12);
    /// # });
    /// # }
    /// ```
    pub async fn run<T, E, F, W>(&self, work: F) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(Held) -> W,
        W: Future<Output = Result<T, E>>,
    {
        let span = claim::run_span(&self.resource);
        let outcome = self.run_traced(work).instrument(span.clone()).await;
        claim::record_run(&span, &outcome);
        outcome
    }

    async fn run_traced<T, E, F, W>(&self, work: F) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(Held) -> W,
        W: Future<Output = Result<T, E>>,
    {
        let guard = self.acquire().await.map_err(RunError::Acquire)?;
        let lost = guard.lost();
        let work = std::pin::pin!(work(guard.held()));
        let (output, loss) = match futures::future::select(lost, work).await {
            futures::future::Either::Left((loss, _work)) => (None, Some(loss)),
            futures::future::Either::Right((output, _lost)) => (Some(output), guard.loss()),
        };
        if let Some(loss) = loss {
            return Err(RunError::Lost { loss, output });
        }
        match guard.release().await {
            Ok(Released::InTime) => {}
            Ok(Released::AlreadyLost(loss)) => return Err(RunError::Lost { loss, output }),
            Err(error) => {
                warn!(resource = %Printable(&self.resource), %error, "released without a quorum");
            }
        }
        match output {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(RunError::Work(error)),
            // Without an output there was a loss.
            None => Err(RunError::Lost {
                loss: Loss::Expired,
                output: None,
            }),
        }
    }

    fn spec(&self) -> Result<Spec, ConfigError> {
        check_resource(&self.resource)?;
        let prefix = &self.core.settings().prefix;
        Ok(Spec {
            resource: Arc::clone(&self.resource),
            key: key::lock_key(prefix, &self.resource).into(),
            terms: self.terms()?,
        })
    }

    /// The client's terms, or this lock's own, checked against each other.
    fn terms(&self) -> Result<Arc<Terms>, ConfigError> {
        if (self.ttl, self.auto_extend, self.max_hold) == (None, None, None) {
            return self.core.terms();
        }
        let settings = self.core.settings();
        let auto_extend = self.auto_extend.unwrap_or(settings.auto_extend);
        let (timing, extend_every) = settings.terms(self.ttl, auto_extend)?;
        Ok(Arc::new(Terms {
            timing,
            retry: settings.retry,
            extend_every,
            max_hold: self.max_hold.or(settings.max_hold),
            cohort: settings.cohort,
        }))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("resource", &format_args!("{}", Printable(&self.resource)))
            .finish_non_exhaustive()
    }
}
