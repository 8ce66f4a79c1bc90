//! A node's clock beside ours, from round trips that brought its time back. Pure.
//!
//! ```text
//!   us     sent ──────────────► received       the node showed T at some moment in between:
//!   node           T                           T − received ≤ offset ≤ T − sent
//! ```
//!
//! Each round trip so gives an interval that the offset must lie in, as wide as the trip was
//! long. Two short trips that are far apart give the rate.

use std::time::Duration;

use crate::node::survey::Sample;

/// What our clock and theirs have to do with each other. In nanoseconds and millionths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clocks {
    /// Their clock less our boot-time clock: at least, at most.
    pub(super) offset: (i128, i128),
    /// How much faster theirs runs: the middle of what is possible, and how far it may be off.
    pub(super) rate: Option<(f64, f64)>,
}

/// TIME is cut to whole microseconds.
const CUT: i128 = 1_000;

/// The interval in which the offset lies by one sample.
fn interval(sample: &Sample) -> Option<(i128, i128)> {
    let time = i128::try_from(sample.node_time?.as_nanos()).ok()?;
    let at = |moment: crate::clock::Instant| i128::from(moment.as_nanos());
    Some((time - at(sample.received), time + CUT - at(sample.sent)))
}

fn trip(sample: &Sample) -> Duration {
    sample.received.since(sample.sent)
}

/// The shortest trip that brought a time.
fn best(samples: &[Sample]) -> Option<&Sample> {
    let timed = samples.iter().filter(|sample| sample.node_time.is_some());
    timed.min_by_key(|sample| trip(sample))
}

/// Reads both clocks off the samples, which are in order. `None` without a single time.
pub(super) fn compare(samples: &[Sample]) -> Option<Clocks> {
    Some(Clocks {
        offset: interval(best(samples)?)?,
        rate: rate(samples),
    })
}

/// Of all pairs the one that leaves the least doubt: short trips, far apart.
fn rate(samples: &[Sample]) -> Option<(f64, f64)> {
    let timed = samples.iter().filter_map(|s| Some((s, interval(s)?)));
    let timed: Vec<_> = timed.collect();
    let later = |at: usize| timed.get(at + 1..).unwrap_or_default();
    let pairs = timed.iter().enumerate();
    let pairs = pairs.flat_map(|(at, early)| later(at).iter().map(move |late| (early, late)));
    let rates = pairs.filter_map(|(early, late)| {
        let span = middle(late.0) - middle(early.0);
        let (before, after) = (early.1, late.1);
        let millionths = |nanos: i128| nanos as f64 / span as f64 * 1e6;
        let least = millionths(after.0 - before.1);
        let most = millionths(after.1 - before.0);
        (span > 0).then_some(((least + most) / 2.0, (most - least) / 2.0))
    });
    rates.min_by(|one, other| one.1.total_cmp(&other.1))
}

fn middle(sample: &Sample) -> i128 {
    i128::from(sample.sent.as_nanos()) / 2 + i128::from(sample.received.as_nanos()) / 2
}

/// By how much the clock was set while it was watched: what neither the round trips nor a rate of
/// `factor` explain.
pub(super) fn step(samples: &[Sample], factor: f64) -> Duration {
    let mut most = 0;
    let timed = samples.iter().filter_map(|s| Some((s, interval(s)?)));
    let timed: Vec<_> = timed.collect();
    for pair in timed.windows(2) {
        let [(first, before), (second, after)] = pair else {
            continue;
        };
        let passed = second.received.since(first.sent);
        let drift = (passed.as_nanos() as f64 * factor).ceil() as i128;
        let gap = (after.0 - before.1).max(before.0 - after.1) - drift;
        most = most.max(gap);
    }
    Duration::from_nanos(u64::try_from(most).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Instant;
    use proptest::prelude::*;

    /// Samples of a clock that is `ahead` of ours, runs fast by `fast` millionths and is set by
    /// `set` nanoseconds in the middle; 20 ms apart, each trip as long as `trip` says.
    fn samples(
        ahead: i128,
        fast: i128,
        set: i128,
        trip: impl Fn(u64) -> (u64, u64),
    ) -> Vec<Sample> {
        let sample = |n: u64| {
            let sent = 1_000_000_000 + n * 20_000_000;
            let (there, back) = trip(n);
            let at = i128::from(sent + there);
            let set = if n >= 25 { set } else { 0 };
            let time = at + ahead + set + (at - 1_000_000_000) * fast / 1_000_000;
            Sample {
                sent: Instant::from_nanos(sent),
                received: Instant::from_nanos(sent + there + back),
                node_time: Some(Duration::from_micros(time as u64 / 1000)),
            }
        };
        (0..50).map(sample).collect()
    }

    const AHEAD: i128 = 1_795_000_000_000_000_000;

    #[test]
    fn nothing_is_said_without_a_time() {
        assert_eq!(compare(&[]), None);
        let mut untimed = samples(AHEAD, 0, 0, |_| (10_000, 10_000));
        untimed
            .iter_mut()
            .for_each(|sample| sample.node_time = None);
        assert_eq!(compare(&untimed), None);
        assert_eq!(
            compare(&samples(AHEAD, 0, 0, |_| (1, 1))[..1])
                .unwrap()
                .rate,
            None
        );
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_and_one_that_drifts_was_not_set() {
        let slow = |_| (100_000, 100_000);
        assert_eq!(step(&samples(AHEAD, 5_000, 0, slow), 0.01), Duration::ZERO);
        let set = step(&samples(AHEAD, 0, 5_000_000, slow), 0.01);
        assert!(
            set > Duration::from_millis(4) && set < Duration::from_millis(5),
            "{set:?}"
        );
        let back = step(&samples(AHEAD, 0, -5_000_000, slow), 0.01);
        assert!(
            back > Duration::from_millis(4) && back < Duration::from_millis(5),
            "{back:?}"
        );
    }

    proptest! {
        /// Whatever the trips are like, the truth lies inside what is said.
        #[test]
        fn offset_and_rate_hold_the_truth(
            ahead in -1_000_000_000i128..=1_000_000_000,
            fast in -200_000i128..=200_000,
            trips in prop::collection::vec((0u64..8_000_000, 0u64..8_000_000), 50),
        ) {
            let ahead = AHEAD + ahead;
            let all = samples(ahead, fast, 0, |n| trips[n as usize]);
            let clocks = compare(&all).unwrap();
            let drifted = 1_100_000_000 * fast / 1_000_000;
            prop_assert!(clocks.offset.0 <= ahead + drifted.max(0));
            prop_assert!(clocks.offset.1 >= ahead + drifted.min(0));
            let (rate, doubt) = clocks.rate.unwrap();
            // The span is measured between the middles, which may be off by half a trip each.
            let slack = doubt * 0.05 + 20_000.0 * 0.1;
            prop_assert!((rate - fast as f64).abs() <= doubt + slack, "{rate} ± {doubt}, {fast}");
        }
    }
}
