//! What each cell must come to, by the rules of the protocol. Written before any of it is run.
//!
//! With one or two bad nodes of five no call fails, whatever the fault. With three, each fault gets
//! what it deserves.

use std::fmt;

use quorumlock::{FaultKind, Loss};

use crate::fault::{Fault, Phase};

/// How a cell's operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Granted,
    /// Each bad node is named with this fault.
    Unavailable(FaultKind),
    Rejected(FaultKind),
    /// A quorum extended the lease after the fault had come.
    Held,
    Lost(Loss),
    Extended,
    /// The first extension is not confirmed, a later one is; the lock is held throughout.
    ExtendedLater,
    /// The lock is held until its old deadline.
    Unextended,
    Released,
    Unreleased,
    /// The release finds keys gone from a quorum of nodes. It says so where enough of them are
    /// among the quorum that answers first: nobody waits for the others.
    FoundGone(Loss),
}

/// How long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Less than one node timeout: nobody is waited for.
    Prompt,
    /// The wait of an acquire, and one node timeout.
    Budget,
    /// The validity of the lease.
    Validity,
}

/// What is left of the lock's keys once the fault is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Nothing,
    /// One key on each bad node, until its TTL ends.
    UntilTtl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub outcome: Outcome,
    pub bound: Bound,
    pub left: Left,
}

pub fn expected(fault: Fault, bad: usize, phase: Phase) -> Expected {
    let (outcome, bound) = match bad {
        1 | 2 => (by_the_others(phase), Bound::Prompt),
        _ => by_nobody(fault, phase),
    };
    // A replica answers a delete with READONLY: that is an answer, and nothing is owed after it.
    let left = match (fault, phase) {
        (Fault::Replica, Phase::Hold | Phase::Extend | Phase::Release) => Left::UntilTtl,
        _ => Left::Nothing,
    };
    let bound = match phase {
        // The next extension is waited for.
        Phase::Hold => Bound::Validity,
        _ => bound,
    };
    Expected {
        outcome,
        bound,
        left,
    }
}

/// With a quorum of good nodes.
fn by_the_others(phase: Phase) -> Outcome {
    match phase {
        Phase::Acquire => Outcome::Granted,
        Phase::Hold => Outcome::Held,
        Phase::Extend => Outcome::Extended,
        Phase::Release => Outcome::Released,
    }
}

/// With three bad nodes of five: acquire, while held, extend, release.
fn by_nobody(fault: Fault, phase: Phase) -> (Outcome, Bound) {
    use Bound::{Budget, Prompt};
    use Outcome::{
        Extended, ExtendedLater, FoundGone, Granted, Held, Lost, Rejected, Released, Unavailable,
        Unextended, Unreleased,
    };
    let silent = |kind| {
        [
            (Unavailable(kind), Budget),
            (Lost(Loss::Expired), Budget),
            (Unextended, Budget),
            (Unreleased, Budget),
        ]
    };
    let row = match fault {
        Fault::Refused => silent(FaultKind::ConnectionRefused),
        Fault::Stopped | Fault::Blackholed => silent(FaultKind::Timeout),
        Fault::RestartedEmpty => [
            (Unavailable(FaultKind::Restarting), Budget),
            // What is set again counts, since it is inside the validity.
            (Held, Budget),
            (Extended, Prompt),
            (FoundGone(Loss::Deleted), Prompt),
        ],
        Fault::RestartedWithAof => [
            (Unavailable(FaultKind::Restarting), Budget),
            (Held, Budget),
            (Extended, Prompt),
            (Released, Prompt),
        ],
        Fault::Delayed20 | Fault::Delayed200 => [
            (Granted, Prompt),
            (Held, Prompt),
            (Extended, Prompt),
            (Released, Prompt),
        ],
        Fault::ResetLost | Fault::ResetRun => [
            (Granted, Budget),
            (Held, Budget),
            (ExtendedLater, Budget),
            // Not confirmed in time, and carried out over the next connection.
            (Unreleased, Budget),
        ],
        Fault::WrongPassword => [
            (Rejected(FaultKind::Auth), Budget),
            (Lost(Loss::Expired), Budget),
            (Unextended, Budget),
            (Unreleased, Budget),
        ],
        Fault::Replica => [
            (Rejected(FaultKind::ReadOnly), Budget),
            (Lost(Loss::Expired), Budget),
            (Unextended, Budget),
            (Unreleased, Budget),
        ],
        Fault::Evicts => [
            (Unavailable(FaultKind::OutOfMemory), Budget),
            (Lost(Loss::Deleted), Budget),
            (Lost(Loss::Deleted), Prompt),
            (FoundGone(Loss::Deleted), Prompt),
        ],
        // A quorum of clocks that jumped cannot be told from a standstill of ours.
        Fault::Forward => [
            (Granted, Prompt),
            (Lost(Loss::Frozen), Budget),
            (Lost(Loss::Frozen), Prompt),
            (FoundGone(Loss::Deleted), Prompt),
        ],
        Fault::Back => [
            (Granted, Prompt),
            (Held, Prompt),
            (Extended, Prompt),
            (Released, Prompt),
        ],
    };
    row[phase as usize]
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Granted => f.write_str("granted"),
            Outcome::Unavailable(kind) => write!(f, "`Unavailable` ({kind})"),
            Outcome::Rejected(kind) => write!(f, "`Rejected` ({kind})"),
            Outcome::Held => f.write_str("held, extended"),
            Outcome::Lost(loss) => write!(f, "lost: `{loss:?}`"),
            Outcome::Extended => f.write_str("extended"),
            Outcome::ExtendedLater => f.write_str("`Unconfirmed`, then extended"),
            Outcome::Unextended => f.write_str("`Unconfirmed`, held to its deadline"),
            Outcome::Released => f.write_str("released"),
            Outcome::Unreleased => f.write_str("`Unconfirmed`"),
            Outcome::FoundGone(loss) => write!(f, "`AlreadyLost({loss:?})`"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bound::Prompt => "prompt",
            Bound::Budget => "budget",
            Bound::Validity => "validity",
        })
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Left::Nothing => "none",
            Left::UntilTtl => "on the bad nodes, until their TTL",
        })
    }
}
