//! What the search is asked, and what it must find.
//!
//! In everyday runs at a small size; `QUORUMLOCK_FULL=1` searches the larger ones, for which a
//! release build is the better choice:
//! `QUORUMLOCK_FULL=1 cargo test --release --lib fence::model -- --nocapture`.

use super::*;
use crate::quorum::search::{Found, full, search};

const UNTIMED: Time = Time {
    horizon: 0,
    skew: [0; NODES],
    back: 0,
    restart_delay: 0,
    budget: 0,
    max_ttl: 0,
};

/// max_ttl 2 s, so restart_delay 3 s; a round decides in the second in which it began. The nodes
/// start with clocks at 4 s, so that one can be set back.
fn timed(skew: [u8; NODES], back: u8) -> Time {
    Time {
        horizon: if full() { 6 } else { 3 },
        skew: skew.map(|ahead| 4 + ahead),
        back,
        restart_delay: 3,
        budget: 0,
        max_ttl: 2,
    }
}

fn scenario(rule: Rule, counters: [u64; NODES]) -> Scenario {
    Scenario {
        rule,
        floor: Floor::EachGrant,
        actors: 2,
        counters,
        block: 1,
        hints: false,
        failures: false,
        jumps: 0,
        losses: 0,
        loss: Loss::Everything,
        time: UNTIMED,
        cap: if full() { 5_000_000 } else { 120_000 },
    }
}

/// What is lost, on how many nodes, and how the clocks stand.
fn lossy(loss: Loss, losses: u8, skew: [u8; NODES], back: u8) -> Scenario {
    let time = timed(skew, back);
    let counters = [1; NODES];
    Scenario {
        loss,
        losses,
        time,
        ..scenario(Rule::Right, counters)
    }
}

fn run(scenario: &Scenario) -> Found<Step> {
    let begin = std::time::Instant::now();
    let found = search::<World>(scenario, scenario.cap);
    println!("{scenario:?}\n  {found} in {:.1?}", begin.elapsed());
    found
}

/// Nothing is wrong, and all was looked at.
fn sound(scenario: &Scenario) {
    let found = run(scenario);
    assert!(found.fault.is_none(), "{found}");
    assert!(found.complete, "{found}");
}

/// Nothing is wrong with what was looked at.
fn sound_so_far(scenario: &Scenario) {
    let cap = if full() { scenario.cap } else { 40_000 };
    let found = run(&Scenario {
        cap,
        ..scenario.clone()
    });
    assert!(found.fault.is_none(), "{found}");
}

fn broken(scenario: &Scenario) {
    let found = run(scenario);
    assert!(found.fault.is_some(), "nothing found: {found}");
}

#[test]
fn two_rounds_have_different_tokens_in_the_order_of_a_common_node() {
    sound(&scenario(Rule::Right, [10, 0, 0]));
    sound(&scenario(Rule::Right, [1, 1, 1]));
    if full() {
        for counters in [[2, 1, 0], [10, 5, 0], [10, 10, 0], [2, 2, 1]] {
            sound(&scenario(Rule::Right, counters));
        }
    }
}

#[test]
fn blocks_of_two_rounds_do_not_overlap() {
    sound(&Scenario {
        block: 3,
        ..scenario(Rule::Right, [2, 1, 0])
    });
}

#[test]
fn raises_that_fail_and_happen_all_the_same_do_no_harm() {
    let failures = |counters| Scenario {
        failures: true,
        ..scenario(Rule::Right, counters)
    };
    sound(&failures([1, 1, 1]));
    if full() {
        sound(&failures([2, 1, 0]));
    }
}

#[test]
fn counters_that_jump_ahead_at_any_time_do_no_harm() {
    sound_so_far(&Scenario {
        jumps: 1,
        ..scenario(Rule::Right, [1, 1, 1])
    });
}

#[test]
fn hints_at_any_time_do_no_harm() {
    sound_so_far(&Scenario {
        hints: true,
        ..scenario(Rule::Right, [2, 1, 0])
    });
}

#[test]
fn three_rounds_do_no_harm_to_each_other_as_far_as_searched() {
    sound_so_far(&Scenario {
        actors: 3,
        ..scenario(Rule::Right, [2, 1, 0])
    });
}

#[test]
fn the_quorumth_largest_reply_is_no_token() {
    broken(&scenario(Rule::QuorumthLargest, [10, 0, 0]));
}

#[test]
fn the_largest_reply_without_a_raise_is_no_token() {
    broken(&scenario(Rule::NoRaise, [10, 0, 0]));
}

#[test]
fn a_raise_of_any_majority_makes_no_token() {
    broken(&scenario(Rule::AnyMajority, [10, 0, 0]));
}

#[test]
fn a_raise_that_does_not_check_the_key_makes_no_token() {
    broken(&scenario(Rule::Unconditional, [10, 0, 0]));
}

#[test]
fn lost_data_does_no_harm_while_clocks_agree_to_less_than_restart_delay() {
    for loss in [Loss::Everything, Loss::LastWrites] {
        sound(&lossy(loss, 1, [0, 0, 0], 2));
        sound(&lossy(loss, 3, [0, 0, 0], 2));
    }
    sound(&lossy(Loss::Everything, 3, [1, 0, 0], 1));
}

/// A constant difference is harmless at any size: a raise beyond a node's own clock and max_ttl
/// is refused, so no token rests on a node whose clock could not pass it in restart_delay.
#[test]
fn a_constant_difference_of_the_clocks_does_no_harm_at_any_size() {
    sound(&lossy(Loss::Everything, 1, [5, 0, 0], 0));
    sound(&lossy(Loss::Everything, 3, [5, 0, 0], 0));
}

#[test]
fn a_clock_that_comes_back_behind_by_restart_delay_repeats_tokens() {
    broken(&lossy(Loss::Everything, 3, [0, 0, 0], 3));
    broken(&lossy(Loss::Everything, 3, [2, 0, 0], 1));
    broken(&lossy(Loss::Everything, 1, [1, 0, 3], 3));
}

#[test]
fn lost_data_needs_the_restart_guard() {
    let mut scenario = lossy(Loss::Everything, 1, [1, 0, 0], 0);
    scenario.time.restart_delay = 0;
    broken(&scenario);
}

#[test]
fn the_clock_only_where_the_counter_is_missing_is_not_enough() {
    let floor = Floor::OnlyIfMissing;
    broken(&Scenario {
        floor,
        ..lossy(Loss::LastWrites, 1, [0, 0, 0], 0)
    });
    broken(&Scenario {
        floor,
        ..lossy(Loss::LastWrites, 3, [0, 0, 0], 0)
    });
}
