//! Distributed locks on independent Redis or Valkey nodes: one worker at a time on a named resource,
//! agreed on by a majority of the nodes. Any minority of them may hang, die or come back empty.
//!
//! # Five minutes
//!
//! A [`Client`] is a set of nodes. Making one sends nothing. A [`Lock`] is the name of a resource, and
//! holds nothing by itself. Whoever acquires it has a [`Guard`], which extends itself and releases
//! the lock when it is dropped:
//!
//! ```
//! # #[cfg(feature = "test-util")] {
//! # futures::executor::block_on(async {
//! use quorumlock::Client;
//!
//! # /*
//! let client = Client::open(["redis://a:6379", "redis://b:6379", "redis://c:6379"])?;
//! # */
//! # let client = Client::in_memory(3);
//! let guard = client.lock("nightly").acquire().await?;
//! // … the work; before each step that matters:
//! assert!(guard.is_held());
//! guard.release().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! # }
//! ```
//!
//! **Work that must stop when the lock is lost** goes into [`Lock::run`], which drops it at its next
//! `await`. A lock is lost when no quorum could extend it in time, when somebody deleted it, or when
//! this process stood still for longer than its lease; [`Guard::lost`] tells no later than the end of
//! validity, whether or not any node answers.
//!
//! ```
//! # #[cfg(feature = "test-util")] {
//! # futures::executor::block_on(async {
//! # let client = quorumlock::Client::in_memory(3);
//! let lock = client.lock("report");
//! let pages = lock.run(async |held| {
//!     println!("token {}, good for {:?}", held.fencing_token(), held.remaining());
//!     Ok::<_, std::io::Error>(12)
//! });
//! assert_eq!(pages.await?, 12);
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! # }
//! ```
//!
//! **Held by somebody and out of order are different errors**, each with what every node has said:
//!
//! ```
//! # #[cfg(feature = "test-util")] {
//! # futures::executor::block_on(async {
//! # let client = quorumlock::Client::in_memory(3);
//! # let _guard = client.lock("seat/12a").acquire().await.unwrap();
//! use quorumlock::AcquireError;
//!
//! match client.lock("seat/12a").try_acquire().await {
//!     Ok(guard) => println!("ours: {guard:?}"),
//!     Err(AcquireError::Contended(attempt)) => println!("come again: {attempt}"),
//!     Err(AcquireError::Unavailable(attempt)) => println!("look after the nodes: {attempt}"),
//!     Err(error) => println!("look after the settings: {error}"),
//! }
//! # });
//! # }
//! ```
//!
//! **A lock with a lease cannot stop a holder that stands still** and acts when it wakes up. Its
//! fencing token can: a number that grows from holder to holder. Hand it to the resource with each
//! write, and let that refuse a smaller one than it has seen; [`fence`] has such resources.
//!
//! ```
//! # #[cfg(feature = "test-util")] {
//! # futures::executor::block_on(async {
//! # let client = quorumlock::Client::in_memory(3);
//! use quorumlock::fence::Highest;
//!
//! let (file, lock) = (Highest::new(), client.lock("ledger"));
//! let stale = lock.acquire().await?.fencing_token();
//! let guard = lock.acquire().await?;
//! assert!(file.write(guard.fencing_token(), || "ours").is_ok());
//! assert!(file.write(stale, || "too late").is_err());
//! # Ok::<(), quorumlock::AcquireError>(()) }).unwrap();
//! # }
//! ```
//!
//! # Where to go on
//!
//! | | |
//! |---|---|
//! | settings: TTL, waiting, time limits, clocks | [`Config`] |
//! | whether nodes and settings fit each other | [`Client::check`] |
//! | what a client knows of its nodes | [`Client::nodes`] |
//! | who holds what, and how an operator frees it | [`Client::status`], [`Client::list`], [`Client::force_release`] |
//! | a lease that goes to another request or process | [`Guard::detach`], [`Client::attach`] |
//! | programs without async | [`blocking`] |
//! | proxies, tunnels, short-lived passwords | [`Config::connect_with`], [`Config::credentials_with`] |
//! | tests of a service that holds locks | `testing`, with the feature `test-util` |
//!
//! # What is promised
//!
//! While a guard says [`is_held`](Guard::is_held), no other client holds the lock, as long as clocks
//! run apart by less than the drift allowance. Every future may be dropped at any point, and what it
//! has set by then is deleted. Guards may be dropped anywhere, also where there is no runtime. Each
//! method says what it costs in round trips, and what its errors leave behind.
//!
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `tls` | `rediss://` nodes, by rustls |
//! | `serde` | settings from TOML, reports as JSON |
//! | `postgres` | `fence::postgres`: rows that refuse stale tokens |
//! | `test-util` | `testing`: nodes in memory, and a clock that tests move |
//! | `metrics` | `metrics`: counters and histograms for the recorder that the service installs |
//! | `cli` | the command |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
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
