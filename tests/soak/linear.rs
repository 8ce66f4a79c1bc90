//! Is there an order in which a lock could have done all this?
//!
//! The lock with fencing tokens as a sequential machine:
//!
//! ```text
//!   grant(token)   needs: nobody holds it, and the token is larger than the last one
//!                  then:  this token holds it, and is the last one
//!   end(token)     needs: this token holds it
//!                  then:  nobody does
//! ```
//!
//! A history is linearizable if each operation can be given a moment inside its interval so that
//! the machine takes them in the order of these moments (Herlihy and Wing). In general that is a
//! search, and `search.rs` has it. For this machine there is only one order to try: tokens grow, so
//! grants come in the order of their tokens, and each end before the next grant. Giving each
//! operation of that order the earliest moment that is left is then the best that can be done: a
//! later one leaves less to those behind. `fabricated.rs` compares the two.
//!
//! **What nobody was told of is left out**: a grant whose worker was killed before it could note it.
//! That hides nothing. A history with such a grant in it has an order only if the same one without
//! it has: the machine minds no gap between two tokens, and nobody else can end that grant.

use std::fmt;

/// The end of time: an operation that may still be under way.
pub const OPEN: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Grant,
    End,
}

/// One operation: it took effect at some moment from `from` to `to`, in nanoseconds of the boot
/// clock. One whose `to` is [`OPEN`] may not have taken effect at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub what: What,
    pub token: u64,
    pub process: u32,
    pub from: u64,
    pub to: u64,
}

/// What is asked of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Nobody holds the lock beside its holder, and tokens grow from grant to grant.
    Lock,
    /// Tokens grow. Where server clocks are set no more is promised (P14).
    Tokens,
}

/// Why there is no such order. Each carries the operations that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// One token, twice.
    Repeated(Op, Op),
    /// The second was granted and the first was not over yet.
    TwoHolders(Op, Op),
    /// The first was granted before the second was asked for, and has the larger token.
    Backwards(Op, Op),
    /// It was said to be held to its end, but this one had been granted by then.
    Overtaken(Op, Op),
    /// Ended by a process that was not granted it, or before it was granted.
    Stray(Op),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, ops): (_, Vec<&Op>) = match self {
            Violation::Repeated(a, b) => ("one token, granted twice", vec![a, b]),
            Violation::TwoHolders(a, b) => ("granted while held", vec![a, b]),
            Violation::Backwards(a, b) => ("a later grant has a smaller token", vec![a, b]),
            Violation::Overtaken(a, b) => ("released in time, and held by another", vec![a, b]),
            Violation::Stray(a) => ("ended by somebody who did not hold it", vec![a]),
        };
        write!(f, "{what}:")?;
        ops.iter().try_for_each(|op| write!(f, "\n  {op:?}"))
    }
}

/// A grant and what ended it.
#[derive(Clone, Copy, Debug)]
struct Hold {
    grant: Op,
    end: Option<Op>,
}

/// Finds the order, or why there is none. Says how many holds there were.
///
/// # Errors
/// The first violation in the order of tokens.
pub fn check(ops: &[Op], promise: Promise) -> Result<usize, Violation> {
    let holds = holds(ops)?;
    let mut now = 0;
    // What the next grant has to come after, and why.
    let mut wall: Option<(Op, What)> = None;
    for hold in &holds {
        if let Some((before, what)) = wall
            && hold.grant.to < now
        {
            return Err(match what {
                What::Grant => Violation::Backwards(before, hold.grant),
                What::End => Violation::TwoHolders(before, hold.grant),
            });
        }
        if hold.grant.from >= now {
            now = hold.grant.from;
            wall = Some((hold.grant, What::Grant));
        }
        if promise == Promise::Tokens {
            continue;
        }
        let Some(end) = hold.end else {
            // Never ended: nobody may come after it.
            (now, wall) = (OPEN, Some((hold.grant, What::End)));
            continue;
        };
        if end.to < now {
            let (before, _) = wall.unwrap_or((hold.grant, What::Grant));
            return Err(Violation::Overtaken(end, before));
        }
        if end.from >= now {
            now = end.from;
            wall = Some((end, What::End));
        }
    }
    Ok(holds.len())
}

/// The grants by their tokens, each with its end.
fn holds(ops: &[Op]) -> Result<Vec<Hold>, Violation> {
    let mut sorted = ops.to_vec();
    sorted.sort_by_key(|op| (op.token, op.what == What::End));
    let mut holds: Vec<Hold> = Vec::new();
    for op in sorted {
        let last = holds.last_mut().filter(|hold| hold.grant.token == op.token);
        match (op.what, last) {
            (What::Grant, None) => holds.push(Hold {
                grant: op,
                end: None,
            }),
            (What::Grant, Some(hold)) => return Err(Violation::Repeated(hold.grant, op)),
            (What::End, Some(hold)) if hold.end.is_none() && hold.grant.process == op.process => {
                hold.end = Some(op);
            }
            (What::End, _) => return Err(Violation::Stray(op)),
        }
    }
    Ok(holds)
}
