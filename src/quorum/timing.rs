//! TTL, drift allowance and validity (P4), in checked integers.
//!
//! ```text
//!  started            decision                          deadline        key gone
//!     ├──── elapsed ─────┤─────────── validity ────────────┤── allowance ──┤
//!     └─────────────────────────────── TTL ────────────────────────────────┘
//! ```
//!
//! The deadline is fixed by the round's start, so neither a late reply nor a slow decision can
//! lengthen a lease.

use std::time::Duration;

use crate::clock::Instant;

/// A billion: the unit of [`Drift::factor`], so that no floating point takes part.
const BILLION: u128 = 1_000_000_000;

/// How far the clocks of nodes and holder may part over one TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drift {
    /// The rate, in billionths: 10,000,000 is 1 %.
    factor: u32,
    /// What is added whatever the TTL: the nodes round expiry to whole milliseconds.
    margin: Duration,
}

impl Drift {
    /// A factor of 0.01 is 1 %. Rounded up to a billionth, against the holder.
    ///
    /// `None` unless the factor is a number in 0 ..= 1.
    pub(crate) fn new(factor: f64, margin: Duration) -> Option<Self> {
        if !(0.0..=1.0).contains(&factor) {
            return None;
        }
        // In 0 ..= 10^9, so the cast is exact.
        let factor = (factor * 1e9).ceil() as u32;
        Some(Drift { factor, margin })
    }

    /// ⌈TTL × factor⌉ + margin, in nanoseconds; rounded up, against the holder.
    pub(crate) fn allowance(&self, ttl: Duration) -> Duration {
        let share = (ttl.as_nanos() * u128::from(self.factor)).div_ceil(BILLION);
        let share = u64::try_from(share).map_or(Duration::MAX, Duration::from_nanos);
        share.saturating_add(self.margin)
    }
}

/// Why times do not fit together. The caller knows which settings they came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingError {
    /// The TTL is zero, no whole number of milliseconds, or over what a node can store.
    Ttl,
    /// Nothing is left of the TTL after the drift allowance.
    NoValidity { allowance: Duration },
    /// One round may last longer than what a prompt grant is good for.
    NodeTimeout { validity: Duration },
    /// No grant can ever be as good as `min_validity`.
    MinValidity { validity: Duration },
}

/// The times of one lock, checked against each other once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Timing {
    ttl: Duration,
    allowance: Duration,
    node_timeout: Duration,
    min_validity: Duration,
}

impl Timing {
    /// The longest TTL a lock may have at all: ten years.
    pub(crate) const LONGEST_TTL: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

    /// Checks that the times leave a holder something to act in.
    ///
    /// # Errors
    /// [`TimingError`] says which relation does not hold.
    pub(crate) fn new(
        ttl: Duration,
        drift: Drift,
        node_timeout: Duration,
        min_validity: Duration,
    ) -> Result<Self, TimingError> {
        let whole = ttl.subsec_nanos().is_multiple_of(1_000_000);
        if ttl.is_zero() || !whole || ttl > Self::LONGEST_TTL {
            return Err(TimingError::Ttl);
        }
        let allowance = drift.allowance(ttl);
        let validity = ttl.saturating_sub(allowance);
        if validity.is_zero() {
            return Err(TimingError::NoValidity { allowance });
        }
        if node_timeout.is_zero() || node_timeout >= validity {
            return Err(TimingError::NodeTimeout { validity });
        }
        if min_validity >= validity {
            return Err(TimingError::MinValidity { validity });
        }
        Ok(Timing {
            ttl,
            allowance,
            node_timeout,
            min_validity,
        })
    }

    /// How long the key lives on a node: what goes out as `PX`.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// [`Timing::ttl`] in whole milliseconds.
    pub(crate) fn ttl_millis(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }

    /// One node's budget in one round.
    pub(crate) fn node_timeout(&self) -> Duration {
        self.node_timeout
    }

    /// The least validity worth having.
    pub(crate) fn min_validity(&self) -> Duration {
        self.min_validity
    }

    /// The whole validity that a grant or an extension gives, if it took no time.
    pub(crate) fn whole(&self) -> Duration {
        self.ttl.saturating_sub(self.allowance)
    }

    /// The end of validity of what was asked for at `started`.
    pub(crate) fn deadline(&self, started: Instant) -> Instant {
        started.after(self.whole())
    }

    /// When a key asked for no later than `sent` has left every node, whatever their clocks do
    /// inside the allowance: a release is of no use after it.
    pub(crate) fn gone(&self, sent: Instant) -> Instant {
        sent.after(self.ttl.saturating_add(self.allowance))
    }

