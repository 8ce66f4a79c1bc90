//! Fencing tokens on real servers: the scripts one by one, and the tokens that clients get.
//!
//! Quick; `QUORUMLOCK_FULL=1` makes 2,000 grants among restarting nodes and locks a million names.

#[path = "../support/mod.rs"]
mod support;

#[path = "../../src/node/counter.rs"]
#[allow(dead_code)]
mod counter;

mod churn;
mod scripts;
mod slots;
mod tokens;
