//! Resources that refuse stale fencing tokens.
//!
//! A lock that runs out cannot stop a holder that was paused, and that still writes when it wakes
//! up. What can stop it is the resource: every write brings the fencing token of the lock it was
//! made under, and the resource refuses a token lower than the highest that it has seen.
//!
//! ```text
//!   holder A, token 33 ──── paused ─────────────────── write, 33 ──► refused: 34 was here
//!   holder B, token 34 ─────────── write, 34 ──► accepted
//! ```
//!
//! Three rules make it work, whatever the resource:
//!
//! 1. The check and the write are one atomic step. A check beforehand proves nothing: the pause
//!    may come between the two.
//! 2. The highest token is kept as long, and as safely, as what it protects.
//! 3. Lower is refused; equal is accepted, since one holder writes many times; higher is accepted
//!    and becomes the highest. Tokens are compared per resource.
//!
//! [`FencingToken::NONE`], which a guard has where fencing is off, is refused by all of them: it
//! would pass for ever, and protect nothing.
//!
//! A resource learns of a new holder by that holder's first write. Until then a stale write still
//! passes: it comes *before* everything that the new holder has done. A holder that reads first
//! and writes later should show its token before it reads: that is what a `check` alone is for.
//!
//! | resource | where | check and write are one |
//! |---|---|---|
//! | files and all else that one process owns | [`Highest`], [`Memory`] | under a mutex |
//! | any Redis or Valkey, not only the lock's nodes | [`redis`] | in a script |
//! | PostgreSQL, feature `postgres` | `postgres` | in the caller's own transaction |
//!
//! Another store needs no more than a place for one number, and a conditional write.

use std::fmt;

use crate::quorum::FencingToken;

mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod redis;

pub use memory::{Highest, Memory};

/// A token was refused: the resource has seen a higher one, or it is none.
///
/// Nothing was written. The lock that the token stands for is over, and somebody else has had it
/// since: do not try again with this token, and drop what was computed under it.
///
/// ```
/// use quorumlock::{FencingToken, fence::Stale};
///
/// let stale = Stale { offered: FencingToken::from_u64(33), highest: FencingToken::from_u64(34) };
/// assert_eq!(stale.to_string(), "stale fencing token 33: the resource has seen 34");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stale {
    /// The token that was refused.
    pub offered: FencingToken,
    /// The highest token that the resource has seen. [`FencingToken::NONE`] if that is what was
    /// offered: such an offer does not even get to the resource.
    pub highest: FencingToken,
}

impl Stale {
    /// What no resource accepts, whatever it has seen.
    const NO_TOKEN: Stale = Stale {
        offered: FencingToken::NONE,
        highest: FencingToken::NONE,
    };
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stale { offered, highest } = self;
        if offered.is_none() {
            return f.write_str("no fencing token: the lock was taken with fencing off");
        }
        write!(
            f,
            "stale fencing token {offered}: the resource has seen {highest}"
        )
    }
}

impl std::error::Error for Stale {}
