//! The lock whose calls block.

use std::time::Duration;

use super::{Guard, Held, wait};
use crate::config::ConfigError;
use crate::error::{AcquireError, RunError};
use crate::lock;

/// The lock on one resource: [`quorumlock::Lock`](crate::Lock) with calls that block. Holds nothing
/// by itself.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # (|| {
/// use std::time::Duration;
/// use quorumlock::{AcquireError, blocking::Client};
///
/// let lock = Client::in_memory(5).lock("seat/12a").ttl(Duration::from_secs(5));
/// let guard = lock.acquire()?;
/// assert!(matches!(lock.try_acquire(), Err(AcquireError::Contended(_))));
/// guard.release()?;
/// assert!(lock.try_acquire().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(()) })().unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    lock: lock::Lock,
}

impl Lock {
    /// How long the lease is good for without an extension: [`Lock::ttl`](crate::Lock::ttl).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use quorumlock::blocking::Client;
    ///
    /// let lock = Client::in_memory(3).lock("job").ttl(Duration::from_secs(2));
    /// assert!(lock.acquire().unwrap().remaining() < Duration::from_secs(2));
    /// # }
    /// ```
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.lock.ttl(ttl).into()
    }

    /// How long [`Lock::acquire`] blocks, at most: [`Lock::wait`](crate::Lock::wait). Zero makes
    /// one round, as [`Lock::try_acquire`] does.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use quorumlock::{AcquireError, blocking::Client};
    ///
    /// let lock = Client::in_memory(3).lock("job").wait(Duration::from_millis(50));
    /// let guard = lock.acquire().unwrap();
    /// assert!(matches!(lock.acquire(), Err(AcquireError::Contended(_))));
    /// # drop(guard);
    /// # }
    /// ```
    #[must_use]
    pub fn wait(self, limit: Duration) -> Self {
        self.lock.wait(limit).into()
    }

    /// [`Lock::acquire`] blocks until it has the lock, or the client is closed.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use quorumlock::blocking::Client;
    ///
    /// let lock = Client::in_memory(3).lock("job").wait_forever();
    /// let guard = lock.acquire().unwrap();
    /// let next = std::thread::spawn(move || lock.acquire().unwrap());
    /// drop(guard);
    /// assert!(next.join().unwrap().is_held());
    /// # }
    /// ```
    #[must_use]
    pub fn wait_forever(self) -> Self {
        self.lock.wait_forever().into()
    }

    /// Whether the guard extends itself: [`Lock::auto_extend`](crate::Lock::auto_extend).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use quorumlock::{Loss, blocking::Client};
    ///
    /// let lock = Client::in_memory(3).lock("job").ttl(Duration::from_millis(200));
    /// let guard = lock.auto_extend(false).acquire().unwrap();
    /// assert_eq!(guard.wait_lost(Duration::from_secs(5)), Some(Loss::Expired));
    /// # }
    /// ```
    #[must_use]
    pub fn auto_extend(self, yes: bool) -> Self {
        self.lock.auto_extend(yes).into()
    }

    /// The longest time that the guard may hold: [`Lock::max_hold`](crate::Lock::max_hold).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use quorumlock::{Loss, blocking::Client};
    ///
    /// let lock = Client::in_memory(3).lock("job").max_hold(Duration::from_millis(100));
    /// let guard = lock.acquire().unwrap();
    /// assert_eq!(guard.wait_lost(Duration::from_secs(5)), Some(Loss::MaxHold));
    /// # }
    /// ```
    #[must_use]
    pub fn max_hold(self, limit: Duration) -> Self {
        self.lock.max_hold(limit).into()
    }

    /// What it locks.
    ///
    /// ```
    /// use quorumlock::blocking::Client;
    ///
    /// let client = Client::open(["redis://a"])?;
    /// assert_eq!(client.lock("job").resource(), b"job");
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        self.lock.resource()
    }

    /// How long before the end of validity a failed extension shows at the latest:
    /// [`Lock::notice`](crate::Lock::notice). Work that looks at [`Held::is_held`] more often than
    /// this can stop in time. Does no I/O.
    ///
    /// # Errors
    /// A setting of this lock that cannot be used.
    ///
    /// ```
    /// use std::time::Duration;
    /// use quorumlock::blocking::Client;
    ///
    /// let client = Client::open(["redis://127.0.0.1:1"])?;
    /// assert!(client.lock("job").notice()? > Duration::from_secs(6));
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn notice(&self) -> Result<Duration, ConfigError> {
        self.lock.notice()
    }

    /// Blocks until the lock is ours, for as long as the setting `wait` says, and returns the guard
    /// that holds it. Threads and tasks of one client are served in the order in which they came.
    ///
    /// For a single try see [`Lock::try_acquire`]; for work that is one closure see [`Lock::run`].
    ///
    /// # Errors
    /// Those of [`Lock::acquire`](crate::Lock::acquire): contended, unavailable, rejected, too slow,
    /// a setting that cannot be used, and [`AcquireError::Closed`], also where another thread closes
    /// the client meanwhile. Nothing is held then, and what was set is being deleted.
    ///
    /// # Guarantee
    /// Nobody else holds the lock until [`Guard::remaining`] is over, on the boot-time clock, as
    /// long as clocks run apart by less than the drift allowance. A process that stands still may
    /// wake up after that: check [`Guard::is_held`] before each step that matters.
    ///
    /// # Round trips
    /// One when the lock is free; the rest is as for [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # (|| {
    /// use quorumlock::blocking::Client;
    ///
    /// let guard = Client::in_memory(5).lock("nightly").acquire()?;
    /// assert!(guard.is_held());
    /// # Ok::<(), quorumlock::AcquireError>(()) })().unwrap();
    /// # }
    /// ```
    pub fn acquire(&self) -> Result<Guard, AcquireError> {
        wait(self.lock.acquire()).map(Guard::from)
    }

    /// Makes one round, whatever the setting `wait`, and returns the guard if the lock was free.
    ///
    /// # Errors
    /// As for [`Lock::acquire`], within `node_timeout`.
    ///
    /// # Round trips
    /// As for [`Lock::acquire`].
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use quorumlock::{AcquireError, blocking::Client};
    ///
    /// let lock = Client::in_memory(5).lock("nightly");
    /// let guard = lock.try_acquire().unwrap();
    /// assert!(matches!(lock.try_acquire(), Err(AcquireError::Contended(_))));
    /// # drop(guard);
    /// # }
    /// ```
    pub fn try_acquire(&self) -> Result<Guard, AcquireError> {
        wait(self.lock.try_acquire()).map(Guard::from)
    }

    /// Acquires the lock, runs `work` under it on this thread, and releases it. A `work` that panics
    /// releases it, too.
    ///
    /// Nothing stops `work` when the lock is lost: it must ask [`Held::is_held`] before each step
    /// that matters.
    ///
    /// # Errors
    /// [`RunError::Acquire`] the work never began; [`RunError::Work`] its own error;
    /// [`RunError::Lost`] the lock was lost while it ran, with what it has returned. A release that
    /// fails is logged, and never hides what the work has returned.
    ///
    /// # Round trips
    /// Those of [`Lock::acquire`], and one for the release.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use quorumlock::blocking::Client;
    ///
    /// let pages = Client::in_memory(5).lock("report").run(|held| {
    ///     let pages = (1..=12).take_while(|_page| held.is_held());
    ///     Ok::<_, std::io::Error>(pages.count())
    /// });
    /// assert_eq!(pages.unwrap(), 12);
    /// # }
    /// ```
    pub fn run<T, E, F>(&self, work: F) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(Held) -> Result<T, E>,
    {
        wait(self.lock.run(async |held| work(Held::from(held))))
    }
}

impl From<lock::Lock> for Lock {
    fn from(lock: lock::Lock) -> Self {
        Lock { lock }
    }
}
