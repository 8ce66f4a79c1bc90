//! Fencing tokens on real servers: the scripts one by one, and the tokens that clients get.
//!
//! Quick; `QUORUMLOCK_FULL=1` makes 2,000 grants among nodes in trouble and locks a million names.

#[path = "../helpers/mod.rs"]
mod helpers;
#[path = "../support/mod.rs"]
mod support;

#[path = "../../src/node/counter.rs"]
#[allow(dead_code)]
mod counter;

mod churn;
mod scripts;
mod slots;
mod tokens;
mod writer;
