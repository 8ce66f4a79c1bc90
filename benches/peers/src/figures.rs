//! What a turn comes to, out of what the workers saw.

use std::collections::BTreeMap;

use crate::process::Hold;

/// Figures by the key of their column.
pub type Figures = BTreeMap<&'static str, f64>;

/// One hold of the lock, whoever had it.
#[derive(Clone, Copy, Debug)]
struct Held {
    who: u64,
    got: u64,
    done: u64,
}

/// What came of one key that several tasks, or several processes, wanted for `wall` microseconds
/// from `begin` on. Each of the slices in `seen` is what one process saw; where there is but one,
/// its tasks are told apart.
pub fn contended(seen: &[Vec<Hold>], takers: usize, begin: u64, wall: u64) -> Figures {
    let end = begin + wall;
    let apart = seen.len() == 1;
    let mut holds = Vec::new();
    let mut longest = 0;
    let mut each = BTreeMap::new();
    for (process, own) in seen.iter().enumerate() {
        for &(task, asked, got, done) in own {
            let who = if apart { task } else { process as u64 };
            let until = if got == 0 { end } else { got };
            longest = longest.max(until.saturating_sub(asked));
            if got != 0 {
                holds.push(Held { who, got, done });
                *each.entry(who).or_insert(0_u64) += 1;
            }
        }
    }
    holds.sort_unstable_by_key(|hold| (hold.got, hold.done));
    let (handed, mut gaps, overlaps) = hand_overs(&holds);
    gaps.sort_unstable();
    let held: u64 = holds
        .iter()
        .map(|hold| hold.done.min(end).saturating_sub(hold.got))
        .sum();
    let least = if each.len() < takers {
        None
    } else {
        each.values().min()
    };
    let seconds = wall as f64 / 1e6;
    Figures::from([
        ("hand_overs", handed as f64 / seconds),
        ("handed", handed as f64),
        ("holds", holds.len() as f64 / seconds),
        ("free", (1.0 - held as f64 / wall as f64).max(0.0) * 100.0),
        ("min", least.copied().unwrap_or(0) as f64),
        ("max", each.values().max().copied().unwrap_or(0) as f64),
        ("longest", longest as f64 / 1e3),
        (
            "gap",
            gaps.get(gaps.len() / 2).map_or(f64::NAN, |gap| *gap as f64),
        ),
        ("overlaps", overlaps as f64),
    ])
}

/// How often it went to somebody else, how long it lay free each time, and how often a second
/// holder came before the first had let go. The holds are in order.
fn hand_overs(holds: &[Held]) -> (u64, Vec<u64>, u64) {
    let (mut handed, mut gaps, mut overlaps) = (0, Vec::new(), 0);
    let mut free_at = 0;
    for (index, hold) in holds.iter().enumerate() {
        if index > 0 {
            overlaps += u64::from(hold.got < free_at);
            if holds[index - 1].who != hold.who {
                handed += 1;
                gaps.push(hold.got.saturating_sub(free_at));
            }
        }
        free_at = free_at.max(hold.done);
    }
    (handed, gaps, overlaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_goes_round_is_told_from_one_that_is_taken_back() {
        let seen = [vec![
            (0, 0, 100, 200),
            (0, 210, 220, 320),
            (1, 0, 400, 500),
            (2, 0, 0, 0),
        ]];
        let figures = contended(&seen, 3, 0, 1_000);
        assert_eq!(figures["handed"], 1.0);
        assert_eq!(figures["hand_overs"], 1_000.0);
        assert_eq!(figures["gap"], 80.0);
        assert!((figures["free"] - 70.0).abs() < 1e-6);
        assert_eq!((figures["min"], figures["max"]), (0.0, 2.0));
        // The one that still waits has waited longest.
        assert_eq!(figures["longest"], 1.0);
        assert_eq!(figures["overlaps"], 0.0);
    }

    #[test]
    fn processes_are_told_apart_and_two_holders_are_seen() {
        let seen = [vec![(0, 0, 100, 200)], vec![(0, 0, 190, 300)]];
        let figures = contended(&seen, 2, 0, 1_000);
        assert_eq!(figures["handed"], 1.0);
        assert_eq!(figures["overlaps"], 1.0);
        assert_eq!((figures["min"], figures["max"]), (1.0, 1.0));
    }
}
