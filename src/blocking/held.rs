//! The view of a hold whose calls block.

use std::time::Duration;

use super::wait::wait_for;
use crate::error::Loss;
use crate::guard;
use crate::quorum::FencingToken;

/// A look at a held lock, for the work that runs under it, on any thread. Keeps nothing alive.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use std::time::Duration;
/// use quorumlock::{Loss, blocking::Client};
///
/// let guard = Client::in_memory(5).lock("job").acquire().unwrap();
/// let held = guard.held();
/// // A thread that stops the work when the lock is lost: here it is released.
/// let watch = std::thread::spawn(move || held.wait_lost(Duration::MAX));
/// guard.release().unwrap();
/// assert_eq!(watch.join().unwrap(), Some(Loss::Released));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Held {
    held: guard::Held,
}

impl Held {
    /// What is locked.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert_eq!(guard.held().resource(), b"job");
    /// # }
    /// ```
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        self.held.resource()
    }

    /// As [`Guard::fencing_token`](super::Guard::fencing_token).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert_eq!(guard.held().fencing_token(), guard.fencing_token());
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.held.fencing_token()
    }

    /// As [`Guard::is_held`](super::Guard::is_held).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert!(guard.held().is_held());
    /// # }
    /// ```
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.is_held()
    }

    /// As [`Guard::remaining`](super::Guard::remaining).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert!(!guard.held().remaining().is_zero());
    /// # }
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.held.remaining()
    }

    /// As [`Guard::wait_lost`](super::Guard::wait_lost).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use std::time::Duration;
    ///
    /// let guard = quorumlock::blocking::Client::in_memory(3).lock("job").acquire().unwrap();
    /// assert_eq!(guard.held().wait_lost(Duration::ZERO), None);
    /// # }
    /// ```
    #[must_use = "nothing is known of the lock unless it is looked at"]
    pub fn wait_lost(&self, limit: Duration) -> Option<Loss> {
        wait_for(self.held.lost(), limit)
    }
}

impl From<guard::Held> for Held {
    fn from(held: guard::Held) -> Self {
        Held { held }
    }
}
