//! What the workers note, and the operations that it amounts to.
//!
//! All of them append to one file, a line a note, each with the boot clock:
//!
//! ```text
//! grant    <pid> <token> <asked at> <told at>
//! held     <pid> <token> <looked at> <valid until>   the guard said so at that look
//! leaving  <pid> <token> <at>                        before the release is asked for
//! left     <pid> <token> <at> <how>                  it was held to its end, or was not, or who knows
//! ```
//!
//! An end takes effect not before the holder began to release, and without a release not before
//! the end of validity that the guard told last: also where the worker was killed. Where the guard
//! said that it had lost the lock sooner, it is not before the last look at which it had it. An end
//! that was confirmed takes effect before that was told; of others nobody knows when.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::linear::{OPEN, Op, What};

/// How a hold ended, as the product says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// Held to the end, and free now.
    InTime,
    /// The release was not confirmed, or nobody asked how it went.
    Unsure,
    /// The validity had run out.
    Expired,
    /// Over before its validity was: deleted, taken, or the clocks said that we stood still.
    Early,
}

const HOWS: [(How, &str); 4] = [
    (How::InTime, "in-time"),
    (How::Unsure, "unsure"),
    (How::Expired, "expired"),
    (How::Early, "early"),
];

/// The notes of one process.
pub struct Notes(File);

impl Notes {
    pub fn open(path: impl AsRef<Path>) -> io::Result<Notes> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Notes(file))
    }

    pub fn grant(&self, token: u64, asked: u64, told: u64) {
        self.note("grant", token, asked, &format!("{told:020}"));
    }

    pub fn held(&self, token: u64, looked: u64, valid_until: u64) {
        self.note("held", token, looked, &format!("{valid_until:020}"));
    }

    pub fn leaving(&self, token: u64, at: u64) {
        self.note("leaving", token, at, "-");
    }

    pub fn left(&self, token: u64, at: u64, how: How) {
        let name = HOWS.iter().find(|(known, _)| *known == how);
        self.note("left", token, at, name.expect("a name").1);
    }

    /// One append, so that notes of many processes do not mix. The line ends on both sides and the
    /// full stop show a note that was cut off by a kill, and keep it from spoiling another.
    fn note(&self, what: &str, token: u64, at: u64, more: &str) {
        let pid = std::process::id();
        let line = format!("\n{what} {pid} {token} {at} {more} .\n");
        (&self.0).write_all(line.as_bytes()).expect("noted");
    }
}

/// What was noted of one token.
#[derive(Clone, Debug, Default)]
struct Seen {
    grants: Vec<(u32, u64, u64)>,
    looked: u64,
    valid_until: u64,
    leaving: Option<u64>,
    left: Option<(u64, How)>,
}

/// The operations of a history, and what kinds of ends there are in it.
#[derive(Debug, Default)]
pub struct History {
    pub ops: Vec<Op>,
    pub ends: BTreeMap<How, usize>,
    /// Holds whose worker never said that it left.
    pub killed: usize,
    /// Holds of each process.
    pub by_process: HashMap<u32, usize>,
    /// Notes that were cut off.
    pub torn: usize,
}

impl History {
    pub fn read(path: &Path) -> io::Result<History> {
        let text = std::fs::read(path)?;
        Ok(History::of(&String::from_utf8_lossy(&text)))
    }

    pub fn of(text: &str) -> History {
        let mut history = History::default();
        // Process and token name a hold; two processes with one token are for the checker to see.
        let mut holds: BTreeMap<(u64, u32), Seen> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if take_in(line, &mut holds).is_none() {
                history.torn += 1;
            }
        }
        for ((token, process), seen) in holds {
            history.add(token, process, &seen);
        }
        history
    }

    /// The operations of the first holder of each lease. Others had it from him, under the numbers of
    /// the same grant: where clocks are set and somebody else is granted the lock meanwhile, those
    /// are smaller than his, and later.
    pub fn leases(&self) -> Vec<Op> {
        let grants = self.ops.iter().filter(|op| op.what == What::Grant);
        let granted: HashSet<_> = grants.map(|op| (op.token, op.process)).collect();
        let handed_on = |op: &Op| granted.contains(&(op.token.saturating_sub(1), op.process));
        self.ops
            .iter()
            .copied()
            .filter(|op| !handed_on(op))
            .collect()
    }

    fn add(&mut self, token: u64, process: u32, seen: &Seen) {
        let op = |what, from, to| Op {
            what,
            token,
            process,
            from,
            to,
        };
        let grants = seen.grants.iter();
        self.ops
            .extend(grants.map(|&(_, from, to)| op(What::Grant, from, to)));
        *self.by_process.entry(process).or_default() += seen.grants.len();
        let how = seen.left.map(|(_, how)| how);
        match how {
            Some(how) => *self.ends.entry(how).or_default() += 1,
            None => self.killed += 1,
        }
        let until = match how {
            Some(How::Early) => seen.looked,
            _ => seen.valid_until,
        };
        let from = seen.leaving.map_or(until, |leaving| leaving.min(until));
        let to = match seen.left {
            Some((at, How::InTime)) => at,
            _ => OPEN,
        };
        self.ops.push(op(What::End, from, to));
    }
}

/// `None` for a line that is not whole.
fn take_in(line: &str, holds: &mut BTreeMap<(u64, u32), Seen>) -> Option<()> {
    let fields: Vec<_> = line.split(' ').collect();
    let [what, pid, token, at, more, "."] = fields[..] else {
        return None;
    };
    let (pid, token, at) = (pid.parse().ok()?, token.parse().ok()?, at.parse().ok()?);
    let how = HOWS.iter().find(|(_, name)| *name == more);
    let number = more.parse().ok();
    let seen = holds.entry((token, pid)).or_default();
    match what {
        "grant" => seen.grants.push((pid, at, number?)),
        "held" => {
            seen.looked = seen.looked.max(at);
            seen.valid_until = seen.valid_until.max(number?);
        }
        "leaving" => seen.leaving = Some(at),
        "left" => seen.left = Some((at, how?.0)),
        _ => return None,
    }
    Some(())
}
