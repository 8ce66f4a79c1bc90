//! The delay between two rounds (P12).

use std::time::Duration;

/// How much of a delay is left to chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Jitter {
    /// Anything from nothing to the whole delay. Contenders that collided once part soonest.
    #[default]
    Full,
    /// At least half of the delay.
    Equal,
    /// None at all: for tests, and for one who knows to be alone.
    None,
}

/// Delays that double up to a limit. One value serves one acquisition.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    base: Duration,
    limit: Duration,
    jitter: Jitter,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(base: Duration, limit: Duration, jitter: Jitter) -> Self {
        Backoff {
            base,
            limit,
            jitter,
            failures: 0,
        }
    }

    /// The next delay. `chance` is one uniform draw over all of `u64`.
    pub(crate) fn next(&mut self, chance: u64) -> Duration {
        let factor = 1u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let whole = self.base.saturating_mul(factor).min(self.limit);
        self.failures = self.failures.saturating_add(1);
        match self.jitter {
            Jitter::None => whole,
            Jitter::Full => part(whole, chance),
            Jitter::Equal => whole / 2 + part(whole / 2, chance),
        }
    }
}

/// `chance / 2^64` of `whole`, in whole nanoseconds.
pub(crate) fn part(whole: Duration, chance: u64) -> Duration {
    let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
    // A product of two 64-bit numbers, shifted by 64, fits 64 bits.
    Duration::from_nanos(((u128::from(nanos) * u128::from(chance)) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn delays_double_up_to_the_limit() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(20), ms(100), Jitter::None);
        let delays: Vec<_> = (0..5).map(|_| backoff.next(0)).collect();
        assert_eq!(delays, [ms(20), ms(40), ms(80), ms(100), ms(100)]);
    }

    proptest! {
        #[test]
        fn no_delay_passes_the_limit(
            base in any::<u64>(), limit in any::<u64>(), chances in prop::collection::vec(any::<u64>(), 1..80),
        ) {
            let (base, limit) = (Duration::from_nanos(base), Duration::from_nanos(limit));
            for jitter in [Jitter::Full, Jitter::Equal, Jitter::None] {
                let mut backoff = Backoff::new(base, limit, jitter);
                for &chance in &chances {
                    let delay = backoff.next(chance);
                    prop_assert!(delay <= limit);
                }
            }
        }

        #[test]
        fn jitter_keeps_its_lower_bound(whole in 0..u64::MAX, chance in any::<u64>()) {
            let whole = Duration::from_nanos(whole);
            let equal = Backoff::new(whole, whole, Jitter::Equal).next(chance);
            prop_assert!(equal >= whole / 2);
            prop_assert!(part(whole, chance) <= whole);
            prop_assert_eq!(part(whole, 0), Duration::ZERO);
        }
    }
}
