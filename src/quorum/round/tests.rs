use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::quorum::Drift;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// TTL 1 s, allowance 12 ms, node timeout 50 ms.
fn timing() -> Timing {
    Timing::new(ms(1000), Drift::new(0.01, ms(2)).unwrap(), ms(50), ms(0)).unwrap()
}

fn round(nodes: usize) -> (Round, NodeSet) {
    let quorum = Quorum::of(nodes);
    let mut round = Round::begin(at(100), quorum, timing());
    (0..nodes).for_each(|node| round.hand(node));
    (round, quorum.all())
}

/// A node's part in the exhaustive test.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Grant,
    Refuse,
    Fail,
    /// Grants after the round's time.
    Late,
    Never,
}

const PARTS: [Part; 5] = [
    Part::Grant,
    Part::Refuse,
    Part::Fail,
    Part::Late,
    Part::Never,
];

fn case(number: usize) -> Vec<Part> {
    (0..5)
        .scan(number, |rest, _| {
            let part = PARTS[*rest % 5];
            *rest /= 5;
            Some(part)
        })
        .collect()
}

/// All 3,125 ways in which five nodes can take part, each told in order of the nodes: the
/// verdict is what a count with full knowledge gives, and it falls at the earliest vote at which
/// it was certain.
#[test]
fn every_round_of_five_nodes_is_judged_right_and_early() {
    for number in 0..5usize.pow(5) {
        let parts = case(number);
        let (mut round, all) = round(5);
        let count = |wanted: Part| parts.iter().filter(|&&part| part == wanted).count();
        let (grants, refusals, fails) =
            (count(Part::Grant), count(Part::Refuse), count(Part::Fail));
        let silent = count(Part::Late) + count(Part::Never);

        let mut told = (0, 0);
        for (node, part) in parts.iter().enumerate() {
            let vote = match part {
                Part::Grant => Vote::Granted,
                Part::Refuse => Vote::Refused,
                Part::Fail => Vote::Failed,
                Part::Late | Part::Never => continue,
            };
            if round.verdict(at(110), all) != Verdict::Open {
                break;
            }
            round.vote(node, vote);
            told.0 += usize::from(vote == Vote::Granted);
            told.1 += usize::from(vote != Vote::Granted);
            let certain = told.0 >= 3 || told.1 >= 3;
            let verdict = round.verdict(at(110), all);
            assert_eq!(verdict != Verdict::Open, certain, "{parts:?} at {node}");
        }

        let verdict = round.verdict(at(150), all);
        if grants >= 3 {
            let deadline = at(100 + 988);
            assert_eq!(verdict, Verdict::Granted { deadline }, "{parts:?}");
        } else {
            assert!(matches!(verdict, Verdict::Failed(_)), "{parts:?}");
        }
        // What was told before the decision is all that the round may claim to know.
        if verdict == Verdict::Failed(Shortfall::Contended) {
            assert!(refusals > 0 && fails < 3, "{parts:?}");
        }
        if refusals == 0 && grants < 3 {
            let why = Verdict::Failed(Shortfall::Unavailable);
            assert_eq!(verdict, why, "{parts:?}, silent {silent}");
        }
        // A late grant changes no verdict, and its node is owed a release (P3).
        for (node, part) in parts.iter().enumerate() {
            let refused = round.refused.contains(node);
            assert_eq!(round.owed().contains(node), !refused);
            if *part == Part::Late && grants < 3 {
                let before = round.verdict(at(150), all);
                let mut later = round.clone();
                later.vote(node, Vote::Granted);
                assert!(
                    later.granted().len() > 2
                        || later.verdict(at(151), all) == before
                        || before == Verdict::Failed(Shortfall::Unavailable)
                );
                assert!(later.owed().contains(node));
            }
        }
    }
}

#[test]
fn a_node_never_counts_twice() {
    let (mut round, all) = round(5);
    for _ in 0..5 {
        round.vote(2, Vote::Granted);
    }
    assert_eq!(round.granted().len(), 1);
    round.vote(2, Vote::Refused);
    assert!(round.owed().contains(2), "the first answer stands");
    assert_eq!(round.verdict(at(101), all), Verdict::Open);
}

#[test]
fn a_vote_of_a_node_that_is_not_configured_is_no_vote() {
    let (mut round, all) = round(3);
    round.vote(3, Vote::Granted);
    round.vote(4, Vote::Granted);
    assert!(round.granted().is_empty());
    assert_eq!(round.verdict(at(101), all), Verdict::Open);
}

