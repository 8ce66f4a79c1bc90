//! One lock that many want, and hold for a moment each: how often it changes hands, how fairly,
//! and how much of the time it is in use.
//!
//! In the first table all tasks are in one process and share a client, which hands the lock on in
//! order. In the second each contender is a process of its own. All times of holding are compared
//! on the machine's boot clock: an overlap of two ends the bench.
//!
//! ```text
//! cargo bench --bench contended
//! QUORUMLOCK_BENCH_SECONDS=30 cargo bench --bench contended
//! ```

mod holds;
mod processes;
#[path = "../support/mod.rs"]
mod support;
mod tasks;

use std::time::Duration;

use support::{Servers, load_average, setting};

const NODES: usize = 5;

/// How long the lock is held, where it is held for a time.
const CRITICAL_SECTION: Duration = Duration::from_millis(1);

fn main() {
    if processes::is_child() {
        return processes::child();
    }
    let servers = Servers::start(NODES);
    let seconds = setting("QUORUMLOCK_BENCH_SECONDS", 5, 0);
    let time = Duration::from_secs(seconds).max(Duration::from_millis(50));
    println!("{time:?} each, load {}\n", load_average());
    tasks::table(&servers.urls(), time);
    println!();
    processes::table(&servers.urls(), time);
    println!("\nload {}", load_average());
}