    /// What is left at `now` of a round begun at `started`: `None` if that is nothing, or less
    /// than is worth having.
    pub(crate) fn validity(&self, started: Instant, now: Instant) -> Option<Duration> {
        let left = self.deadline(started).since(now);
        (!left.is_zero() && left >= self.min_validity).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drift(factor: f64, margin: u64) -> Drift {
        Drift::new(factor, Duration::from_millis(margin)).unwrap()
    }

    #[test]
    fn one_percent_of_ten_seconds_is_a_hundred_milliseconds_and_two() {
        let allowance = drift(0.01, 2).allowance(Duration::from_secs(10));
        assert_eq!(allowance, Duration::from_millis(102));
    }

    #[test]
    fn a_share_below_a_nanosecond_counts_as_a_whole_one() {
        let allowance = drift(1e-9, 0).allowance(Duration::from_millis(1));
        assert_eq!(allowance, Duration::from_nanos(1));
    }

    #[test]
    fn drift_outside_zero_to_one_is_refused() {
        for factor in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Drift::new(factor, Duration::ZERO), None);
        }
    }

    #[test]
    fn each_relation_is_named_when_it_fails() {
        let ms = Duration::from_millis;
        let new = |ttl, node, min| Timing::new(ttl, drift(0.01, 2), node, min);
        assert_eq!(new(ms(0), ms(1), ms(0)), Err(TimingError::Ttl));
        assert_eq!(
            new(Duration::from_micros(1500), ms(1), ms(0)),
            Err(TimingError::Ttl)
        );
        assert!(matches!(
            new(ms(2), ms(1), ms(0)),
            Err(TimingError::NoValidity { .. })
        ));
        assert!(matches!(
            new(ms(100), ms(97), ms(0)),
            Err(TimingError::NodeTimeout { validity }) if validity == ms(97)
        ));
        assert!(matches!(
            new(ms(100), ms(10), ms(97)),
            Err(TimingError::MinValidity { .. })
        ));
        assert!(new(ms(100), ms(96), ms(96)).is_ok());
    }

    #[test]
    fn a_lease_lasts_ten_years_at_most() {
        let longest = Duration::from_secs(315_360_000);
        let new = |ttl| Timing::new(ttl, drift(0.0, 0), Duration::from_secs(1), Duration::ZERO);
        assert!(new(longest).is_ok());
        let longer = new(longest + Duration::from_millis(1));
        assert_eq!(longer, Err(TimingError::Ttl));
    }

    #[test]
    fn all_times_are_those_that_were_given() {
        let ms = Duration::from_millis;
        let timing = Timing::new(ms(1500), drift(0.01, 2), ms(50), ms(40)).unwrap();
        assert_eq!((timing.ttl(), timing.ttl_millis()), (ms(1500), 1500));
        assert_eq!(timing.node_timeout(), ms(50));
        assert_eq!(timing.min_validity(), ms(40));
        assert_eq!(timing.whole(), ms(1483));
        let at = |millis: u64| Instant::from_nanos(1_000_000 * millis);
        assert_eq!(timing.deadline(at(10)), at(1493));
        // Behind a node whose clock is slow by the allowance.
        assert_eq!(timing.gone(at(10)), at(1527));
    }

    #[test]
    fn validity_must_reach_min_validity() {
        let ms = Duration::from_millis;
        let timing = Timing::new(ms(100), drift(0.0, 0), ms(10), ms(40)).unwrap();
        let at = |millis: u64| Instant::from_nanos(1_000_000 * millis);
        assert_eq!(timing.validity(at(5), at(65)), Some(ms(40)));
        assert_eq!(timing.validity(at(5), at(66)), None);
    }

    proptest! {
        /// P4 over all sizes: never more than TTL − elapsed − allowance, no wrap, no panic.
        #[test]
        fn validity_is_never_too_long(
            ttl in 1..=10u64 * 365 * 24 * 3_600_000,
            factor in 0.0..=1.0f64,
            margin in any::<u64>(),
            node in any::<u64>(),
            min in any::<u64>(),
            started in any::<u64>(),
            elapsed in any::<u64>(),
        ) {
            let ttl = Duration::from_millis(ttl);
            let drift = Drift::new(factor, Duration::from_nanos(margin)).unwrap();
            let times = Timing::new(ttl, drift, Duration::from_nanos(node), Duration::from_nanos(min));
            // Half of all draws have no validity at all; those must be refused, not wrapped.
            let exact = ttl.as_nanos() as i128 - drift.allowance(ttl).as_nanos() as i128;
            prop_assert!(exact > 0 || times.is_err());
            if let Ok(timing) = times {
                let start = Instant::from_nanos(started);
                let now = start.after(Duration::from_nanos(elapsed));
                if let Some(left) = timing.validity(start, now) {
                    let truth = exact - now.since(start).as_nanos() as i128;
                    prop_assert!(left.as_nanos() as i128 <= truth);
                    prop_assert!(left.as_nanos() > 0);
                }
            }
        }

        /// The allowance covers the exact share, at every TTL.
        #[test]
        fn the_allowance_is_rounded_against_the_holder(ttl in 1..=u64::MAX, factor in 0u32..=1_000_000_000) {
            let drift = Drift { factor, margin: Duration::ZERO };
            let ttl = Duration::from_nanos(ttl);
            let allowance = drift.allowance(ttl).as_nanos();
            prop_assert!(allowance * BILLION >= ttl.as_nanos() * u128::from(factor));
            prop_assert!(allowance <= ttl.as_nanos());
        }
    }
}
