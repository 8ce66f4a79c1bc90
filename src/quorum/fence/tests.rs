use super::*;
use proptest::prelude::*;

const REACH: u64 = 100;

fn set(nodes: &[usize]) -> NodeSet {
    let mut set = NodeSet::EMPTY;
    nodes.iter().for_each(|&node| set.insert(node));
    set
}

fn token(number: u64) -> Agreement {
    Agreement::Token(FencingToken::from_u64(number))
}

/// A round of five nodes that all count, and of which the first have granted so.
struct Round {
    fence: Fence,
    silent: NodeSet,
}

impl Round {
    fn of(replies: &[u64]) -> Self {
        let mut round = Round {
            fence: Fence::new(Quorum::of(5), REACH),
            silent: NodeSet::first(5),
        };
        for (node, &counter) in replies.iter().enumerate() {
            round.grant(node, counter);
        }
        round
    }

    fn grant(&mut self, node: usize, counter: u64) {
        self.silent.remove(node);
        self.fence.granted(node, counter);
    }

    fn decide(&mut self) -> Agreement {
        self.fence.decide(NodeSet::first(5), self.silent)
    }
}

#[test]
fn one_value_from_a_quorum_is_the_token_whatever_the_others_say() {
    assert_eq!(Round::of(&[7, 7, 7]).decide(), token(7));
    assert_eq!(Round::of(&[9, 7, 7, 1, 7]).decide(), token(7));
}

#[test]
fn fewer_grants_than_a_quorum_decide_nothing() {
    assert_eq!(Round::of(&[7, 7]).decide(), Agreement::Open);
    assert_eq!(Round::of(&[]).decide(), Agreement::Open);
}

#[test]
fn without_agreement_the_lowest_replies_are_raised_to_their_largest() {
    let raise = Agreement::Raise {
        to: 8,
        nodes: set(&[0, 2]),
    };
    assert_eq!(Round::of(&[5, 8, 5]).decide(), raise);
    let raise = Agreement::Raise {
        to: 5,
        nodes: set(&[2, 3]),
    };
    assert_eq!(Round::of(&[5, 8, 3, 2]).decide(), raise);
}

#[test]
fn it_is_asked_for_once_and_decided_when_all_have_acknowledged() {
    let mut round = Round::of(&[5, 8, 5]);
    round.decide();
    assert_eq!(round.decide(), Agreement::Open);
    round.fence.raised(0, 8, true);
    assert_eq!(round.decide(), Agreement::Open);
    assert_eq!(round.fence.raising(), set(&[2]));
    round.fence.raised(2, 8, true);
    assert_eq!(round.decide(), token(8));
}

#[test]
fn a_node_is_raised_by_the_reach_and_the_second_that_its_clock_may_be_into() {
    // By its number: 2^20 is part of what nodes and clients agree on.
    let far = 10 + REACH + 1_048_576;
    let raise = Agreement::Raise {
        to: far,
        nodes: set(&[0, 1]),
    };
    assert_eq!(Round::of(&[10, 10, far]).decide(), raise);
    assert_eq!(Round::of(&[10, 10, far + 1]).decide(), Agreement::Open);
    assert_eq!(
        Round::of(&[10, 10, far + 1, far + 1, far * 9]).decide(),
        Agreement::Impossible,
        "two and two and one that are too far apart"
    );
}

#[test]
fn a_late_grant_that_makes_an_agreement_wins_against_the_raise() {
    let mut round = Round::of(&[5, 8, 5]);
    round.decide();
    round.grant(3, 5);
    assert_eq!(round.decide(), token(5));
}

#[test]
fn a_late_grant_below_the_target_is_raised_too() {
    let mut round = Round::of(&[5, 8, 6]);
    round.decide();
    round.grant(3, 7);
    assert_eq!(
        round.decide(),
        Agreement::Raise {
            to: 8,
            nodes: set(&[3])
        }
    );
    round.fence.raised(3, 8, true);
    round.fence.raised(0, 8, true);
    assert_eq!(round.decide(), token(8), "one of the four may stay silent");
}

