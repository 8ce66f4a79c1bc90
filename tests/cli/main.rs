//! The command as it is used: real processes on real servers.
//!
//! Field cases: F06 (signals), F20 (exit statuses), F39 (what reaches the child). Tier: every row
//! once each day; the repetitions, and the runs with 200 periods, under QUORUMLOCK_FULL=1.

#[path = "../helpers/mod.rs"]
mod helpers;
#[path = "../support/mod.rs"]
mod support;

mod at_least;
mod common;
mod exits;
mod files;
mod loss;
mod operator;
mod passing;
mod pty;
mod settings;
mod signals;
mod terminal;
mod waiting;
