//! What a holder knows while it holds: extension, loss, release, shutdown. On real servers.
//!
//! Field cases: F01, F11, F12, F17, F23, F47, F51 (in small), and what issue 3 asks for beside
//! them. Tier: each module says how much of it runs every day and how much under
//! QUORUMLOCK_FULL=1.

#[path = "../helpers/mod.rs"]
mod helpers;
#[path = "../support/mod.rs"]
mod support;

mod blocked;
mod closing;
mod curt;
mod dark;
mod growth;
mod limits;
mod repaired;
mod results;
mod stopped;
mod tick;
