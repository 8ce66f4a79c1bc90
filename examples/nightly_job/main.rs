//! Three workers want one nightly job, and have a bad day.
//!
//! ```text
//! scripts/demo                  brings five nodes up, runs this, takes them down
//!
//! worker.rs     how a service uses the library: read this one
//! desk.rs       the worker's pipes to the story
//! story.rs      what is broken when, and how it should be then
//! witness.rs    watches from outside that there are never two at work
//! crew.rs, nodes.rs, news.rs    processes, nodes, and what is told on the pipes
//! ```
//!
//! It exits with 0 only if each step went as it should, and says which did not.

use std::env;
use std::process::ExitCode;

mod crew;
mod desk;
mod news;
mod nodes;
mod story;
mod witness;
mod worker;

#[tokio::main]
async fn main() -> ExitCode {
    let is_worker = env::args()
        .nth(1)
        .is_some_and(|argument| argument == "worker");
    if is_worker {
        return match worker::serve(&desk::Desk::new()).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("a worker gives up: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match story::tell().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nNot as it should be: {failure}");
            ExitCode::FAILURE
        }
    }
}
