//! The clock that leases are measured with.
//!
//! On Linux and Android it is `CLOCK_BOOTTIME`, which counts the time that the machine sleeps. A
//! lease runs out on the nodes while a laptop is shut, so a clock that stands still meanwhile
//! (`std::time::Instant`, `tokio::time::Instant`) would call it held. Elsewhere it is
//! `std::time::Instant`: on Windows that counts a suspend, on macOS it does not, and there the
//! fencing of the resource is the only guard after a suspend. No local clock counts the time that
//! a virtual machine stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// A moment on the boot-time clock, in nanoseconds. Never a wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Instant(u64);

impl Instant {
    /// The far end of the clock: 584 years after boot.
    pub(crate) const FAR: Instant = Instant(u64::MAX);

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// `self + span`, and the far end where that does not fit.
    pub(crate) fn after(self, span: Duration) -> Self {
        Instant(self.0.saturating_add(nanos(span)))
    }

    /// `self - span`, and the start of the clock where that does not fit.
    pub(crate) fn before(self, span: Duration) -> Self {
        Instant(self.0.saturating_sub(nanos(span)))
    }

    /// The last multiple of `step` up to `self`; `self` where `step` is zero.
    pub(crate) fn floor(self, step: Duration) -> Self {
        let past = self.0.checked_rem(nanos(step)).unwrap_or(0);
        Instant(self.0 - past)
    }

    /// The time from `earlier` to `self`; zero where `earlier` is the later one.
    pub(crate) fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A span in nanoseconds, cut at what 64 bits hold.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Where the present moment comes from: the machine, or a test.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The boot-time clock of the machine.
    Boot,
    /// A clock that stands still until somebody moves it.
    #[cfg_attr(not(any(test, feature = "test-util")), allow(dead_code))]
    Manual(ManualClock),
}

/// The hands of a clock that a test moves.
#[derive(Clone, Debug)]
pub(crate) struct ManualClock(Arc<Hands>);

#[derive(Debug)]
struct Hands {
    nanos: AtomicU64,
    moved: watch::Sender<()>,
}

#[cfg_attr(not(any(test, feature = "test-util")), allow(dead_code))]
impl ManualClock {
    pub(crate) fn new(start: Instant) -> Self {
        ManualClock(Arc::new(Hands {
            nanos: AtomicU64::new(start.0),
            moved: watch::Sender::new(()),
        }))
    }

    pub(crate) fn now(&self) -> Instant {
        Instant(self.0.nanos.load(Ordering::SeqCst))
    }

    pub(crate) fn set(&self, moment: Instant) {
        self.0.nanos.store(moment.0, Ordering::SeqCst);
        self.0.moved.send_replace(());
    }

    /// Tells of every move, to each that asked: several clients may live by one clock.
    pub(crate) fn moves(&self) -> watch::Receiver<()> {
        self.0.moved.subscribe()
    }
}

impl Clock {
    /// The present moment.
    pub(crate) fn now(&self) -> Instant {
        match self {
            Clock::Boot => Instant(boot_nanos()),
            Clock::Manual(hands) => hands.now(),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_nanos() -> u64 {
    use std::sync::OnceLock;
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    // One second in, so that "before" has room below the first reading.
    nanos(ORIGIN.get_or_init(std::time::Instant::now).elapsed() + Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_runs_forward() {
        let clock = Clock::Boot;
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(first.as_nanos() > 0);
    }

    #[test]
    fn sums_stop_at_the_ends_instead_of_wrapping() {
        assert_eq!(Instant::FAR.after(Duration::MAX), Instant::FAR);
        assert_eq!(Instant::from_nanos(5).since(Instant::FAR), Duration::ZERO);
    }
}
