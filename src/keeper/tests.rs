//! Whatever happens to a lease, something wakes for it in time.

use std::num::NonZeroU32;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;
use crate::clock::ManualClock;
use crate::coordinator::{AttemptId, Outcome as Ended};
use crate::queue::Terms;
use crate::quorum::{Cohort, Drift, Jitter, Retry};
use crate::status::NodeStatus;

/// A store that does nothing, and so leaves every turn of events to the test.
struct Nobody;

impl LeaseStore for Nobody {
    fn acquire(&mut self, _: Instant, _: AttemptId, _: &Arc<[u8]>, _: &Timing) {}
    fn adopt(&mut self, _: Instant, _: AttemptId, _: &Arc<[u8]>, _: Secret, _: &Timing) {}
    fn secret(&self, _: LeaseId) -> Option<Secret> {
        None
    }
    fn forget(&mut self, _: LeaseId) -> Option<Secret> {
        None
    }
    fn abandon(&mut self, _: Instant, _: AttemptId) {}
    fn extend(&mut self, _: Instant, _: LeaseId, _: &Timing, _: Instant, _: tracing::Span) {}
    fn release(&mut self, _: Instant, _: LeaseId, _: &Timing) {}
    fn outcome(&mut self) -> Option<Ended> {
        None
    }
    fn has_news(&self) -> bool {
        false
    }
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
    fn turn(&mut self, _: Instant) {}
    fn flush(&mut self) {}
    fn listen(&mut self, _: &Arc<[u8]>) {}
    fn idle(&mut self, _: Instant, _: &Arc<[u8]>) {}
    fn rivals(&self, _: &[u8]) -> u32 {
        0
    }
    fn trip(&self) -> Duration {
        Duration::from_millis(1)
    }
    fn unreleased(&self) -> usize {
        0
    }
    fn pending(&self) -> usize {
        0
    }
    fn nodes(&mut self, _: Instant) -> Vec<NodeStatus> {
        Vec::new()
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn timing(ttl: u64) -> Timing {
    Timing::new(ms(ttl), Drift::new(0.0, ms(0)).unwrap(), ms(50), ms(0)).unwrap()
}

fn spec(extend_every: Option<Duration>, max_hold: Option<Duration>) -> Arc<Spec> {
    let terms = Terms {
        timing: timing(900),
        retry: Retry {
            delay: ms(20),
            max_delay: ms(20),
            jitter: Jitter::None,
            attempts: NonZeroU32::new(1),
        },
        extend_every,
        max_hold,
        cohort: Cohort {
            max_handoffs: 3,
            max_time: ms(400),
        },
    };
    Arc::new(Spec {
        resource: Arc::from(&b"job"[..]),
        key: Arc::from(&b"{job}"[..]),
        terms: Arc::new(terms),
    })
}

impl Keeper {
    /// The present hold of a lease.
    fn hold_of(&self, lease: LeaseId) -> HoldId {
        let turn = self.records.get(&lease).map_or(0, |record| record.turn);
        HoldId { lease, turn }
    }
}

/// Every record has a moment in the heap at which, or before which, something is due for it.
fn each_is_woken_in_time(keeper: &Keeper, now: Instant) -> Result<(), TestCaseError> {
    for (id, record) in &keeper.records {
        let due = match record.lease.step(now) {
            Step::Sleep(until) => until,
            Step::Extend | Step::Lost(_) => now,
        };
        let first = keeper.timers.first_of(id);
        prop_assert!(
            first.is_some_and(|first| first <= due),
            "{id}: {first:?} for what is due at {due:?}, at {now:?}"
        );
    }
    Ok(())
}

fn play(events: Vec<(u64, u8, u64)>, spec: &Arc<Spec>, crowd: u64) -> Result<(), TestCaseError> {
    let clock = ManualClock::new(at(1_000));
    let mut keeper = Keeper::new(Clock::Manual(clock.clone()), Quorum::of(3));
    let (mut now, mut last, store) = (1_000, crowd, &mut Nobody);
    for id in 1..=crowd {
        keeper.hold(id, spec, (at(990), at(1_890)), false, at(990));
    }
    each_is_woken_in_time(&keeper, at(now))?;
    for (pause, event, which) in events {
        if event == 0 {
            // To the very moment that the engine would wake at.
            let next = keeper.next_timeout().map_or(0, |next| next.as_nanos());
            now = now.max(next.div_ceil(1_000_000));
        }
        now += if event < 2 { pause % 3 } else { pause };
        clock.set(at(now));
        let id = last.saturating_sub(which % crowd);
        let record = keeper.records.get(&id);
        let extending = record.is_some_and(|record| record.lease.extending());
        match event {
            2 | 3 if extending => {
                let deadline = at(now - pause.min(50) + 900);
                let renewed = Outcome::Renewed { deadline };
                let started = at(now - pause.min(50));
                drop(keeper.extended(id, started, renewed, at(now), 0, store));
            }
            4 if extending => {
                let chance = u64::MAX / (which + 1);
                drop(keeper.extended(id, at(now), Outcome::Unknown, at(now), chance, store));
            }
            5 | 6 => {
                let (reply, answer) = oneshot::channel();
                let longer = (event == 6).then(|| timing(3_000));
                let reply = (reply, tracing::Span::none());
                drop(keeper.extend(keeper.hold_of(id), longer, reply, at(now), store));
                drop(answer);
            }
            7 => drop(keeper.prolonged(id, at(now + 800), at(now), store)),
            8 => drop(keeper.release(keeper.hold_of(id), None, Loss::Released, at(now), store)),
            10 => {
                let (hold, mut reply) = (keeper.hold_of(id), None);
                let after = keeper.hand_over(hold, spec, &mut reply, at(now));
                prop_assert!(
                    after.is_none_or(|(after, _)| keeper.current(hold).is_none()
                        && keeper.current(after).is_some())
                );
            }
            9 => {
                last += 1;
                keeper.hold(last, spec, (at(now), at(now + 900)), false, at(now));
            }
            _ => {}
        }
        each_is_woken_in_time(&keeper, at(now))?;
        drop(keeper.turn(at(now), store));
        each_is_woken_in_time(&keeper, at(now))?;
        let next = keeper.next_timeout();
        prop_assert!(next.is_none_or(|next| next > at(now)), "{next:?}");
    }
    Ok(())
}

#[test]
fn a_failed_extension_is_tried_again_after_a_quarter_to_a_half_of_the_node_timeout() {
    let timing = timing(900);
    let pauses = [0, 1 << 63, u64::MAX].map(|chance| retry_pause(&timing, chance).as_micros());
    assert!(
        matches!(pauses, [12_500, 18_750, 24_999..=25_000]),
        "{pauses:?}"
    );
}

#[test]
fn a_peek_sees_the_end_of_validity_and_does_not_bring_it_about() {
    let clock = ManualClock::new(at(1_000));
    let cell = Cell::new(spec(None, None), Clock::Manual(clock.clone()), at(1_900));
    assert_eq!(cell.peek(), Some(at(1_900)));
    clock.set(at(1_900));
    assert_eq!(cell.peek(), None);
    clock.set(at(1_899));
    assert_eq!(cell.peek(), Some(at(1_900)), "nobody has seen it as over");
    cell.end(Loss::Released);
    assert_eq!(cell.peek(), None);
}

proptest! {
    #[test]
    fn no_lease_is_ever_without_a_moment_at_which_its_next_step_is_due(
        events in prop::collection::vec((0u64..250, 0u8..11, 0u64..70), 1..120),
        every in prop::option::of(1u64..600),
        max_hold in prop::option::of(prop_oneof![1u64..4, 4u64..2_000]),
        crowd in prop::sample::select(vec![1, 2, 70]),
    ) {
        play(events, &spec(every.map(ms), max_hold.map(ms)), crowd)?;
    }
}
