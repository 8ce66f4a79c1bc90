//! What the search is asked, and what it must find.
//!
//! In everyday runs at a small size; `QUORUMLOCK_FULL=1` searches the larger ones, for which a
//! release build is the better choice:
//! `QUORUMLOCK_FULL=1 cargo test --release --lib quorum::model -- --nocapture`.

use super::world::World;
use super::*;
use crate::quorum::search::{Found, full, search};

/// Two clients, a round each, on whole clocks.
const TWO: Scenario = Scenario {
    rule: Rule::Right,
    clients: 2,
    cold: false,
    rounds: 1,
    extensions: 0,
    ttl: 2,
    drift: 0,
    fencing: false,
    losses: 0,
    loss: Loss::Empty,
    breaks: 0,
    strays: false,
    late: 0,
    deletes: false,
    releases: false,
    to_the_end: false,
    prefix: &[],
    begins: 0,
    horizon: 3,
};

fn run(scenario: &Scenario, cap: usize) -> Found<Step> {
    let begin = std::time::Instant::now();
    let found = search::<World>(scenario, cap);
    println!("{scenario:?}\n  {found} in {:.1?}", begin.elapsed());
    found
}

/// Nothing is wrong, and all was looked at.
fn sound(scenario: &Scenario) {
    let found = run(scenario, 40_000_000);
    assert!(found.fault.is_none(), "{found}");
    assert!(found.complete, "{found}");
}

fn broken(scenario: &Scenario, what: &str) {
    let found = run(scenario, 2_000_000);
    let said = found.fault.as_ref().map(|(said, _)| said.as_str());
    assert!(said.is_some_and(|said| said.contains(what)), "{found}");
}

/// The size of everyday runs, and that of full ones.
fn sized<T>(everyday: T, whole: T) -> T {
    if full() { whole } else { everyday }
}

/// The first client holds two nodes. Everyday runs begin here, where they would be too long else.
const HELD: &[Step] = &[Step::Begin(0), Step::Serve(0, 0), Step::Serve(0, 1)];

/// The same for one tick, and the second client asks.
const HELD_AND_ASKED: &[Step] = &[
    Step::Begin(0),
    Step::Serve(0, 0),
    Step::Serve(0, 1),
    Step::Tick { but: None },
    Step::Begin(1),
];

/// And is granted the third node.
const RIVALLED: &[Step] = &[
    Step::Begin(0),
    Step::Serve(0, 0),
    Step::Serve(0, 1),
    Step::Tick { but: None },
    Step::Begin(1),
    Step::Serve(1, 2),
];

#[test]
fn two_rounds_with_late_answers_never_both_hold() {
    sound(&Scenario {
        late: sized(1, 6),
        releases: true,
        horizon: sized(3, 4),
        ..TWO
    });
}

#[test]
fn a_second_round_of_each_never_meets_the_first() {
    sound(&Scenario {
        rounds: 2,
        late: sized(0, 1),
        releases: true,
        prefix: sized(HELD_AND_ASKED, HELD),
        horizon: sized(2, 3),
        ..TWO
    });
}

#[test]
fn an_extension_that_heals_never_meets_another_holder() {
    for loss in [Loss::Empty, Loss::Flushed] {
        sound(&Scenario {
            extensions: 1,
            losses: 1,
            loss,
            late: sized(0, 1),
            prefix: sized(RIVALLED, &[]),
            horizon: sized(2, 4),
            ..TWO
        });
    }
}

#[test]
fn nor_does_one_on_nodes_that_came_back_with_most_of_their_data() {
    for loss in [Loss::WithData, Loss::WithoutLastWrite] {
        sound(&Scenario {
            extensions: 1,
            losses: 1,
            loss,
            prefix: sized(RIVALLED, &[]),
            horizon: sized(2, 4),
            ..TWO
        });
    }
}

#[test]
fn a_node_that_restarts_gives_nobody_what_another_holds() {
    let losses = [Loss::Empty, Loss::WithoutLastWrite, Loss::Flushed];
    for (begins, loss) in losses.into_iter().flat_map(|loss| [(0, loss), (1, loss)]) {
        sound(&Scenario {
            cold: true,
            losses: 1,
            loss,
            late: sized(0, 1),
            prefix: sized(HELD, &[]),
            begins,
            horizon: begins + sized(2, 4),
            ..TWO
        });
    }
}

#[test]
fn a_connection_that_breaks_lets_nobody_in() {
    sound(&Scenario {
        breaks: sized(1, 2),
        strays: true,
        late: sized(0, 1),
        extensions: sized(0, 1),
        horizon: 2,
        ..TWO
    });
}

#[test]
fn clocks_that_drift_within_the_allowance_let_nobody_in() {
    sound(&Scenario {
        ttl: 3,
        drift: 1,
        late: sized(0, 2),
        extensions: sized(0, 1),
        horizon: sized(3, 4),
        ..TWO
    });
}

