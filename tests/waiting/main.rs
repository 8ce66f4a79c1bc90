//! Waiting on real servers: release notes over the connection, what is subscribed to, servers and
//! users that allow none, and many processes that want one lock.
//! Tier: all of it every day, with more turns under QUORUMLOCK_FULL=1.

#[path = "../helpers/mod.rs"]
mod helpers;
#[path = "../support/mod.rs"]
mod support;

mod crowd;
mod notes;