#[test]
fn four_nodes_need_three() {
    let (mut round, all) = round(4);
    round.vote(0, Vote::Granted);
    round.vote(1, Vote::Granted);
    round.vote(2, Vote::Refused);
    assert_eq!(round.verdict(at(101), all), Verdict::Open);
    round.vote(3, Vote::Refused);
    let contended = Verdict::Failed(Shortfall::Contended);
    assert_eq!(round.verdict(at(101), all), contended);
}

#[test]
fn two_refusals_of_four_decide_at_once() {
    let (mut round, all) = round(4);
    round.vote(0, Vote::Refused);
    round.vote(1, Vote::Refused);
    let contended = Verdict::Failed(Shortfall::Contended);
    assert_eq!(round.verdict(at(101), all), contended);
}

#[test]
fn a_slow_quorum_is_too_slow_and_not_contended() {
    let (mut round, all) = round(3);
    round.vote(0, Vote::Granted);
    round.vote(1, Vote::Granted);
    let deadline = at(100 + 988);
    let granted = Verdict::Granted { deadline };
    assert_eq!(round.verdict(at(1087), all), granted);
    let slow = Verdict::Failed(Shortfall::TooSlow);
    assert_eq!(round.verdict(at(1088), all), slow);
}

#[test]
fn the_quorum_is_of_the_configured_nodes_not_of_those_that_answer() {
    let (mut round, all) = round(5);
    round.vote(0, Vote::Granted);
    round.vote(1, Vote::Granted);
    for node in 2..5 {
        round.vote(node, Vote::Failed);
    }
    let unavailable = Verdict::Failed(Shortfall::Unavailable);
    assert_eq!(round.verdict(at(101), all), unavailable);
}

#[test]
fn held_on_two_and_one_down_is_contention() {
    let (mut round, all) = round(5);
    round.vote(0, Vote::Refused);
    round.vote(1, Vote::Refused);
    round.vote(2, Vote::Failed);
    round.vote(3, Vote::Granted);
    let contended = Verdict::Failed(Shortfall::Contended);
    assert_eq!(round.verdict(at(101), all), contended);
}

#[test]
fn three_that_reject_us_are_not_worth_another_try() {
    let (mut round, all) = round(5);
    for node in 0..3 {
        round.vote(node, Vote::Rejected);
    }
    let rejected = Verdict::Failed(Shortfall::Rejected);
    assert_eq!(round.verdict(at(101), all), rejected);
}

/// Which is told first is a matter of chance; that three reject us is not.
#[test]
fn a_rivals_key_does_not_hide_that_three_reject_us() {
    let (mut round, all) = round(5);
    round.vote(3, Vote::Refused);
    round.vote(0, Vote::Rejected);
    round.vote(1, Vote::Rejected);
    assert_eq!(round.verdict(at(101), all), Verdict::Open);
    let mut rejecting = round.clone();
    rejecting.vote(2, Vote::Rejected);
    let rejected = Verdict::Failed(Shortfall::Rejected);
    assert_eq!(rejecting.verdict(at(101), all), rejected);
    // The others may turn out well, or say nothing within their budget.
    let mut contended = round.clone();
    contended.vote(2, Vote::Granted);
    contended.vote(4, Vote::Granted);
    let verdict = Verdict::Failed(Shortfall::Contended);
    assert_eq!(contended.verdict(at(101), all), verdict);
    let unavailable = Verdict::Failed(Shortfall::Unavailable);
    assert_eq!(round.verdict(at(150), all), unavailable);
}

#[test]
fn one_that_rejects_us_is_no_reason_to_wait_for_the_slow() {
    let (mut round, all) = round(5);
    round.vote(0, Vote::Rejected);
    (1..4).for_each(|node| round.vote(node, Vote::Refused));
    let contended = Verdict::Failed(Shortfall::Contended);
    assert_eq!(round.verdict(at(101), all), contended);
}

#[test]
fn a_grant_of_a_young_node_waits_for_its_vote() {
    let (mut round, all) = round(3);
    let mut counted = all;
    counted.remove(1);
    round.vote(0, Vote::Granted);
    round.vote(1, Vote::Granted);
    assert_eq!(round.verdict(at(101), counted), Verdict::Open);
    let granted = matches!(round.verdict(at(101), all), Verdict::Granted { .. });
    assert!(granted, "the node has gained its vote");
    round.vote(2, Vote::Failed);
    let unavailable = Verdict::Failed(Shortfall::Unavailable);
    assert_eq!(round.verdict(at(101), counted), unavailable);
    assert!(round.owed().contains(1), "what it set must go");
}

