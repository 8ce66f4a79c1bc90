//! Nodes in memory and a clock that tests move: for tests of services that hold locks.
//!
//! Needs the feature `test-util`. Everything but the servers and the network is the real library:
//! the same queues, rounds, extensions and errors.
//!
//! ```
//! # futures::executor::block_on(async {
//! use quorumlock::testing::Cluster;
//! use quorumlock::AcquireError;
//!
//! let cluster = Cluster::new(5);
//! let (here, there) = (cluster.client(), cluster.client());
//! let guard = here.lock("job").acquire().await?;
//! assert!(matches!(there.lock("job").try_acquire().await, Err(AcquireError::Contended(_))));
//!
//! for node in 0..3 {
//!     cluster.node(node).kill();
//! }
//! assert!(matches!(there.lock("job").try_acquire().await, Err(AcquireError::Unavailable(_))));
//! drop(guard);
//! # Ok::<(), AcquireError>(()) }).unwrap();
//! ```

#[doc(hidden)]
pub mod bench;
mod clock;
mod cluster;
#[doc(hidden)]
pub mod fuzz;
mod node;
#[doc(hidden)]
pub mod world;

pub use clock::Clock;
pub use cluster::Cluster;
pub use node::Node;
