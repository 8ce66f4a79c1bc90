//! What the benches share: servers of their own, the raw redis-rs floor, and rounds that let
//! several contenders take turns so that only ratios measured side by side are printed.
//!
//! ```text
//! servers.rs   five redis-server or valkey-server processes that die with the bench
//! bare.rs      the limit: the same commands from one thread, by hand
//! raw.rs       the floor: what redis-rs alone does with the same commands
//! product.rs   the library, as a contender
//! measure.rs   CPU time, load, seed, quantiles
//! rounds.rs    contenders in short slices, in shuffled order
//! report.rs    medians and ratios of those slices, as a table
//! ```

// Each bench is a crate of its own and uses only a part of this.
#![allow(dead_code, unused_imports)]

mod bare;
mod measure;
mod product;
mod raw;
mod report;
mod rounds;
mod servers;

pub use bare::bare_pair;
pub use measure::{cpu_time, is_measured, load_average, quantile, resident, seed, setting};
pub use product::{acquire, client, pair, plain};
pub use raw::{RawFloor, raw_pair};
pub use report::Report;
pub use rounds::{Contender, Plan, interleave};
pub use servers::{Servers, refusing_url};
