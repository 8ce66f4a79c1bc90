//! The same work on quorumlock and on other Redlock libraries, on the same five servers.
//!
//! ```text
//! main.rs      arguments
//! bench.rs     rounds, in which all contenders take turns in a shuffled order
//! slices.rs    one turn: starts workers, breaks a node, sums up what they report
//! figures.rs   hand-overs, gaps and waits out of what the workers saw
//! process.rs   a worker as a child process with lines of JSON on its pipes
//! nodes.rs     what the servers are asked beside the work; the proxy that delays is proxy.rs
//! scenario.rs  what is done, and what of it is shown
//! report.rs    medians and ratios as RESULTS.md; chart.rs draws chart.svg
//! worker/      the worker of the Rust libraries; those of the others are in node/ and python/
//! ```
//!
//! `scripts/bench peers` builds it, installs the libraries of the other languages, and runs it.

mod bench;
mod chart;
mod contenders;
mod figures;
mod nodes;
mod process;
mod proxy;
mod report;
mod scenario;
mod slices;
mod worker;

// The servers of the other benches, which use more of them.
#[path = "../../support/servers.rs"]
#[allow(dead_code)]
mod servers;

use std::process::ExitCode;

use bench::Options;

const USAGE: &str = "Usage: peers [--quick]
       peers worker NAME    (started by the bench)

Environment: QUORUMLOCK_SERVER, QUORUMLOCK_BENCH_SEED, QUORUMLOCK_BENCH_ROUNDS (3; quick: 1)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["worker", name] => worker::serve(name),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [] => Options::read(false).and_then(|options| bench::run(&options)),
        ["--quick"] => Options::read(true).and_then(|options| bench::run(&options)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}
