//! The protocol's decisions, and nothing else.
//!
//! ```text
//!  now, votes, readings, random numbers
//!               │
//!               ▼
//!   ┌───────────────────────────┐   Acquisition   rounds, backoff, the wait limit
//!   │          quorum           │   Round         votes → verdict, early both ways
//!   │ no clock, socket, chance  │   Contest       refusals → held by one, or split
//!   │                           │   Notes         what is heard of a lock without asking
//!   │                           │   Timing        TTL, drift allowance, validity
//!   └───────────────────────────┘   Lease         when to extend, when it is lost
//!               │                   Extension     votes → renewed, unknown, lost
//!               │                   Roster        whose vote counts (restart, twins)
//!               │                   Fence         counters → fencing token
//!               │                   Pace          did we stand still, or was a clock set?
//!               ▼
//!  verdicts, deadlines, what to do next
//! ```
//!
//! **Invariant:** nothing in this folder reads a clock, a socket, an environment variable or a
//! random source. All of it is plain functions of what it is given, so that each rule can be
//! tried on every case; `tests/tidy.rs` keeps it so. The rules are numbered P1 to P14 as in
//! DESIGN.md.

pub(crate) mod acquisition;
pub(crate) mod backoff;
pub(crate) mod contest;
pub(crate) mod extension;
pub(crate) mod fence;
pub(crate) mod lease;
#[cfg(test)]
mod model;
pub(crate) mod nodes;
pub(crate) mod notes;
pub(crate) mod pace;
pub(crate) mod presence;
pub(crate) mod roster;
pub(crate) mod round;
#[cfg(test)]
mod search;
pub(crate) mod timing;
pub(crate) mod trip;

pub(crate) use acquisition::{Acquisition, Failed, Next, Retry, Wait};
pub(crate) use backoff::Jitter;
pub(crate) use contest::{Contest, Standing as Contested};
pub(crate) use extension::{Extension, Outcome, Renewal};
pub use fence::FencingToken;
pub(crate) use fence::{Agreement, Fence, Spread};
pub(crate) use lease::{Cause, Cohort, Lease, Step};
pub(crate) use nodes::{NodeSet, Quorum};
pub(crate) use notes::{Hint, Notes};
pub(crate) use pace::{Pace, Skip};
pub(crate) use presence::Presence;
pub(crate) use roster::{GuardMode, Reading, Roster, Standing};
pub(crate) use round::{Round, Shortfall, Verdict, Vote};
pub(crate) use timing::{Drift, Timing, TimingError};
pub(crate) use trip::Trip;
