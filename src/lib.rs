//! Distributed locks on independent Redis or Valkey nodes.
#![forbid(unsafe_code)]
// Unit tests reach parts of the in-memory nodes that only the feature brings together.
#![cfg_attr(
    all(test, not(feature = "test-util")),
    allow(dead_code, unused_imports)
)]
#![warn(missing_docs, unreachable_pub)]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod blocking;
mod check;
mod client;
mod clock;
mod config;
mod coordinator;
mod engine;
mod error;
pub mod fence;
mod guard;
mod hash;
mod inspect;
mod keeper;
mod key;
mod lock;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
mod metrics;
mod node;
mod queue;
mod quorum;
mod status;
#[cfg(feature = "test-util")]
pub mod testing;
mod text;
mod ticket;

pub use check::{ClockReading, Finding, NodeReport, Report, Severity};
pub use client::{Client, CloseError};
pub use config::{Config, ConfigError, Effective, Jitter, Node, Origin, RestartGuard};
pub use error::{
    AcquireError, AttachError, Attempt, ExtendError, Loss, NodeVote, ReleaseError, Released,
    RunError, Vote,
};
pub use guard::{Guard, Held, Lost};
pub use inspect::{
    ForceReleaseError, ForcedRelease, KeyState, Label, Listed, Listing, LockState, NodeKey,
    OwnerId, Status,
};
pub use lock::Lock;
pub use node::{Connected, Credentials, Fault, FaultKind};
pub use quorum::FencingToken;
pub use status::{NodeState, NodeStatus};
pub use ticket::LeaseTicket;

// Foreign crates whose types stand in the signatures of `fence`, in the versions that fit them.
pub use redis;
#[cfg(feature = "postgres")]
pub use tokio_postgres;

/// The README's code, so that it cannot rot.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
