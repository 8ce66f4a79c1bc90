//! A server's own wall clock: it may run fast or slow, and be set.

use std::time::Duration;

use crate::clock::Instant;

/// The wall clock of a server, in nanoseconds since 1970, as a function of the true time.
#[derive(Clone, Debug)]
pub(crate) struct Hands {
    /// From this true moment on …
    since: Instant,
    /// … it showed this, and has gone on from there …
    shown: u64,
    /// … faster by so many millionths.
    fast: i64,
}

/// What it shows at first: late in 2026. Any date does.
const START: u64 = 1_795_000_000_000_000_000;

impl Hands {
    pub(crate) fn new(now: Instant) -> Self {
        Hands {
            since: now,
            shown: START,
            fast: 0,
        }
    }

    /// What it shows at the true time `now`, in nanoseconds.
    pub(crate) fn at(&self, now: Instant) -> u64 {
        let passed = now.as_nanos().saturating_sub(self.since.as_nanos());
        let gained = i128::from(passed) * i128::from(self.fast) / 1_000_000;
        let shown = i128::from(self.shown) + i128::from(passed) + gained;
        u64::try_from(shown).unwrap_or(0)
    }

    /// In whole milliseconds, as expiry counts.
    pub(crate) fn millis(&self, now: Instant) -> u64 {
        self.at(now) / 1_000_000
    }

    /// In seconds and microseconds, as TIME answers.
    pub(crate) fn time(&self, now: Instant) -> (i64, i64) {
        let micros = i64::try_from(self.at(now) / 1_000).unwrap_or(i64::MAX);
        (micros / 1_000_000, micros % 1_000_000)
    }

    /// From `now` on it runs fast by `fast` millionths; slow where that is negative.
    pub(crate) fn run_fast(&mut self, fast: i64, now: Instant) {
        self.shown = self.at(now);
        self.since = now;
        self.fast = fast;
    }

    /// Sets it forward, or back.
    pub(crate) fn step(&mut self, by: Duration, forward: bool) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.shown = match forward {
            true => self.shown.saturating_add(by),
            false => self.shown.saturating_sub(by),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gains_and_is_set_and_goes_on() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut hands = Hands::new(at(1000));
        let first = hands.millis(at(1000));
        assert_eq!(hands.millis(at(2000)) - first, 1000);
        hands.run_fast(10_000, at(2000));
        assert_eq!(hands.millis(at(3000)) - first, 2010);
        hands.run_fast(-10_000, at(3000));
        assert_eq!(hands.millis(at(4000)) - first, 3000);
        hands.step(Duration::from_millis(500), true);
        assert_eq!(hands.millis(at(4000)) - first, 3500);
        hands.step(Duration::from_millis(700), false);
        assert_eq!(hands.millis(at(4000)) - first, 2800);
        assert_eq!(
            hands.time(at(4000)).0,
            (hands.millis(at(4000)) / 1000) as i64
        );
    }
}
