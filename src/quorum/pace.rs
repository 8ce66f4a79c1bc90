//! Whether a node's clock and ours have moved alike (P5).
//!
//! No local clock counts the time that a virtual machine stands still, and none sees a node's
//! clock being set. A node's own time, brought back with an answer, shows both: between two
//! answers it cannot have moved further than from the sending of the first request to the arrival
//! of the second answer, plus the drift allowance.
//!
//! ```text
//!   us     sent ───────────────────────────────► received      at most this long
//!   node       then ─────────────────► now                      moved this far
//! ```
//!
//! If a quorum of nodes is ahead of that, it is we who stood still, and whatever we held is lost.
//! If fewer are, their clocks were set forward: their keys may have run out early, and their
//! votes wait as after a restart.

use std::time::Duration;

use super::nodes::{NodeSet, Quorum};
use super::timing::Drift;
use crate::clock::Instant;

/// What the nodes' clocks say about ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// Nothing out of the ordinary.
    None,
    /// We stood still.
    Frozen,
    /// The clocks of these nodes were set forward.
    Stepped(NodeSet),
}

#[derive(Clone, Copy, Debug)]
struct Baseline {
    sent: Instant,
    node_time: Duration,
}

/// The last known time of each node.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    quorum: Quorum,
    drift: Drift,
    baselines: Vec<Option<Baseline>>,
}

impl Pace {
    pub(crate) fn new(quorum: Quorum, drift: Drift) -> Self {
        Pace {
            quorum,
            drift,
            baselines: vec![None; quorum.nodes()],
        }
    }

    /// `node` was asked at `sent`, and its answer with its own time arrived at `received`. Tells
    /// whether it is ahead of what our clock allows; the answer is the next baseline either way.
    pub(crate) fn is_ahead(
        &mut self,
        node: usize,
        node_time: Duration,
        sent: Instant,
        received: Instant,
    ) -> bool {
        let Some(slot) = self.baselines.get_mut(node) else {
            return false;
        };
        // Requests of several leases overlap: the later one is the better baseline.
        if slot.is_some_and(|before| before.sent > sent) {
            return false;
        }
        let before = slot.replace(Baseline { sent, node_time });
        before.is_some_and(|before| {
            let moved = node_time.saturating_sub(before.node_time);
            let passed = received.since(before.sent);
            moved > passed.saturating_add(self.drift.allowance(passed))
        })
    }

    /// The same of an answer that judges nothing, such as a grant: the first baseline, and with
    /// `renew` the place of an older one.
    pub(crate) fn begin(&mut self, node: usize, node_time: Duration, sent: Instant, renew: bool) {
        if let Some(slot) = self.baselines.get_mut(node)
            && slot.is_none_or(|before| renew && before.sent < sent)
        {
            *slot = Some(Baseline { sent, node_time });
        }
    }

    /// Nothing was held before `moment`: how the clocks moved until then concerns nobody.
    pub(crate) fn forget_before(&mut self, moment: Instant) {
        for slot in &mut self.baselines {
            slot.take_if(|before| before.sent < moment);
        }
    }

    /// Another server, or another clock, answers there now.
    pub(crate) fn forget(&mut self, node: usize) {
        if let Some(slot) = self.baselines.get_mut(node) {
            *slot = None;
        }
    }

