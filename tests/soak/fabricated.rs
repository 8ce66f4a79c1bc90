//! The checker is checked: histories that are made up, good and bad.

use crate::helpers::Dice;
use crate::history::History;
use crate::linear::{OPEN, Op, Promise, Violation, What, check};
use crate::search::has_order;

const A: u32 = 1;
const B: u32 = 2;

fn grant(process: u32, token: u64, from: u64, to: u64) -> Op {
    Op {
        what: What::Grant,
        token,
        process,
        from,
        to,
    }
}

fn end(process: u32, token: u64, from: u64, to: u64) -> Op {
    Op {
        what: What::End,
        ..grant(process, token, from, to)
    }
}

/// By both checkers.
fn judged(ops: &[Op], promise: Promise) -> Result<usize, Violation> {
    let found = check(ops, promise);
    assert_eq!(found.is_ok(), has_order(ops, promise), "{ops:?}: {found:?}");
    found
}

#[test]
fn one_after_the_other_is_a_lock() {
    let ops = [
        grant(A, 1, 0, 10),
        end(A, 1, 20, 30),
        // Asked for while it was held, told before the release was.
        grant(B, 5, 5, 25),
        end(B, 5, 40, OPEN),
        grant(A, 6, 41, 50),
    ];
    assert_eq!(judged(&ops, Promise::Lock), Ok(3));
    assert_eq!(judged(&[], Promise::Lock), Ok(0));
}

#[test]
fn two_holders_are_found_by_a_nanosecond() {
    let ops = |told| {
        [
            grant(A, 1, 0, 10),
            end(A, 1, 100, OPEN),
            grant(B, 2, 5, told),
        ]
    };
    assert_eq!(judged(&ops(100), Promise::Lock), Ok(2));
    let found = judged(&ops(99), Promise::Lock);
    assert!(matches!(found, Err(Violation::TwoHolders(..))), "{found:?}");
    // Where clocks are set that is not promised.
    assert_eq!(judged(&ops(99), Promise::Tokens), Ok(2));
}

#[test]
fn a_holder_that_never_ends_has_no_heir() {
    let ops = [grant(A, 1, 0, 10), grant(B, 2, 1_000, 2_000)];
    let found = judged(&ops, Promise::Lock);
    assert!(matches!(found, Err(Violation::TwoHolders(..))), "{found:?}");
}

#[test]
fn a_later_grant_with_a_smaller_token_is_found() {
    for promise in [Promise::Lock, Promise::Tokens] {
        let ops = |asked| {
            [
                grant(A, 7, 0, 10),
                end(A, 7, 10, 12),
                grant(B, 6, asked, 20),
                end(B, 6, 0, OPEN),
            ]
        };
        let found = judged(&ops(11), promise);
        assert!(matches!(found, Err(Violation::Backwards(..))), "{found:?}");
        // Asked for at one time, either may have been first.
        assert_eq!(judged(&ops(9), promise), Ok(2));
    }
}

#[test]
fn a_token_that_comes_twice_is_found() {
    let ops = [
        grant(A, 1, 0, 10),
        end(A, 1, 11, 12),
        grant(B, 1, 20, 30),
        end(B, 1, 31, 32),
    ];
    let found = judged(&ops, Promise::Lock);
    assert!(matches!(found, Err(Violation::Repeated(..))), "{found:?}");
}

#[test]
fn a_release_by_somebody_else_is_found() {
    let ops = [grant(A, 1, 0, 10), end(B, 1, 11, 12)];
    let found = judged(&ops, Promise::Lock);
    assert!(matches!(found, Err(Violation::Stray(_))), "{found:?}");
}

/// "Held to the end" may not be said to whom another has overtaken.
#[test]
fn a_release_in_time_behind_the_next_grant_is_found() {
    let ops = |told| {
        [
            grant(A, 1, 0, 10),
            end(A, 1, 20, told),
            grant(B, 2, 15, 16),
            end(B, 2, 17, 18),
        ]
    };
    assert!(judged(&ops(30), Promise::Lock).is_err());
    let late = [
        grant(A, 1, 0, 10),
        // Its validity had run out at 12, and it still says so at 40.
        end(A, 1, 12, OPEN),
        grant(B, 2, 30, 31),
        end(B, 2, 20, 25),
    ];
    let found = judged(&late, Promise::Lock);
    assert!(matches!(found, Err(Violation::Overtaken(..))), "{found:?}");
}

/// On small histories drawn by chance, most of them a little wrong, both checkers say the same.
#[test]
fn the_order_of_tokens_finds_what_a_search_of_all_orders_finds() {
    let mut dice = Dice(8);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..20_000 {
        let holds = 1 + dice.below(5);
        let mut now = 0;
        let mut ops = Vec::new();
        for token in 1..=holds {
            let process = u32::try_from(dice.below(3)).expect("small");
            // True moments first, and then intervals around them that are too narrow now and then.
            let (taken, over) = (now + dice.below(4), now + 4 + dice.below(4));
            let around = |dice: &mut Dice, at: u64| {
                let from = (at + dice.below(2)).saturating_sub(dice.below(6));
                (from, (at + dice.below(6)).max(from))
            };
            let (from, to) = around(&mut dice, taken);
            ops.push(grant(process, token, from, to));
            let (from, to) = around(&mut dice, over);
            let open = dice.below(3) == 0;
            match dice.below(30) {
                0 => {}
                _ => ops.push(end(process, token, from, if open { OPEN } else { to })),
            }
            now = over.saturating_sub(dice.below(3));
        }
        for promise in [Promise::Lock, Promise::Tokens] {
            match judged(&ops, promise) {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
        }
    }
    assert!(good > 2_000 && bad > 2_000, "{good} good, {bad} bad");
}

#[test]
fn who_has_it_from_another_of_its_process_counts_with_that_ones_grant() {
    // 10 is overtaken by 90 and handed on as 11, which is later than 90, and smaller.
    let text = "\ngrant 1 10 5 9 .\n\nheld 1 10 10 00100 .\n\ngrant 2 90 20 30 .\n\n\
        held 2 90 31 00300 .\n\ngrant 1 11 40 50 .\n\nheld 1 11 51 00100 .\n";
    let history = History::of(text);
    let found = check(&history.ops, Promise::Tokens);
    assert!(matches!(found, Err(Violation::Backwards(..))), "{found:?}");
    assert_eq!(check(&history.leases(), Promise::Tokens), Ok(2));
}

#[test]
fn notes_become_operations_and_those_of_the_killed_end_with_their_validity() {
    let text = "\ngrant 1 10 5 9 .\n\nheld 1 10 10 00100 .\n\nheld 1 10 20 00110 .\n\
        \ngrant 2 11 50 60 .\n\nheld 2 11 61 00200 .\n\nleaving 2 11 70 - .\n\nleft 2 11 80 in-time .\n\
        \ngrant 2 12 90 95 .\n\nheld 2 12 96 00300 .\n\nleft 2 12 130 early .\n\
        \ngrant 2 13 140 150";
    let history = History::of(text);
    assert_eq!(history.torn, 1);
    assert_eq!(history.killed, 1);
    let ends: Vec<_> = history
        .ops
        .iter()
        .filter(|op| op.what == What::End)
        .map(|op| (op.token, op.from, op.to))
        .collect();
    assert_eq!(ends, [(10, 110, OPEN), (11, 70, 80), (12, 96, OPEN)]);
    // 11 was granted at 60 at the latest, and 10 was valid until 110.
    let found = check(&history.ops, Promise::Lock);
    assert!(matches!(found, Err(Violation::TwoHolders(..))), "{found:?}");
}
