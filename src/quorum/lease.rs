//! A held lease: when to extend it, and when it is over (P7, P8).
//!
//! ```text
//!   granted ─► step(now) ─► Extend ─► begin ─► renewed(deadline) ─┐
//!                ▲  │  └──► Lost(cause)   └──► unknown: try again ─┤
//!                │  └─────► Sleep(until)                           │
//!                └─────────────────────────────────────────────────┘
//! ```
//!
//! The deadline only moves while it has not passed, and only to a later moment. An extension that
//! fails changes nothing: the old deadline stays in force, and another one is tried until then.

use std::time::Duration;

use super::timing::Timing;
use crate::clock::Instant;

/// Which end of a lease its deadline was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The validity ran out: no quorum extended it in time.
    Expired,
    /// The longest time that a lease may be held, `max_hold`, is over.
    MaxHold,
}

/// What to do with the lease now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask all nodes for an extension.
    Extend,
    /// Nothing before this moment.
    Sleep(Instant),
    /// Tell the holder, release everywhere.
    Lost(Cause),
}

/// How far a lease is handed on inside its client before it is really released (P12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cohort {
    /// How many times.
    pub(crate) max_handoffs: u32,
    /// How long after the grant at the latest.
    pub(crate) max_time: Duration,
}

/// A lease that is held.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Lease {
    deadline: Instant,
    hold_until: Instant,
    /// When the next extension is due; never, where the holder extends by hand.
    next: Instant,
    extending: bool,
}

impl Lease {
    /// A lease granted by a round that began at `started`, good until `deadline`, extended after
    /// each `extend_every` and held no longer than `max_hold`.
    pub(crate) fn granted(
        started: Instant,
        deadline: Instant,
        extend_every: Option<Duration>,
        max_hold: Option<Duration>,
    ) -> Self {
        let hold_until = max_hold.map_or(Instant::FAR, |most| started.after(most));
        Lease {
            deadline: deadline.min(hold_until),
            hold_until,
            next: extend_every.map_or(Instant::FAR, |every| due(started, every)),
            extending: false,
        }
    }

    /// The end of validity.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// When the next extension is due.
    pub(crate) fn due(&self) -> Instant {
        self.next
    }

    /// Whether an extension is on its way.
    pub(crate) fn extending(&self) -> bool {
        self.extending
    }

    /// When the holder is told that the lease is over: so much before the end of validity that the
    /// word is there by then (P8).
    fn alarm(&self) -> Instant {
        self.deadline.before(LEAD)
    }

    /// What is due at `now`. The comparison with the deadline comes first, always (P5): a task
    /// that wakes after it must not send an extension.
    pub(crate) fn step(&self, now: Instant) -> Step {
        let alarm = self.alarm();
        if now >= alarm {
            let over = self.deadline >= self.hold_until;
            return Step::Lost(if over { Cause::MaxHold } else { Cause::Expired });
        }
        // Beyond the longest hold there is nothing to extend for.
        if self.extending || self.deadline >= self.hold_until {
            return Step::Sleep(alarm);
        }
        if now >= self.next {
            return Step::Extend;
        }
        Step::Sleep(alarm.min(self.next))
    }

    /// An extension is sent.
    pub(crate) fn begin(&mut self) {
        self.extending = true;
    }

    /// Brings the first extension forward by `span`.
    pub(crate) fn hasten(&mut self, span: Duration) {
        if self.next < Instant::FAR {
            self.next = self.next.before(span);
        }
    }

    /// The extension that began at `started` has succeeded at `now`: the lease is good until
    /// `deadline`, and the next one is due `extend_every` after this one began. `false` if it came
    /// too late, and nothing has changed.
    pub(crate) fn renewed(
        &mut self,
        now: Instant,
        started: Instant,
        deadline: Instant,
        extend_every: Option<Duration>,
    ) -> bool {
        self.extending = false;
        if now >= self.alarm() {
            return false;
        }
        self.deadline = self.deadline.max(deadline.min(self.hold_until));
        if let Some(every) = extend_every {
            self.next = due(started, every);
        }
        true
    }

    /// Whether the lease is worth handing on at `now`: where less than half of its validity
    /// is left, extensions are in trouble, and whoever is next does
    /// better with a lease of its own.
    pub(crate) fn is_sound(&self, now: Instant, timing: &Timing) -> bool {
        let left = self.alarm().since(now);
        now < self.alarm() && left >= timing.min_validity() && left >= timing.whole() / 2
    }

    /// A new holder begins at `now`, with its own longest time to hold.
    pub(crate) fn handed_over(&mut self, now: Instant, max_hold: Option<Duration>) {
        self.hold_until = max_hold.map_or(Instant::FAR, |most| now.after(most));
        self.deadline = self.deadline.min(self.hold_until);
    }

