//! A program without async: the same report, written by one process at a time.
//!
//! ```text
//! scripts/cluster up
//! QUORUMLOCK_NODES=$(scripts/cluster urls) cargo run --example blocking
//! cargo run --example blocking --features test-util      # without servers: nodes in memory
//! ```
//!
//! Every call blocks its thread; the lock extends itself on a thread of the client's.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use quorumlock::blocking::{Client, Held};
use quorumlock::{AcquireError, RunError};

/// How many pages the report has, and how long a page takes.
const PAGES: u32 = 5;
const PAGE: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let client = client()?;
    // Half a minute for another process to finish its report.
    let lock = client.lock("report").wait(Duration::from_secs(30));

    match lock.run(|held| write_report(&held)) {
        Ok(pages) => println!("{pages} pages written"),
        Err(RunError::Acquire(AcquireError::Contended(attempt))) => println!("later: {attempt}"),
        Err(RunError::Lost { loss, output }) => {
            // Somebody else may be at it by now: what was written last does not count.
            println!("lost ({loss}) with {output:?}");
        }
        Err(error) => return Err(error.into()),
    }

    // Where a closure does not fit: a guard. It is released when it goes out of scope.
    let guard = client.lock("index").acquire()?;
    println!("indexing, token {}", guard.fencing_token());
    println!("released: {:?}", guard.release()?);
    Ok(client.close()?)
}

/// Nobody stops this when the lock is lost, so it looks before each page.
fn write_report(held: &Held) -> Result<u32, std::io::Error> {
    for page in 1..=PAGES {
        if !held.is_held() {
            return Ok(page - 1);
        }
        sleep(PAGE);
        println!(
            "page {page}, token {}, good for {:?}",
            held.fencing_token(),
            held.remaining()
        );
    }
    Ok(PAGES)
}

fn client() -> Result<Client, Box<dyn Error>> {
    match std::env::var("QUORUMLOCK_NODES") {
        Ok(nodes) => Ok(Client::open(nodes.split(','))?),
        #[cfg(feature = "test-util")]
        Err(_) => Ok(Client::in_memory(5)),
        #[cfg(not(feature = "test-util"))]
        Err(_) => Err("set QUORUMLOCK_NODES, or build with the feature test-util".into()),
    }
}
