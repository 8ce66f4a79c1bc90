//! A witness outside the product, for tests with many processes: each holder notes in one file
//! when it begins and ends to act, and a checker looks for two that acted at the same time.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Nanoseconds of the boot clock (CLOCK_BOOTTIME): the same in every process of a machine, and it
/// goes on while the machine sleeps.
pub fn boot_nanos() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes into `now`, which is ours.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    assert_eq!(failed, 0, "this kernel has no boot clock");
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.expect("not negative") * 1_000_000_000 + nanos.expect("not negative")
}

/// Writes the notes of one process about one resource. Any number of processes may write to one
/// file: each note is a single append.
pub struct Witness {
    file: File,
}

impl Witness {
    pub fn open(path: impl AsRef<Path>) -> io::Result<Witness> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Witness { file })
    }

    /// Call when the lock is held, before the first act under it. `token` tells this holding from
    /// all others and has no blanks.
    pub fn enter(&self, token: &str, valid_until_nanos: u64) -> io::Result<()> {
        self.note("enter", token, valid_until_nanos)
    }

    /// Call when the lock was extended.
    pub fn extend(&self, token: &str, valid_until_nanos: u64) -> io::Result<()> {
        self.note("extend", token, valid_until_nanos)
    }

    /// Call after the last act, before the release is sent.
    pub fn leave(&self, token: &str, valid_until_nanos: u64) -> io::Result<()> {
        self.note("leave", token, valid_until_nanos)
    }

    fn note(&self, what: &str, token: &str, valid_until: u64) -> io::Result<()> {
        assert!(
            !token.is_empty() && !token.contains(char::is_whitespace),
            "{token:?} as a token"
        );
        // A line end on both sides: whoever was killed half-way through a note spoils no other.
        // The last field has a fixed width, so that a torn one shows.
        let (pid, now) = (std::process::id(), boot_nanos());
        let line = format!("\n{what} {pid} {token} {now} {valid_until:020}\n");
        (&self.file).write_all(line.as_bytes())
    }
}

/// One holding, from entering to leaving or to the end of its validity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub pid: u32,
    pub token: String,
    pub from: u64,
    pub valid_until: u64,
    pub left: Option<u64>,
}

impl Claim {
    /// When this holder had to be done: it left, or its validity ended.
    pub fn until(&self) -> u64 {
        self.left
            .map_or(self.valid_until, |left| left.min(self.valid_until))
    }
}

/// What a clean file holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    pub claims: usize,
    /// Holders that never left: killed, or still at it.
    pub unfinished: usize,
    /// Holders that left after the end of their validity.
    pub overstayed: usize,
    /// Notes that were cut off by a kill.
    pub torn: usize,
    /// Holdings of each process.
    pub by_pid: HashMap<u32, usize>,
}

#[derive(Debug)]
pub enum Violation {
    /// The second began before the first had to be done.
    Overlap(Box<Claim>, Box<Claim>),
    /// The same token entered twice.
    Repeated(Box<Claim>),
    /// Left or extended without having entered.
    Stray(String),
    Unreadable(io::Error),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Overlap(first, second) => {
                let shared = first.until().min(second.until()) - second.from;
                write!(f, "two holders for {shared} ns:\n  {first:?}\n  {second:?}")
            }
            Violation::Repeated(claim) => write!(f, "entered twice: {claim:?}"),
            Violation::Stray(line) => write!(f, "never entered: {line:?}"),
            Violation::Unreadable(error) => write!(f, "no notes: {error}"),
        }
    }
}

impl std::error::Error for Violation {}

/// Reads the notes and makes sure that no two holders' times, each from entering to the earlier
/// of leaving and the end of validity, share a nanosecond.
pub fn check(path: impl AsRef<Path>) -> Result<Summary, Violation> {
    let text = std::fs::read(path).map_err(Violation::Unreadable)?;
    let text = String::from_utf8_lossy(&text);
    let mut summary = Summary::default();
    let mut claims: Vec<Claim> = Vec::new();
    let mut known: HashMap<(u32, &str), usize> = HashMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Some(note) = Note::read(line) else {
            summary.torn += 1;
            continue;
        };
        match (note.what, known.get(&(note.pid, note.token))) {
            ("enter", None) => {
                known.insert((note.pid, note.token), claims.len());
                claims.push(note.claim());
            }
            ("enter", Some(_)) => return Err(Violation::Repeated(Box::new(note.claim()))),
            (_, None) => return Err(Violation::Stray(line.to_owned())),
            ("leave", Some(at)) => claims[*at].left = Some(note.at),
            (_, Some(at)) => {
                let claim = &mut claims[*at];
                claim.valid_until = claim.valid_until.max(note.valid_until);
            }
        }
    }
    for claim in &claims {
        summary.claims += 1;
        summary.unfinished += usize::from(claim.left.is_none());
        summary.overstayed += usize::from(claim.left.is_some_and(|left| left > claim.valid_until));
        *summary.by_pid.entry(claim.pid).or_default() += 1;
    }
    find_overlap(claims).map_or(Ok(summary), |(a, b)| Err(Violation::Overlap(a, b)))
}

fn find_overlap(mut claims: Vec<Claim>) -> Option<(Box<Claim>, Box<Claim>)> {
    // Who entered after the end of its validity has held nothing.
    claims.retain(|claim| claim.until() > claim.from);
    claims.sort_by_key(|claim| claim.from);
    // Without an overlap each ends before the next begins, so neighbours are enough.
    let pair = claims
        .windows(2)
        .find(|pair| pair[1].from < pair[0].until())?;
    Some((Box::new(pair[0].clone()), Box::new(pair[1].clone())))
}

struct Note<'a> {
    what: &'a str,
    pid: u32,
    token: &'a str,
    at: u64,
    valid_until: u64,
}

impl<'a> Note<'a> {
    /// `None` for a line that is not whole.
    fn read(line: &'a str) -> Option<Note<'a>> {
        let fields: Vec<_> = line.split(' ').collect();
        let [
            what @ ("enter" | "extend" | "leave"),
            pid,
            token,
            at,
            valid_until,
        ] = fields[..]
        else {
            return None;
        };
        let whole = valid_until.len() == 20;
        let valid_until = valid_until.parse().ok().filter(|_| whole)?;
        Some(Note {
            what,
            pid: pid.parse().ok()?,
            token,
            at: at.parse().ok()?,
            valid_until,
        })
    }

    fn claim(&self) -> Claim {
        Claim {
            pid: self.pid,
            token: self.token.to_owned(),
            from: self.at,
            valid_until: self.valid_until,
            left: None,
        }
    }
}