#[test]
fn tokens_grow_from_holder_to_holder() {
    sound(&Scenario {
        fencing: true,
        late: sized(1, 3),
        releases: true,
        horizon: sized(1, 3),
        ..TWO
    });
}

#[test]
fn tokens_grow_although_a_node_loses_its_counter() {
    for loss in [Loss::Empty, Loss::WithoutLastWrite, Loss::Flushed] {
        sound(&Scenario {
            fencing: true,
            losses: 1,
            loss,
            releases: true,
            late: sized(0, 1),
            prefix: sized(HELD_AND_ASKED, &[]),
            horizon: sized(1, 4),
            ..TWO
        });
    }
}

#[test]
fn a_lock_that_is_deleted_everywhere_is_never_renewed() {
    sound(&Scenario {
        clients: 1,
        deletes: true,
        extensions: 2,
        late: sized(0, 2),
        horizon: sized(0, 2),
        ..TWO
    });
}

#[test]
fn when_all_is_quiet_no_key_is_left() {
    sound(&Scenario {
        to_the_end: true,
        late: sized(0, 2),
        breaks: 1,
        releases: true,
        extensions: sized(0, 1),
        clients: sized(1, 2),
        horizon: sized(3, 2),
        ..TWO
    });
}

/// The one orphan that a client alone cannot prevent: it runs out with its TTL.
#[test]
fn bytes_of_a_dead_connection_may_leave_a_key_for_one_ttl() {
    let stray = Scenario {
        to_the_end: true,
        clients: 1,
        breaks: 1,
        strays: true,
        ..TWO
    };
    broken(&stray, "a key is left");
}

#[test]
fn without_the_restart_guard_two_hold() {
    let rule = Rule::NoRestartGuard;
    let losses = 1;
    broken(
        &Scenario {
            rule,
            losses,
            ..TWO
        },
        "two holders",
    );
}

#[test]
fn a_restart_delay_without_its_second_lets_two_hold() {
    let guarded = |rule| Scenario {
        rule,
        cold: true,
        losses: 1,
        loss: Loss::WithoutLastWrite,
        prefix: HELD,
        begins: 1,
        horizon: 2,
        ..TWO
    };
    broken(&guarded(Rule::DelayWithoutItsSecond), "two holders");
    sound(&guarded(Rule::Right));
}

#[test]
fn an_extension_that_counts_after_the_deadline_revives_a_lease() {
    let late = |rule| Scenario {
        rule,
        clients: 1,
        extensions: 1,
        ..TWO
    };
    broken(&late(Rule::ExtensionAfterDeadline), "came back");
    sound(&late(Rule::Right));
}

/// What the search found in the library itself.
#[test]
fn an_extension_that_counts_a_node_without_a_vote_lets_two_hold() {
    let healed = |loss| Scenario {
        rule: Rule::ExtensionCountsAnyNode,
        extensions: 1,
        losses: 1,
        loss,
        prefix: HELD_AND_ASKED,
        horizon: 2,
        ..TWO
    };
    broken(&healed(Loss::Empty), "two holders");
    broken(&healed(Loss::Flushed), "two holders");
}

#[test]
fn healing_without_the_deleted_votes_revives_what_was_deleted() {
    broken(
        &Scenario {
            rule: Rule::HealingWithoutDeletedVotes,
            clients: 1,
            deletes: true,
            extensions: 1,
            ..TWO
        },
        "deleted everywhere is renewed",
    );
}

#[test]
fn a_rollback_only_where_granted_leaves_a_key() {
    broken(
        &Scenario {
            rule: Rule::RollbackWhereGranted,
            clients: 1,
            to_the_end: true,
            ..TWO
        },
        "a key is left",
    );
}

#[test]
fn validity_from_the_decision_lets_two_hold() {
    let rule = Rule::ValidityFromDecision;
    broken(&Scenario { rule, ..TWO }, "two holders");
}

#[test]
fn a_quorum_of_the_reachable_lets_two_hold() {
    let rule = Rule::QuorumOfReachable;
    let breaks = 2;
    broken(
        &Scenario {
            rule,
            breaks,
            ..TWO
        },
        "two holders",
    );
}

#[test]
fn without_an_allowance_drifting_clocks_let_two_hold() {
    broken(
        &Scenario {
            rule: Rule::NoAllowance,
            ttl: 3,
            drift: 1,
            ..TWO
        },
        "two holders",
    );
}

/// A client that has lost the lock releases late, and deletes what a second one holds by then.
#[test]
fn a_release_that_deletes_anybodys_key_lets_two_hold() {
    broken(
        &Scenario {
            rule: Rule::DeleteWithoutCompare,
            rounds: 2,
            releases: true,
            prefix: HELD_AND_ASKED,
            ..TWO
        },
        "two holders",
    );
}
