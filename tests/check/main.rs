//! What `Client::check` tells of real nodes, of nodes in memory, and how it leaves them.

#[path = "../support/mod.rs"]
mod support;

mod common;
mod harmless;
#[cfg(feature = "test-util")]
mod memory;
mod slow;
mod sound;
mod trouble;
