//! What the integration tests stand on: real servers, a client that is not the product, faults on
//! the wire, scripted servers, and a witness for tests with many processes.
//!
//! Include it by `mod support;`. Nothing in here knows the API of the crate under test, so that a
//! mistake in the crate cannot hide itself in its own tests.
#![allow(dead_code, unused_imports)]

mod cluster;
mod cluster_probe;
mod keys;
mod lane;
mod link;
mod monitor;
mod ports;
mod postgres;
mod probe;
mod process;
mod program;
mod proxy;
mod resp;
mod servers;
mod stub;
mod stub_reply;
mod tiny_redis;
mod witness;

pub use cluster::Cluster;
pub use cluster_probe::{ClusterProbe, Owner};
pub use keys::Keys;
pub use monitor::{Monitor, Seen};
pub use postgres::Postgres;
pub use probe::Probe;
pub use process::{is_alive, send_signal, spawn_tied, state_of};
pub use program::server_version;
pub use proxy::Proxy;
pub use resp::{Reply, encode, parse};
pub use servers::{Server, ServerBuilder};
pub use stub::{Received, Stub};
pub use stub_reply::StubReply;
pub use tiny_redis::{ScriptCall, TinyRedis};
pub use witness::{Claim, Summary, Violation, Witness, boot_nanos, check};

use std::time::{Duration, Instant};

/// Whether the long forms of the tests were asked for: `QUORUMLOCK_FULL=1`.
pub fn full() -> bool {
    std::env::var("QUORUMLOCK_FULL").is_ok_and(|value| value == "1")
}

/// `quick` in everyday runs, `complete` under `QUORUMLOCK_FULL=1`.
pub fn pick<T>(quick: T, complete: T) -> T {
    if full() { complete } else { quick }
}

/// Asks `condition` again and again until it holds or `within` has passed; says whether it held.
///
/// Blocks the thread between two looks. On a current-thread runtime use [`eventually_async`].
#[must_use = "says whether the condition was met"]
pub fn eventually(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + within;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// [`eventually`] for async tests: sleeps on the runtime between two looks.
#[must_use = "says whether the condition was met"]
pub async fn eventually_async(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + within;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The middle one of the samples (the lower of two), without reordering them.
pub fn median(samples: &[Duration]) -> Duration {
    percentile(samples, 50.0)
}

/// The nearest-rank percentile: the smallest sample that at least `percent` % do not exceed.
pub fn percentile(samples: &[Duration], percent: f64) -> Duration {
    assert!(
        !samples.is_empty(),
        "a percentile needs at least one sample"
    );
    assert!(
        (0.0..=100.0).contains(&percent),
        "{percent} is not a percentage"
    );
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}