#[test]
fn a_refused_raise_takes_the_node_out() {
    let mut round = Round::of(&[5, 8, 5, 8]);
    assert_eq!(
        round.decide(),
        Agreement::Raise {
            to: 8,
            nodes: set(&[0, 2])
        }
    );
    round.fence.raised(0, 8, false);
    assert_eq!(round.fence.gone, set(&[0]));
    assert_eq!(round.decide(), Agreement::Open);
    round.fence.raised(2, 8, true);
    assert_eq!(round.decide(), token(8));
    let mut round = Round::of(&[5, 8, 5]);
    round.decide();
    round.silent = NodeSet::EMPTY;
    round.fence.raised(0, 8, false);
    assert_eq!(round.decide(), Agreement::Impossible);
}

#[test]
fn a_raise_without_an_answer_leaves_the_grant_for_what_it_stored() {
    let mut round = Round::of(&[5, 8, 5]);
    round.decide();
    round.fence.unraised(0);
    assert_eq!(round.decide(), Agreement::Open, "two more may grant 5 or 8");
    round.grant(4, 5);
    assert_eq!(round.decide(), token(5));
    let mut round = Round::of(&[5, 8, 5]);
    round.decide();
    round.silent = NodeSet::EMPTY;
    round.fence.unraised(0);
    assert_eq!(round.decide(), Agreement::Impossible);
}

#[test]
fn a_node_without_a_vote_is_neither_counted_nor_raised() {
    let mut round = Round::of(&[7, 7, 7]);
    let counted = set(&[0, 1, 3, 4]);
    let open = round.fence.decide(counted, round.silent);
    assert_eq!(open, Agreement::Open);
    round.grant(3, 9);
    let raise = Agreement::Raise {
        to: 9,
        nodes: set(&[0, 1]),
    };
    assert_eq!(round.fence.decide(counted, round.silent), raise);
}

#[test]
fn even_numbers_of_nodes_and_single_ones_have_tokens_too() {
    let mut one = Fence::new(Quorum::of(1), REACH);
    one.granted(0, 3);
    assert_eq!(one.decide(NodeSet::first(1), NodeSet::EMPTY), token(3));
    let mut four = Fence::new(Quorum::of(4), REACH);
    [3, 3, 4]
        .iter()
        .enumerate()
        .for_each(|(node, &c)| four.granted(node, c));
    let raise = Agreement::Raise {
        to: 4,
        nodes: set(&[0, 1]),
    };
    assert_eq!(four.decide(NodeSet::first(4), NodeSet::EMPTY), raise);
}

#[test]
fn the_largest_counter_is_spread_to_where_it_is_not_known_to_be() {
    let mut round = Round::of(&[5, 8, 5]);
    round.decide();
    round.fence.raised(0, 8, true);
    let spread = round.fence.spread(FencingToken::NONE);
    let hints: Vec<_> = (0..5).map(|node| spread.hint(node)).collect();
    assert_eq!(hints, [None, None, Some(8), Some(8), Some(8)]);
    let nothing = Round::of(&[]).fence.spread(FencingToken::NONE);
    assert_eq!(nothing.hint(0), None);
}

#[test]
fn a_counter_far_ahead_is_not_spread() {
    let round = Round::of(&[5, 5, 5, 900]);
    let spread = round.fence.spread(FencingToken::from_u64(5));
    assert_eq!(spread.value(), 5);
    assert_eq!(spread.hint(3), None);
    assert_eq!(spread.hint(4), Some(5));
    let undecided = Round::of(&[900, 5, 60]).fence;
    assert_eq!(undecided.spread(FencingToken::NONE).value(), 60);
}

#[test]
fn a_clock_far_ahead_costs_the_others_no_vote() {
    let ahead = 3600 << 20;
    // Nobody would take the value of the first two: the others' grants stand and are waited for.
    let mut round = Round::of(&[ahead + 5, ahead + 5, 5]);
    assert_eq!(round.decide(), Agreement::Open);
    round.grant(3, 5);
    assert_eq!(round.decide(), Agreement::Open);
    round.grant(4, 5);
    assert_eq!(round.decide(), token(5));
    // Three that are ahead agree among themselves.
    let raise = Agreement::Raise {
        to: ahead + 6,
        nodes: set(&[0, 2]),
    };
    let mut three = Round::of(&[ahead + 5, ahead + 6, ahead + 5, 5]);
    assert_eq!(three.decide(), raise);
    // Without the third good one there is no token.
    let mut two = Round::of(&[ahead, ahead, 5, 5]);
    two.silent = NodeSet::EMPTY;
    assert_eq!(two.decide(), Agreement::Impossible);
}

