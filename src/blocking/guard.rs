//! The guard whose calls block.

use std::time::Duration;

use super::Held;
use super::wait::{wait, wait_for};
use crate::error::{ExtendError, Loss, ReleaseError, Released};
use crate::guard;
use crate::quorum::FencingToken;
use crate::ticket::LeaseTicket;

/// A held lock: [`quorumlock::Guard`](crate::Guard) with calls that block.
///
/// It extends itself on the client's thread, whatever the thread that has it does. Dropping it
/// releases the lock, and does not block; [`Guard::release`] blocks, and says how it went.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # (|| {
/// use std::time::Duration;
/// use quorumlock::blocking::Client;
///
/// let guard = Client::in_memory(5).lock("ledger").acquire()?;
/// assert!(guard.is_held() && guard.remaining() > Duration::from_secs(9));
/// guard.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })().unwrap();
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    guard: guard::Guard,
}

impl Guard {
    /// What is locked.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert_eq!(guard.resource(), b"job");
    /// # }
    /// ```
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        self.guard.resource()
    }

    /// The number that tells this hold from all others of the resource, and is larger than that of
    /// every holder before: [`Guard::fencing_token`](crate::Guard::fencing_token). Does no I/O.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # (|| {
    /// use quorumlock::{blocking::Client, fence::Memory};
    ///
    /// let (lock, ledger) = (Client::in_memory(5).lock("ledger"), Memory::new());
    /// let stale = lock.acquire()?.fencing_token();
    /// let guard = lock.acquire()?;
    /// assert!(guard.fencing_token() > stale);
    /// assert!(ledger.write("ledger", guard.fencing_token(), || "ours").is_ok());
    /// assert!(ledger.write("ledger", stale, || "too late").is_err());
    /// # Ok::<(), quorumlock::AcquireError>(()) })().unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.guard.fencing_token()
    }

    /// Whether the lock is still ours, by the boot-time clock. Does no I/O and does not block: after
    /// a pause of any length the first call tells the truth.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use quorumlock::testing::{Clock, Cluster};
    /// use quorumlock::blocking::Client;
    ///
    /// let clock = Clock::new();
    /// let client = Client::from(Cluster::with_clock(3, &clock).client());
    /// let guard = client.lock("job").auto_extend(false).acquire().unwrap();
    /// assert!(guard.is_held());
    /// clock.advance(Duration::from_secs(10));
    /// assert!(!guard.is_held());
    /// # }
    /// ```
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.guard.is_held()
    }

    /// For how long yet, unless it is extended: zero once it is lost. Does no I/O.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use quorumlock::blocking::Client;
    ///
    /// let guard = Client::in_memory(3).lock("job").acquire().unwrap();
    /// // A TTL of 10 s, less 1 % and 2 ms.
    /// assert!(guard.remaining() <= Duration::from_millis(9_898));
    /// # }
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Why the lock is lost, if it is. Does no I/O and does not block.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use quorumlock::{Loss, blocking::Client};
    ///
    /// let client = Client::in_memory(3);
    /// let guard = client.lock("job").acquire().unwrap();
    /// assert_eq!(guard.loss(), None);
    /// client.close().unwrap();
    /// assert_eq!(guard.loss(), Some(Loss::Closed));
    /// # }
    /// ```
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.guard.loss()
    }

    /// Blocks until the lock is lost and says why, or returns nothing after `limit`, counted by the
    /// boot-time clock. [`Duration::MAX`] is no limit. The word comes no later than the end of
    /// validity, whether or not any node answers.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    /// use quorumlock::blocking::Client;
    ///
    /// let guard = Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert_eq!(guard.wait_lost(Duration::from_millis(10)), None);
    /// # }
    /// ```
    #[must_use = "nothing is known of the lock unless it is looked at"]
    pub fn wait_lost(&self, limit: Duration) -> Option<Loss> {
        wait_for(self.guard.lost(), limit)
    }

    /// A view of this hold that can be cloned and given to other threads. It holds nothing.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// let held = guard.held();
    /// assert!(held.is_held());
    /// drop(guard);
    /// assert!(!held.is_held());
    /// # }
    /// ```
    #[must_use]
    pub fn held(&self) -> Held {
        self.guard.held().into()
    }

    /// Asks the nodes for a full TTL from now, and blocks until a quorum has agreed. Not needed
    /// while the guard extends itself.
    ///
    /// # Errors
    /// [`ExtendError::Unconfirmed`] no quorum answered, and the old deadline stands;
    /// [`ExtendError::Lost`] the lock is not held any more.
    ///
    /// # Round trips
    /// One, after the one of an extension that is under way.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # (|| {
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// guard.extend()?;
    /// # Ok::<(), quorumlock::ExtendError>(()) })().unwrap();
    /// # }
    /// ```
    pub fn extend(&self) -> Result<(), ExtendError> {
        wait(self.guard.extend())
    }

    /// [`Guard::extend`] with another TTL. Never shortens.
    ///
    /// # Errors
    /// As for [`Guard::extend`], and [`ExtendError::Invalid`] for a TTL that cannot be used.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # (|| {
    /// use std::time::Duration;
    /// use quorumlock::blocking::Client;
    ///
    /// let guard = Client::in_memory(3).lock("job").acquire().unwrap();
    /// guard.extend_to(Duration::from_secs(40))?;
    /// assert!(guard.remaining() > Duration::from_secs(38));
    /// # Ok::<(), quorumlock::ExtendError>(()) })().unwrap();
    /// # }
    /// ```
    pub fn extend_to(&self, ttl: Duration) -> Result<(), ExtendError> {
        wait(self.guard.extend_to(ttl))
    }

    /// Lets go of the lock without releasing it: it stays held for [`Guard::remaining`], and whoever
    /// has the ticket can go on with [`Client::attach`](super::Client::attach). Asks no
    /// node.
    ///
    /// # Errors
    /// The reason, where the lock is lost already.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// let lock = quorumlock::blocking::Client::in_memory(3).lock("seat/12a");
    /// let ticket = lock.acquire().unwrap().detach().unwrap();
    /// assert_eq!(ticket.resource(), b"seat/12a");
    /// assert!(lock.try_acquire().is_err());
    /// # }
    /// ```
    pub fn detach(self) -> Result<LeaseTicket, Loss> {
        wait(self.guard.detach())
    }

    /// Releases the lock on all nodes, and blocks until a quorum has confirmed it, for
    /// `node_timeout` at most.
    ///
    /// # Errors
    /// [`ReleaseError::Unconfirmed`] no quorum answered in time. The release goes on in the
    /// background; at the latest the keys run out. A lock that was lost before is no error but
    /// [`Released::AlreadyLost`].
    ///
    /// # Round trips
    /// One. None if the lock is lost already.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # (|| {
    /// use quorumlock::{Released, blocking::Client};
    ///
    /// let guard = Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert_eq!(guard.release()?, Released::InTime);
    /// # Ok::<(), quorumlock::ReleaseError>(()) })().unwrap();
    /// # }
    /// ```
    pub fn release(self) -> Result<Released, ReleaseError> {
        wait(self.guard.release())
    }

    /// The same guard with async calls.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use quorumlock::blocking::{Client, wait};
    ///
    /// let client = Client::in_memory(3);
    /// let guard = client.lock("job").acquire().unwrap();
    /// let label = wait(client.as_async().label(guard.as_async())).unwrap();
    /// assert!(wait(label.write("since noon")) >= 2);
    /// # }
    /// ```
    pub fn as_async(&self) -> &guard::Guard {
        &self.guard
    }
}

impl From<guard::Guard> for Guard {
    fn from(guard: guard::Guard) -> Self {
        Guard { guard }
    }
}

impl From<Guard> for guard::Guard {
    fn from(guard: Guard) -> Self {
        guard.guard
    }
}
