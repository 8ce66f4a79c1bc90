//! What `Client::status`, `Client::list` and `Client::force_release` say of the nodes, and what a
//! forced release does to the holder. On real servers, and on nodes in memory.
//!
//! Field cases: F15 (names), F19, F57 (fingerprint). Tier: all of it every day.

#[path = "../helpers/mod.rs"]
mod helpers;
#[path = "../support/mod.rs"]
mod support;

mod force;
#[cfg(feature = "serde")]
mod json;
mod label;
mod list;
#[cfg(feature = "test-util")]
mod memory;
mod status;
