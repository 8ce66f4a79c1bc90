//! Callers and the engine's thread share one engine behind a lock that callers only try: is nothing
//! ever left lying?
//!
//! `model.rs` has each step that another thread can see of `Handle::send`, `serve_here`,
//! `Runner::serve_here` and the loop of `engine/thread.rs`; every order of these steps is searched.
//! At rest, when everybody has returned or waits, there must be no command in the queue, no event in
//! the inbox, no alarm that is not set, none that has rung unheard, and no end that was not begun.
//! Each rule that keeps it so is broken once, and the search must find what comes of it.
//!
//! A model is worth something as long as it is of this code, so the lines that it stands for are
//! looked up in the sources. Tier: two callers, and three that ask no nodes; three of all kinds
//! under QUORUMLOCK_FULL=1.

mod model;

use std::collections::{HashSet, VecDeque};

use model::{Breach, Scene, State};

/// All states that can be reached from the beginning. What is wrong with one of those at rest,
/// if any is; and how many there are.
fn search(scene: Scene) -> (Option<(&'static str, State)>, usize) {
    let first = State::new(scene);
    let mut seen = HashSet::from([first]);
    let mut open = VecDeque::from([first]);
    while let Some(state) = open.pop_front() {
        let next = state.steps(scene);
        if next.is_empty()
            && let Some(wrong) = state.wrong_at_rest()
        {
            return (Some((wrong, state)), seen.len());
        }
        open.extend(next.into_iter().filter(|state| seen.insert(*state)));
    }
    (None, seen.len())
}

fn scenes(breach: Option<Breach>) -> impl Iterator<Item = Scene> {
    let full = std::env::var("QUORUMLOCK_FULL").is_ok_and(|value| value == "1");
    let scene = move |callers, alarm, leave, quiet| Scene {
        callers,
        alarm,
        leave,
        quiet,
        breach,
    };
    let quick = [
        scene(3, false, false, true),
        scene(2, true, false, true),
        scene(2, false, false, false),
        scene(2, true, true, false),
    ];
    let long = full.then_some(scene(3, true, false, false));
    quick.into_iter().chain(long)
}

#[test]
fn in_no_order_of_steps_is_anything_left_lying() {
    for scene in scenes(None) {
        let (found, states) = search(scene);
        assert_eq!(found, None, "{scene:?}");
        eprintln!("{scene:?}: {states} states");
        assert!(states > 2_000, "a search of {states} states");
    }
}

#[test]
fn each_rule_is_needed() {
    for breach in Breach::ALL {
        let found = scenes(Some(breach)).find_map(|scene| search(scene).0);
        let (wrong, _) = found.unwrap_or_else(|| panic!("{breach:?} goes unheard"));
        assert_eq!(wrong, breach.leaves(), "{breach:?}");
    }
}

#[test]
fn the_model_is_of_this_code() {
    let parts = [
        (
            "src/engine/handle.rs",
            "if commands.is_crowded() || !serve_here(seat) || commands.len() > 0 { commands.ring(); }",
        ),
        (
            "src/engine/handle.rs",
            "let Ok(mut engine) = runner.try_lock() else { return false; }; \
             let inbox = engine.inbox(); let served = engine.serve_here(); drop(engine);",
        ),
        ("src/engine/handle.rs", "served && inbox.is_empty()"),
        (
            "src/engine/runner.rs",
            "let all = self.commands.take(&mut self.batch, COMMANDS); \
             if !all { self.commands.ring(); }",
        ),
        (
            "src/engine/runner.rs",
            "if self.end.is_some() || crowd || self.is_late() { return false; }",
        ),
        (
            "src/engine/runner.rs",
            "let earlier = next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed)); \
             !earlier",
        ),
        (
            "src/engine/thread.rs",
            "biased; () = commands.rung() => false, () = inbox.arrived() => false, \
             () = alarm.ring() => true,",
        ),
        (
            "src/engine/thread.rs",
            "Err(TryLockError::WouldBlock) if wait => runner.lock().map(Some).map_err(drop), \
             Err(TryLockError::WouldBlock) => Ok(None),",
        ),
    ];
    for (file, part) in parts {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = std::fs::read_to_string(path).expect("a source of this crate");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let stands = words(&text).contains(&words(part));
        assert!(
            stands,
            "{file} has changed, and tests/callers/model.rs is to change with it: {part}"
        );
    }
}
