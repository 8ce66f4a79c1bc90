//! A clock that stands still until a test moves it.

use std::time::Duration;

use crate::clock::{Instant, ManualClock};

/// The clock of a [`Cluster`](super::Cluster), its clients and its nodes. Clones show one time.
///
/// ```
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::testing::{Clock, Cluster};
///
/// let clock = Clock::new();
/// let client = Cluster::with_clock(5, &clock).client();
/// let guard = client.lock("job").auto_extend(false).acquire().await.unwrap();
/// clock.advance(guard.remaining() - Duration::from_nanos(1));
/// assert!(guard.is_held());
/// clock.advance(Duration::from_nanos(1));
/// assert!(!guard.is_held());
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Clock {
    pub(super) hands: ManualClock,
}

/// What it shows at first. Not zero, so that "before" has room.
const START: Instant = Instant::from_nanos(1_000_000_000);

impl Clock {
    /// A clock that stands still.
    ///
    /// ```
    /// use std::time::Duration;
    /// use quorumlock::testing::Clock;
    ///
    /// let clock = Clock::new();
    /// clock.advance(Duration::from_secs(3));
    /// assert_eq!(clock.elapsed(), Duration::from_secs(3));
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Clock {
            hands: ManualClock::new(START),
        }
    }

    /// Moves it on. What falls due meanwhile happens late, as after a suspend: move in small
    /// steps where extensions are to be sent in time.
    pub fn advance(&self, by: Duration) {
        self.hands.set(self.hands.now().after(by));
    }

    pub(super) fn start() -> Instant {
        START
    }

    /// The time that it has been moved on by in all.
    ///
    /// ```
    /// use std::time::Duration;
    /// let clock = quorumlock::testing::Clock::new();
    /// clock.advance(Duration::from_secs(2));
    /// assert_eq!(clock.elapsed(), Duration::from_secs(2));
    /// ```
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.hands.now().since(START)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}