#[test]
fn silence_counts_as_failure_once_the_nodes_budget_is_spent() {
    let (mut round, all) = round(3);
    round.vote(0, Vote::Granted);
    assert_eq!(round.verdict(at(149), all), Verdict::Open);
    let unavailable = Verdict::Failed(Shortfall::Unavailable);
    assert_eq!(round.verdict(at(150), all), unavailable);
}

fn any_vote() -> impl Strategy<Value = Vote> {
    prop_oneof![
        Just(Vote::Granted),
        Just(Vote::Refused),
        Just(Vote::Failed),
        Just(Vote::Rejected),
    ]
}

proptest! {
    /// For N = 1..9, any votes in any order, any repetition and any clock: a grant needs a
    /// quorum of distinct counted nodes inside the validity, and a decision never turns over.
    #[test]
    fn a_grant_needs_a_quorum_of_distinct_counted_nodes(
        nodes in 1usize..=9,
        votes in prop::collection::vec((0usize..9, any_vote(), 0u64..40), 0..30),
        uncounted in prop::collection::vec(0usize..9, 0..4),
    ) {
        let (mut round, mut counted) = round(nodes);
        uncounted.iter().for_each(|&node| counted.remove(node));
        let mut first = [None; 9];
        let mut now = 100;
        for (node, vote, pause) in votes {
            now += pause;
            let before = round.verdict(at(now), counted);
            round.vote(node, vote);
            if node < nodes && first[node].is_none() {
                first[node] = Some(vote);
            }
            let verdict = round.verdict(at(now), counted);
            let grants = (0..nodes).filter(|&n| first[n] == Some(Vote::Granted) && counted.contains(n)).count();
            match verdict {
                Verdict::Granted { deadline } => {
                    prop_assert!(grants > nodes / 2);
                    prop_assert!(deadline > at(now));
                    prop_assert_eq!(deadline, at(100 + 988));
                }
                Verdict::Failed(Shortfall::Contended) => {
                    prop_assert!(first.contains(&Some(Vote::Refused)));
                }
                Verdict::Failed(_) | Verdict::Open => {}
            }
            if before == Verdict::Failed(Shortfall::Rejected) {
                prop_assert_eq!(verdict, before);
            }
            if let Verdict::Granted { .. } = before {
                prop_assert_eq!(verdict, before);
            }
        }
    }
}

#[test]
fn a_node_that_is_asked_again_has_an_open_vote_and_is_owed_a_release() {
    let (mut round, all) = round(3);
    round.vote(0, Vote::Refused);
    round.vote(1, Vote::Refused);
    let refused: Vec<_> = round.refused().iter().collect();
    assert_eq!(refused, [0, 1]);
    assert_eq!(round.owed().iter().collect::<Vec<_>>(), [2]);
    round.ask_again(0);
    assert_eq!(round.refused().iter().collect::<Vec<_>>(), [1]);
    assert_eq!(round.owed().iter().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(round.verdict(at(101), all), Verdict::Open);
    round.vote(0, Vote::Granted);
    round.vote(2, Vote::Granted);
    let verdict = round.verdict(at(101), all);
    assert!(matches!(verdict, Verdict::Granted { .. }), "{verdict:?}");
}

#[test]
fn a_node_that_is_asked_again_and_was_not_before_is_owed_a_release() {
    let mut round = Round::begin(at(100), Quorum::of(3), timing());
    round.ask_again(1);
    assert_eq!(round.owed().iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_grant_that_is_revoked_is_a_failure_and_owed_a_release_all_the_same() {
    let (mut round, all) = round(3);
    round.vote(0, Vote::Granted);
    round.vote(1, Vote::Refused);
    round.revoke(0);
    round.revoke(1);
    round.revoke(2);
    assert!(round.granted().is_empty());
    assert_eq!(round.answered().iter().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(round.owed().iter().collect::<Vec<_>>(), [0, 2]);
    round.vote(2, Vote::Granted);
    let verdict = round.verdict(at(101), all);
    assert!(matches!(verdict, Verdict::Failed(_)), "{verdict:?}");
}
