//! Who owns a lock, and how it comes free: killed holders, dropped acquisitions, guards that
//! travel, forks, the end of a runtime, a task that waits for itself. On real servers.
//!
//! Field cases: F03, F28, F32, F40, F46, F50. Tier: each module says how much of it runs every
//! day and how much under QUORUMLOCK_FULL=1.

#[path = "../helpers/mod.rs"]
mod helpers;
#[path = "../support/mod.rs"]
mod support;

mod dropped;
mod forked;
mod killed;
mod moved;
mod no_runtime;
mod twice;
