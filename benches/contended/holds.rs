//! Who held the lock when, as several processes tell it.

use std::time::Duration;

/// One time of holding, on the machine's boot clock in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    pub process: usize,
    pub from: u64,
    pub until: u64,
}

/// What they amount to.
pub struct Sum {
    /// How often the lock went to another process.
    pub handed: usize,
    /// How long it lay free each time.
    pub gaps: Vec<Duration>,
    pub least: usize,
    pub most: usize,
}

/// # Panics
/// If two of them overlap.
pub fn sum(mut holds: Vec<Hold>, processes: usize) -> Sum {
    holds.sort_unstable_by_key(|hold| hold.from);
    let mut gaps = Vec::new();
    for pair in holds.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        assert!(before.until <= after.from, "two holders: {pair:?}");
        if before.process != after.process {
            gaps.push(Duration::from_nanos(after.from - before.until));
        }
    }
    let of = |process| holds.iter().filter(|hold| hold.process == process).count();
    Sum {
        handed: gaps.len(),
        gaps,
        least: (0..processes).map(of).min().unwrap_or(0),
        most: (0..processes).map(of).max().unwrap_or(0),
    }
}