/// Every way in which five nodes can reply with three values, in every order of arrival that
/// matters: each decision rests on a quorum that stores the token, and falls after at most one
/// set of raises when nothing fails.
#[test]
fn every_round_of_three_values_ends_in_a_token_that_a_quorum_stores() {
    for case in 0..4_usize.pow(5) {
        let replies: Vec<u64> = (0..5).map(|n| (case / 4_usize.pow(n) % 4) as u64).collect();
        let granting: Vec<usize> = (0..5).filter(|&n| replies[n] > 0).collect();
        let mut fence = Fence::new(Quorum::of(5), REACH);
        let mut stored = replies.clone();
        let mut decided = None;
        for (position, &node) in granting.iter().enumerate() {
            fence.granted(node, replies[node]);
            let awaited = set(&granting[position + 1..]);
            match fence.decide(NodeSet::first(5), awaited) {
                Agreement::Token(token) => decided = Some(u64::from(token)),
                Agreement::Raise { to, nodes } => {
                    assert!(position >= 2, "no raise before a quorum has granted");
                    for node in nodes.iter() {
                        stored[node] = stored[node].max(to);
                        fence.raised(node, to, true);
                    }
                    match fence.decide(NodeSet::first(5), awaited) {
                        Agreement::Token(token) => decided = Some(u64::from(token)),
                        other => panic!("{replies:?}: {other:?} after the raises"),
                    }
                }
                Agreement::Open => assert!(position < 2, "{replies:?}"),
                Agreement::Impossible => assert!(granting.len() < 3, "{replies:?}"),
            }
            if decided.is_some() {
                break;
            }
        }
        assert_eq!(decided.is_some(), granting.len() >= 3, "{replies:?}");
        if let Some(token) = decided {
            let quorum =
                (0..5).filter(|&n| replies[n] > 0 && replies[n] <= token && token <= stored[n]);
            assert!(quorum.count() >= 3, "{replies:?}: {token}");
        }
    }
}

proptest! {
    /// Whatever order grants, raises, refusals and failures come in, and whatever has a vote:
    /// a token rests on a quorum W of counted nodes whose key is ours as far as anybody knows,
    /// with T at least every reply of W and stored by all of W; and nothing is raised twice.
    #[test]
    fn a_token_is_stored_by_a_counted_quorum(
        nodes in 1usize..=7,
        replies in prop::collection::vec(1u64..6, 7),
        counted in any::<u8>(),
        events in prop::collection::vec((0usize..7, 0u8..5), 0..60),
    ) {
        let quorum = Quorum::of(nodes);
        let mut counted_set = NodeSet::EMPTY;
        (0..nodes).filter(|n| counted >> n & 1 == 1).for_each(|n| counted_set.insert(n));
        let mut fence = Fence::new(quorum, REACH);
        let mut granted = NodeSet::EMPTY;
        let mut refused = NodeSet::EMPTY;
        let mut stored = replies.clone();
        let mut pending: Vec<(usize, u64)> = Vec::new();
        let mut asked = std::collections::HashSet::new();
        for (node, event) in events {
            let node = node % nodes;
            let raise = pending.iter().position(|(of, _)| *of == node);
            match (event, raise) {
                (0, _) => {
                    granted.insert(node);
                    fence.granted(node, replies[node]);
                }
                (1 | 2, Some(raise)) => {
                    let (_, to) = pending.remove(raise);
                    stored[node] = stored[node].max(to);
                    fence.raised(node, to, true);
                }
                (3, Some(raise)) => {
                    let (_, to) = pending.remove(raise);
                    refused.insert(node);
                    fence.raised(node, to, false);
                }
                (4, Some(raise)) => {
                    pending.remove(raise);
                    fence.unraised(node);
                }
                _ => {}
            }
            match fence.decide(counted_set, quorum.all().minus(granted)) {
                Agreement::Token(token) => {
                    let to = u64::from(token);
                    let able = granted.and(counted_set).minus(refused);
                    let holding = able.iter().filter(|&n| replies[n] <= to && to <= stored[n]);
                    prop_assert!(holding.count() >= quorum.needed());
                    break;
                }
                Agreement::Raise { to, nodes } => {
                    for node in nodes.iter() {
                        prop_assert!(granted.and(counted_set).minus(refused).contains(node));
                        prop_assert!(asked.insert((node, to)), "asked twice");
                        pending.push((node, to));
                    }
                }
                Agreement::Open | Agreement::Impossible => {}
            }
        }
    }
}
