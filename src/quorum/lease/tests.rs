use proptest::prelude::*;

use super::*;
use crate::quorum::Drift;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn timing(ttl: u64) -> Timing {
    Timing::new(ms(ttl), Drift::new(0.0, ms(0)).unwrap(), ms(50), ms(0)).unwrap()
}

fn terms() -> Terms {
    Terms {
        timing: timing(900),
        extend_every: Some(ms(300)),
        max_hold: None,
    }
}

/// Granted at 0 on five nodes, good until 900.
fn lease(terms: Terms) -> Lease {
    Lease::granted(Quorum::of(5), terms, at(0), at(900))
}

fn votes(lease: &mut Lease, votes: &[Vote]) {
    for (node, &vote) in votes.iter().enumerate() {
        lease.vote(node, vote);
    }
}

const PAUSE: Duration = ms(20);

#[test]
fn it_sleeps_until_the_extension_is_due() {
    let lease = lease(terms());
    assert_eq!(lease.step(at(0)), Step::Sleep(at(300)));
    assert_eq!(lease.step(at(300)), Step::Extend);
}

#[test]
fn a_quorum_renews_from_the_start_of_the_extension() {
    let mut lease = lease(terms());
    lease.begin(at(300), timing(900));
    votes(&mut lease, &[Vote::Renewed; 2]);
    assert_eq!(lease.outcome(at(310), PAUSE), Outcome::Held);
    lease.vote(2, Vote::Renewed);
    let deadline = at(1200);
    assert_eq!(lease.outcome(at(320), PAUSE), Outcome::Renewed { deadline });
    assert_eq!(lease.step(at(320)), Step::Sleep(at(600)));
}

#[test]
fn a_failed_extension_keeps_the_deadline_and_is_tried_again() {
    let mut lease = lease(terms());
    lease.begin(at(300), timing(900));
    votes(&mut lease, &[Vote::Failed; 3]);
    assert_eq!(lease.outcome(at(310), PAUSE), Outcome::Unknown);
    assert_eq!(lease.deadline(), at(900));
    assert_eq!(lease.step(at(310)), Step::Sleep(at(330)));
    assert_eq!(lease.step(at(330)), Step::Extend);
}

#[test]
fn silence_ends_an_extension_at_the_nodes_budget() {
    let mut lease = lease(terms());
    lease.begin(at(300), timing(900));
    assert_eq!(lease.step(at(349)), Step::Sleep(at(350)));
    assert_eq!(lease.outcome(at(349), PAUSE), Outcome::Held);
    assert_eq!(lease.outcome(at(350), PAUSE), Outcome::Unknown);
}

#[test]
fn a_quorum_that_answers_after_the_deadline_revives_nothing() {
    let mut lease = lease(terms());
    lease.begin(at(880), timing(900));
    votes(&mut lease, &[Vote::Renewed; 5]);
    let lost = Outcome::Lost(Cause::Expired);
    assert_eq!(lease.outcome(at(900), PAUSE), lost);
    assert_eq!(lease.step(at(900)), Step::Lost(Cause::Expired));
}

#[test]
fn a_task_that_wakes_late_sends_no_extension() {
    let lease = lease(terms());
    assert_eq!(lease.step(at(900)), Step::Lost(Cause::Expired));
}

#[test]
fn three_deletions_of_five_are_a_loss_and_two_are_not() {
    let mut lease = lease(terms());
    lease.begin(at(300), timing(900));
    votes(&mut lease, &[Vote::Deleted, Vote::Deleted, Vote::Renewed]);
    assert_eq!(lease.outcome(at(301), PAUSE), Outcome::Held);
    lease.vote(3, Vote::Deleted);
    let lost = Outcome::Lost(Cause::Deleted);
    assert_eq!(lease.outcome(at(301), PAUSE), lost);
}

#[test]
fn deletions_are_counted_although_a_quorum_is_out_of_reach() {
    let mut lease = lease(terms());
    lease.begin(at(300), timing(900));
    votes(&mut lease, &[Vote::Failed, Vote::Deleted, Vote::Deleted]);
    assert_eq!(lease.outcome(at(301), PAUSE), Outcome::Held);
    lease.vote(3, Vote::Deleted);
    let lost = Outcome::Lost(Cause::Deleted);
    assert_eq!(lease.outcome(at(301), PAUSE), lost);
}

#[test]
fn another_owner_on_three_of_five_is_a_loss() {
    let mut lease = lease(terms());
    lease.begin(at(300), timing(900));
    votes(&mut lease, &[Vote::Taken; 3]);
    let lost = Outcome::Lost(Cause::Taken);
    assert_eq!(lease.outcome(at(301), PAUSE), lost);
}

#[test]
fn an_extension_never_shortens() {
    let mut lease = lease(terms());
    lease.begin(at(100), timing(200));
    votes(&mut lease, &[Vote::Renewed; 3]);
    let deadline = at(900);
    assert_eq!(lease.outcome(at(101), PAUSE), Outcome::Renewed { deadline });
}

#[test]
fn max_hold_is_an_end_that_no_extension_moves() {
    let mut lease = lease(Terms {
        max_hold: Some(ms(1000)),
        ..terms()
    });
    lease.begin(at(300), timing(900));
    votes(&mut lease, &[Vote::Renewed; 3]);
    let deadline = at(1000);
    assert_eq!(lease.outcome(at(301), PAUSE), Outcome::Renewed { deadline });
    assert_eq!(lease.step(at(1000)), Step::Lost(Cause::MaxHold));
}

#[test]
fn without_auto_extension_nothing_is_ever_due_but_the_end() {
    let lease = lease(Terms {
        extend_every: None,
        ..terms()
    });
    assert_eq!(lease.step(at(899)), Step::Sleep(at(900)));
    assert_eq!(lease.step(at(900)), Step::Lost(Cause::Expired));
}

fn any_vote() -> impl Strategy<Value = Vote> {
    prop_oneof![
        Just(Vote::Renewed),
        Just(Vote::Taken),
        Just(Vote::Deleted),
        Just(Vote::Failed),
    ]
}

proptest! {
    /// Whatever the answers and the clock: the deadline never moves back, never moves once it
    /// has passed, and never beyond what a quorum was asked for.
    #[test]
    fn the_deadline_only_moves_forward_and_only_while_it_stands(
        events in prop::collection::vec((0u64..120, 0usize..5, any_vote()), 1..120),
    ) {
        let mut lease = lease(terms());
        let mut now = 0;
        let mut lost = false;
        for (pause, node, vote) in events {
            now += pause;
            let before = lease.deadline();
            lease.outcome(at(now), PAUSE);
            match lease.step(at(now)) {
                Step::Extend => lease.begin(at(now), timing(900)),
                Step::Lost(_) => lost = true,
                Step::Sleep(until) => prop_assert!(until > at(now)),
            }
            lease.vote(node, vote);
            let outcome = lease.outcome(at(now), PAUSE);
            prop_assert!(lease.deadline() >= before);
            prop_assert!(lease.deadline() <= at(now + 900));
            if at(now) >= before {
                prop_assert_eq!(outcome, Outcome::Lost(Cause::Expired));
                prop_assert_eq!(lease.deadline(), before);
            }
            if lost {
                prop_assert!(matches!(lease.step(at(now)), Step::Lost(_)));
            }
        }
    }
}