    /// What it means that the nodes in `ahead` are ahead.
    pub(crate) fn judge(&self, ahead: NodeSet) -> Skip {
        if ahead.is_empty() {
            Skip::None
        } else if self.quorum.reached_by(ahead) {
            Skip::Frozen
        } else {
            Skip::Stepped(ahead)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// With an allowance of 5 ms, whatever the span.
    fn pace() -> Pace {
        Pace::new(Quorum::of(3), Drift::new(0.0, ms(5)).unwrap())
    }

    #[test]
    fn a_clock_that_keeps_pace_is_not_ahead() {
        let mut pace = pace();
        assert!(!pace.is_ahead(0, ms(5000), at(100), at(110)));
        assert!(!pace.is_ahead(0, ms(6000), at(1100), at(1110)));
    }

    #[test]
    fn a_standstill_of_ours_shows_as_a_node_that_is_ahead() {
        let mut pace = pace();
        pace.is_ahead(0, ms(5000), at(100), at(110));
        // From 100 to 210 are 110 ms here, and 2 s there.
        assert!(pace.is_ahead(0, ms(7000), at(200), at(210)));
        // The jump is the new baseline, and is told once.
        assert!(!pace.is_ahead(0, ms(7100), at(300), at(310)));
    }

    #[test]
    fn a_standstill_right_after_the_first_baseline_shows() {
        let mut pace = pace();
        pace.begin(0, ms(5000), at(100), false);
        assert!(pace.is_ahead(0, ms(7000), at(200), at(210)));
    }

    #[test]
    fn a_later_grant_hides_no_standstill_unless_nothing_was_held() {
        for renew in [false, true] {
            let mut pace = pace();
            pace.begin(0, ms(5000), at(100), false);
            pace.begin(0, ms(7000), at(200), renew);
            assert_eq!(pace.is_ahead(0, ms(7100), at(300), at(310)), !renew);
        }
    }

    #[test]
    fn the_round_trip_and_the_allowance_are_no_jump() {
        let mut pace = pace();
        pace.is_ahead(0, ms(5000), at(100), at(190));
        assert!(!pace.is_ahead(0, ms(5115), at(200), at(210)));
        let mut pace = self::pace();
        pace.is_ahead(0, ms(5000), at(100), at(190));
        assert!(pace.is_ahead(0, ms(5116), at(200), at(210)));
    }

    #[test]
    fn a_quorum_that_is_ahead_means_that_we_stood_still() {
        let pace = pace();
        let mut ahead = NodeSet::EMPTY;
        assert_eq!(pace.judge(ahead), Skip::None);
        ahead.insert(2);
        assert_eq!(pace.judge(ahead), Skip::Stepped(ahead));
        ahead.insert(0);
        assert_eq!(pace.judge(ahead), Skip::Frozen);
    }

    #[test]
    fn an_overlapping_older_answer_is_no_baseline() {
        let mut pace = pace();
        pace.is_ahead(0, ms(7000), at(2000), at(2010));
        assert!(!pace.is_ahead(0, ms(9000), at(1000), at(4000)));
        assert!(!pace.is_ahead(0, ms(9000), at(4000), at(4010)));
    }

    #[test]
    fn an_older_answer_judges_nothing_and_one_of_the_same_moment_does() {
        let mut pace = pace();
        pace.is_ahead(0, ms(7000), at(2000), at(2010));
        assert!(!pace.is_ahead(0, ms(12_000), at(1000), at(4000)));
        assert!(pace.is_ahead(0, ms(9000), at(2000), at(2010)));
        // A grant of that moment is no later one, either.
        pace.begin(0, ms(11_000), at(2000), true);
        assert!(pace.is_ahead(0, ms(11_100), at(2100), at(2110)));
    }

    #[test]
    fn another_clock_at_the_same_place_is_not_ahead() {
        let mut pace = pace();
        for node in 0..2 {
            pace.is_ahead(node, ms(5000), at(100), at(110));
        }
        pace.forget(0);
        assert!(!pace.is_ahead(0, ms(9000), at(200), at(210)));
        assert!(pace.is_ahead(1, ms(9000), at(200), at(210)));
    }

    #[test]
    fn clocks_that_run_apart_within_the_factor_are_not_ahead() {
        let drift = Drift::new(0.01, ms(0)).unwrap();
        let mut pace = Pace::new(Quorum::of(3), drift);
        pace.is_ahead(0, ms(5000), at(1000), at(1000));
        assert!(!pace.is_ahead(0, ms(15_100), at(11_000), at(11_000)));
        assert!(pace.is_ahead(0, ms(25_201), at(21_000), at(21_000)));
    }

    #[test]
    fn what_was_known_before_anything_was_held_judges_nothing() {
        let mut pace = pace();
        pace.is_ahead(0, ms(5000), at(100), at(110));
        pace.is_ahead(1, ms(5000), at(200), at(210));
        pace.forget_before(at(200));
        assert!(!pace.is_ahead(0, ms(7000), at(300), at(310)));
        assert!(pace.is_ahead(1, ms(7000), at(300), at(310)));
    }

    #[test]
    fn a_clock_set_back_is_not_ahead() {
        let mut pace = pace();
        pace.is_ahead(0, ms(7000), at(100), at(110));
        assert!(!pace.is_ahead(0, ms(1000), at(200), at(210)));
    }

    proptest! {
        /// Whatever the order of grants and extensions, of their answers and of idle hours:
        /// clocks that part by no more than the factor are never called ahead.
        #[test]
        fn clocks_within_the_drift_factor_never_raise_an_alarm(
            asks in prop::collection::vec(
                (0u64..2_000, 0u64..400, 0u64..3_000, 0u8..4, any::<bool>()), 2..60),
            idle in prop::collection::vec((0usize..60, 0u64..20_000_000), 0..3),
            rate in -10_000i64..=10_000,
        ) {
            let drift = Drift::new(0.01, ms(1)).unwrap();
            let mut pace = Pace::new(Quorum::of(1), drift);
            let mut now = 1_000;
            let mut answers = Vec::new();
            for (index, (pause, there, back, kind, renew)) in asks.into_iter().enumerate() {
                let gap: u64 = idle.iter().filter(|(at, _)| *at == index).map(|(_, gap)| gap).sum();
                now += pause + gap;
                answers.push((now + there + back, now, now + there, kind, renew));
            }
            // In whatever order connections bring them.
            answers.sort_unstable();
            for (received, sent, seen, kind, renew) in answers {
                let gone = seen * 1_000;
                let node = 90_000_000_000 + gone.saturating_add_signed(gone as i64 / 1_000_000 * rate);
                let node = Duration::from_micros(node);
                match kind {
                    0 => pace.begin(0, node, at(sent), renew),
                    1 => pace.forget_before(at(sent)),
                    _ => {
                        let ahead = pace.is_ahead(0, node, at(sent), at(received));
                        prop_assert!(!ahead, "sent {sent}, seen {seen}, received {received}");
                    }
                }
            }
        }

        /// Whatever the latencies: clocks that run alike are never called ahead.
        #[test]
        fn clocks_that_run_alike_never_raise_an_alarm(
            trips in prop::collection::vec((0u64..500, 0u64..200, 0u64..200), 2..40),
        ) {
            let mut pace = pace();
            let mut now = 1000;
            for (pause, there, back) in trips {
                now += pause;
                let (sent, seen, received) = (now, now + there, now + there + back);
                let ahead = pace.is_ahead(0, ms(90_000 + seen), at(sent), at(received));
                prop_assert!(!ahead);
                now = received;
            }
        }
    }
}