    /// An extension that had come to nothing has succeeded at `now` after all. What is under way
    /// or due meanwhile stays so.
    pub(crate) fn prolonged(&mut self, now: Instant, deadline: Instant) {
        if now < self.alarm() {
            self.deadline = self.deadline.max(deadline.min(self.hold_until));
        }
    }

    /// The extension came to nothing. The next one is tried after `pause`.
    pub(crate) fn unknown(&mut self, now: Instant, pause: Duration) {
        self.extending = false;
        if self.next < Instant::FAR {
            self.next = now.after(pause);
        }
    }
}

/// What a timer and the wake-up behind it may take.
const LEAD: Duration = Duration::from_millis(1);

/// The longest time between two moments at which extensions fall due.
const TICK: Duration = Duration::from_millis(50);

/// When the extension after the one that began at `started` is due. The leases of a client share
/// their moments, so that many extensions go to a node in one pipeline: each is up to a 64th
/// early, and never late.
fn due(started: Instant, every: Duration) -> Instant {
    started.after(every).floor(TICK.min(every / 64))
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

    /// Granted at 0, good until 900, extended every 300.
    fn lease(max_hold: Option<u64>) -> Lease {
        Lease::granted(at(0), at(900), Some(ms(300)), max_hold.map(ms))
    }

    #[test]
    fn it_sleeps_until_the_extension_is_due() {
        let lease = lease(None);
        assert_eq!(lease.step(at(0)), Step::Sleep(at(300)));
        assert_eq!(lease.step(at(300)), Step::Extend);
    }

    #[test]
    fn it_says_whether_an_extension_is_on_its_way() {
        let mut lease = lease(None);
        assert!(!lease.extending());
        lease.begin();
        assert!(lease.extending());
        lease.unknown(at(310), ms(20));
        assert!(!lease.extending());
    }

    #[test]
    fn the_first_extension_can_be_brought_forward() {
        let mut lease = lease(None);
        lease.hasten(ms(100));
        assert_eq!(lease.step(at(199)), Step::Sleep(at(200)));
        assert_eq!(lease.step(at(200)), Step::Extend);
    }

    #[test]
    fn where_nothing_is_extended_nothing_is_brought_forward_or_tried_again() {
        let mut lease = Lease::granted(at(0), at(900), None, None);
        lease.hasten(Duration::MAX);
        assert_eq!(lease.step(at(500)), Step::Sleep(at(899)));
        // By hand, and in vain.
        lease.begin();
        lease.unknown(at(510), ms(20));
        assert_eq!(lease.step(at(600)), Step::Sleep(at(899)));
    }

    #[test]
    fn it_is_handed_on_with_half_of_its_validity_and_what_is_worth_having() {
        let drift = crate::quorum::Drift::new(0.0, ms(0)).unwrap();
        let timing = |least| Timing::new(ms(900), drift, ms(50), ms(least)).unwrap();
        let (lease, short) = (lease(None), Lease::granted(at(0), at(200), None, None));
        // Told at 899: 450 before that is half of it.
        assert!(lease.is_sound(at(0), &timing(0)));
        assert!(lease.is_sound(at(449), &timing(0)));
        assert!(!lease.is_sound(at(450), &timing(0)));
        assert!(lease.is_sound(at(199), &timing(700)));
        assert!(!lease.is_sound(at(200), &timing(700)));
        assert!(!lease.is_sound(at(899), &timing(0)));
        assert!(!lease.is_sound(at(2000), &timing(0)));
        assert!(!short.is_sound(at(0), &timing(0)));
    }

    #[test]
    fn the_next_holder_has_its_own_longest_time() {
        let mut lease = lease(Some(1000));
        lease.handed_over(at(300), Some(ms(500)));
        assert_eq!(lease.deadline(), at(800));
        assert_eq!(lease.step(at(799)), Step::Lost(Cause::MaxHold));
        let mut lease = self::lease(Some(1000));
        lease.handed_over(at(300), None);
        lease.begin();
        assert!(lease.renewed(at(310), at(300), at(1200), Some(ms(300))));
        assert_eq!(
            lease.deadline(),
            at(1200),
            "the former one's does not count"
        );
    }

    #[test]
    fn what_succeeds_as_the_word_goes_out_is_too_late() {
        let mut lease = lease(None);
        lease.prolonged(at(899), at(1200));
        assert_eq!(lease.deadline(), at(900));
        lease.prolonged(at(898), at(1200));
        assert_eq!(lease.deadline(), at(1200));
    }

    #[test]
    fn one_extension_is_on_its_way_at_a_time() {
        let mut lease = lease(None);
        lease.begin();
        assert_eq!(lease.step(at(300)), Step::Sleep(at(899)));
        assert!(lease.renewed(at(320), at(300), at(1200), Some(ms(300))));
        assert_eq!(lease.step(at(320)), Step::Sleep(at(600)));
        assert_eq!(lease.deadline(), at(1200));
    }

    #[test]
    fn a_failed_extension_keeps_the_deadline_and_is_tried_again() {
        let mut lease = lease(None);
        lease.begin();
        lease.unknown(at(310), ms(20));
        assert_eq!(lease.deadline(), at(900));
        assert_eq!(lease.step(at(310)), Step::Sleep(at(330)));
        assert_eq!(lease.step(at(330)), Step::Extend);
    }

    #[test]
    fn a_renewal_after_the_deadline_revives_nothing() {
        let mut lease = lease(None);
        lease.begin();
        assert!(!lease.renewed(at(900), at(880), at(1780), Some(ms(300))));
        assert_eq!(lease.deadline(), at(900));
        assert_eq!(lease.step(at(900)), Step::Lost(Cause::Expired));
    }

    #[test]
    fn a_task_that_wakes_late_sends_no_extension() {
        assert_eq!(lease(None).step(at(900)), Step::Lost(Cause::Expired));
    }

    #[test]
    fn an_extension_that_succeeds_late_prolongs_what_stands_and_nothing_else() {
        let mut lease = lease(None);
        lease.begin();
        lease.unknown(at(310), ms(20));
        lease.begin();
        lease.prolonged(at(800), at(1200));
        assert_eq!(lease.deadline(), at(1200));
        assert!(lease.extending(), "the next one is still under way");
        lease.prolonged(at(1200), at(2000));
        assert_eq!(lease.deadline(), at(1200), "nothing is revived");
    }

    #[test]
    fn max_hold_is_an_end_that_no_extension_moves() {
        let mut lease = lease(Some(1000));
        lease.begin();
        assert!(lease.renewed(at(301), at(300), at(1200), Some(ms(300))));
        assert_eq!(lease.deadline(), at(1000));
        assert_eq!(lease.step(at(600)), Step::Sleep(at(999)));
        assert_eq!(lease.step(at(999)), Step::Lost(Cause::MaxHold));
    }

    #[test]
    fn without_auto_extension_nothing_is_due_but_the_end() {
        let lease = Lease::granted(at(0), at(900), None, None);
        assert_eq!(lease.step(at(898)), Step::Sleep(at(899)));
        assert_eq!(lease.step(at(899)), Step::Lost(Cause::Expired));
    }

    #[test]
    fn leases_that_began_at_about_one_time_are_extended_at_one_moment() {
        // A 64th of the period is 46.875 ms.
        let next = |started| match Lease::granted(at(started), at(9000), Some(ms(3000)), None)
            .step(at(started))
        {
            Step::Sleep(until) => until,
            other => panic!("{other:?}"),
        };
        assert_eq!(next(10), at(3000));
        assert_eq!(next(40), at(3000));
        assert!(next(50) > at(3000));
        for started in 0..200 {
            let late = next(started).since(at(started));
            assert!(late <= ms(3000) && late >= ms(3000 - 47), "{late:?}");
        }
    }

    proptest! {
        /// Whatever happens, and however late: the deadline never moves back, never moves once
        /// it has passed, and a lost lease stays lost.
        #[test]
        fn the_deadline_only_moves_forward_and_only_while_it_stands(
            events in prop::collection::vec((0u64..400, 0u8..4), 1..100),
            max_hold in prop::option::of(1u64..3000),
        ) {
            let mut lease = lease(max_hold);
            let (mut now, mut sent, mut lost) = (0, 0, false);
            for (pause, event) in events {
                now += pause;
                let before = lease.deadline();
                match lease.step(at(now)) {
                    Step::Extend => { lease.begin(); sent = now; }
                    Step::Lost(_) => lost = true,
                    Step::Sleep(until) => prop_assert!(until > at(now)),
                }
                match event {
                    0 => { lease.renewed(at(now), at(sent), at(sent + 900), Some(ms(300))); }
                    1 => lease.unknown(at(now), ms(20)),
                    _ => {}
                }
                prop_assert!(lease.deadline() >= before);
                if at(now) >= before {
                    prop_assert_eq!(lease.deadline(), before);
                }
                if let Some(most) = max_hold {
                    prop_assert!(lease.deadline() <= at(most));
                }
                if lost {
                    prop_assert!(matches!(lease.step(at(now)), Step::Lost(_)));
                }
            }
        }
    }
}
