//! Wakes the engine at a moment of its clock.
//!
//! On Linux that is a timerfd of the boot-time clock: it goes off on resume for all that fell due
//! while the machine slept, which a timer of tokio sleeps through.

use tokio::sync::watch;

use crate::clock::{Clock, Instant, ManualClock};

/// An alarm that is set again and again.
pub(crate) struct Alarm {
    kind: Kind,
    clock: Clock,
    armed: Option<Instant>,
}

enum Kind {
    #[cfg(target_os = "linux")]
    Timerfd(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    Sleep,
    Manual(ManualClock, watch::Receiver<()>),
}

/// Where the machine's sleep cannot be slept through exactly, the clock is looked at this often.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

impl Alarm {
    /// An alarm of `clock`, inside a runtime.
    pub(crate) fn new(clock: Clock) -> Self {
        let kind = match &clock {
            Clock::Manual(hands) => Kind::Manual(hands.clone(), hands.moves()),
            Clock::Boot => Kind::boot(),
        };
        Alarm {
            kind,
            clock,
            armed: None,
        }
    }

    /// Sets the alarm to `next`. An earlier one that is set already stays: it wakes the engine
    /// for nothing, which is cheaper than a system call at every command. Says when it rings.
    pub(crate) fn arm(&mut self, next: Option<Instant>) -> Option<Instant> {
        let Some(next) = next.filter(|&next| self.armed.is_none_or(|armed| next < armed)) else {
            return self.armed;
        };
        self.armed = Some(next);
        #[cfg(target_os = "linux")]
        if let Kind::Timerfd(timer) = &self.kind
            && linux::set(timer, next).is_err()
        {
            self.kind = Kind::Sleep;
        }
        self.armed
    }

    /// Ends when the moment has come. Without one it never does.
    pub(crate) async fn ring(&mut self) {
        match &mut self.kind {
            #[cfg(target_os = "linux")]
            Kind::Timerfd(timer) => linux::expired(timer).await,
            Kind::Sleep => sleep(&self.clock, self.armed).await,
            Kind::Manual(hands, moves) => {
                while self.armed.is_none_or(|armed| hands.now() < armed) {
                    if moves.changed().await.is_err() {
                        return std::future::pending().await;
                    }
                }
            }
        }
        self.armed = None;
    }
}

async fn sleep(clock: &Clock, until: Option<Instant>) {
    let Some(until) = until else {
        return std::future::pending().await;
    };
    loop {
        let left = until.since(clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

impl Kind {
    #[cfg(target_os = "linux")]
    fn boot() -> Self {
        match linux::create() {
            Ok(timer) => Kind::Timerfd(timer),
            Err(error) => {
                tracing::warn!(%error, "no timerfd: after a suspend a loss is told up to 50 ms late");
                Kind::Sleep
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn boot() -> Self {
        Kind::Sleep
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    use crate::clock::Instant;

    pub(super) fn create() -> io::Result<AsyncFd<OwnedFd>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        // Deprecated for types that may close their descriptor while it is polled. An `OwnedFd`
        // does not; its successor is `unsafe`, which this crate forbids.
        #[allow(deprecated)]
        AsyncFd::new(timer)
    }

    pub(super) fn set(timer: &AsyncFd<OwnedFd>, moment: Instant) -> io::Result<()> {
        // Zero would disarm the timer.
        let nanos = moment.as_nanos().max(1);
        let once = Itimerspec {
            it_interval: spec(0),
            it_value: spec(nanos),
        };
        timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    fn spec(nanos: u64) -> Timespec {
        Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            // Below 10^9, so it fits.
            tv_nsec: (nanos % 1_000_000_000) as _,
        }
    }

    /// Ends when the timer has gone off.
    pub(super) async fn expired(timer: &AsyncFd<OwnedFd>) {
        loop {
            let Ok(mut ready) = timer.readable().await else {
                return std::future::pending().await;
            };
            let mut count = [0; 8];
            match rustix::io::read(timer.get_ref(), &mut count) {
                Ok(_) => return,
                Err(_) => ready.clear_ready(),
            }
        }
    }
}
