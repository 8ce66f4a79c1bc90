//! A lock under all that five real servers and a network can do, and a checker that knows what a
//! lock is.
//!
//! Worker processes take one lock again and again, while nodes are killed, stopped, cut off and
//! brought back with and without their data, and workers are killed and stopped, too. Each worker
//! notes what it asked for and what it was told, by the boot clock, which is the same for all
//! processes of a machine. Whether there is an order in which a lock could have said all of that is
//! then found out by `linear.rs`.
//!
//! Tier: some seconds in everyday runs; QUORUMLOCK_SOAK_SECONDS says how many, and QUORUMLOCK_FULL=1
//! alone means five minutes. `scripts/soak HOURS --real` gives it half of its time.

#[path = "../matrix/clock.rs"]
mod clock;
#[path = "../helpers/mod.rs"]
mod helpers;
#[path = "../support/mod.rs"]
mod support;

mod fabricated;
mod history;
mod linear;
mod search;
mod soak;
mod torment;
mod worker;
