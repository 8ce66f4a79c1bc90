//! How long a round takes as a rule: what delays between contenders are measured in (P12).

use std::time::Duration;

/// A running mean of the time from a round's first request to its decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip(Duration);

/// Nothing is gained from delays below this: contenders are no more apart than their threads.
const SHORTEST: Duration = Duration::from_micros(200);

/// One round weighs as much as this part of those before it.
const WEIGHT: u32 = 8;

impl Default for Trip {
    fn default() -> Self {
        Trip(Duration::from_millis(1))
    }
}

impl Trip {
    /// A round took so long.
    pub(crate) fn took(&mut self, time: Duration) {
        self.0 = self.0 - self.0 / WEIGHT + time / WEIGHT;
    }

    /// What to expect.
    pub(crate) fn mean(self) -> Duration {
        self.0.max(SHORTEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_it_is_the_last_round() {
        let mut trip = Trip::default();
        assert_eq!(trip.mean(), Duration::from_millis(1));
        trip.took(Duration::from_millis(9));
        assert_eq!(trip.mean(), Duration::from_millis(2));
    }

    #[test]
    fn it_follows_what_is_measured_and_has_a_floor() {
        let mut trip = Trip::default();
        (0..100).for_each(|_| trip.took(Duration::from_millis(10)));
        assert!(trip.mean().abs_diff(Duration::from_millis(10)) < Duration::from_micros(100));
        (0..200).for_each(|_| trip.took(Duration::from_micros(3)));
        assert_eq!(trip.mean(), SHORTEST);
    }
}
