//! The same locks for programs without async: every call blocks its thread until it is done.
//!
//! ```
//! # #[cfg(feature = "test-util")] {
//! # (|| {
//! use quorumlock::blocking::Client;
//!
//! let client = Client::in_memory(5); // Client::open(["redis://a", "redis://b", "redis://c"])?
//! let guard = client.lock("nightly").acquire()?;
//! assert!(guard.is_held());
//! guard.release()?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })().unwrap();
//! # }
//! ```
//!
//! It is a front: settings, errors, guarantees and round trips are those of the calls of the same
//! name outside this module. A client talks to its nodes on a thread of its own, so a caller needs
//! no runtime; he sleeps until that thread has his answer. Guards extend themselves meanwhile, as
//! everywhere, however long the caller is busy.
//!
//! Three things are different:
//!
//! - A call cannot be dropped half way. What bounds it is the setting `wait` ([`Lock::wait`]), or
//!   [`Client::close`] on another thread.
//! - [`Lock::run`] cannot stop a closure when the lock is lost. The closure must look:
//!   [`Held::is_held`] before each step that matters, or [`Held::wait_lost`] on a thread beside it.
//! - Inside a runtime these calls work, and never panic: the answer does not come by way of that
//!   runtime. But they keep its thread, and with it every other task that runs there. Use them in
//!   `spawn_blocking`, or use the calls that are async.
//!
//! What is not here is reached by [`wait`] and [`Client::as_async`]:
//!
//! ```
//! # #[cfg(feature = "test-util")] {
//! # (|| {
//! use quorumlock::blocking::{Client, wait};
//!
//! let client = Client::in_memory(5);
//! let guard = client.lock("nightly").acquire()?;
//! let listing = wait(client.as_async().list(""));
//! assert_eq!(listing.locks().len(), 1);
//! # drop(guard);
//! # Ok::<(), Box<dyn std::error::Error>>(()) })().unwrap();
//! # }
//! ```

mod client;
mod guard;
mod held;
mod lock;
mod wait;

pub use client::Client;
pub use guard::Guard;
pub use held::Held;
pub use lock::Lock;
pub use wait::wait;
