//! Leader election: of all candidates one leads, steps down when its lock is lost, and stands again.
//!
//! ```text
//! scripts/cluster up
//! cargo run --example leader_election -- ada
//! cargo run --example leader_election -- bob      # in another terminal; then end one of them
//! ```
//!
//! The nodes are those of `scripts/cluster up`, or those that `QUORUMLOCK_NODES` names. A candidate
//! that is interrupted (Ctrl-C) hands over at once; one that dies is succeeded when its TTL is over.
//!
//! Leading is a lease, as everywhere: a leader that stands still may act once more before it looks.
//! So what it does carries the term, which is the fencing token and grows from leader to leader, and
//! whoever carries it out refuses a smaller term than it has seen (`quorumlock::fence`).

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use quorumlock::{Client, Config, Held, Lock, RunError};

/// A dead leader is missed for so long, at most, and one that works extends each third of it.
const TTL: Duration = Duration::from_secs(3);

/// How often a leader does its duty.
const PERIOD: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "ada".to_owned());
    let nodes = std::env::var("QUORUMLOCK_NODES").unwrap_or_else(|_| {
        let node = |port| format!("redis://127.0.0.1:{port}");
        (7101..=7105).map(node).collect::<Vec<_>>().join(",")
    });
    let client = Client::with_config(Config::new(nodes.split(',')).ttl(TTL))?;
    let lock = client.lock("leader");

    println!("{name} stands");
    tokio::select! {
        // Dropped at an interrupt: the work stops, and the lock is released.
        hopeless = stand(&lock, &name) => return Err(hopeless.into()),
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    println!("{name} leaves");
    // Waits until the nodes know, so that the next leader need not wait for the TTL.
    Ok(client.close().await?)
}

/// Stands for as long as there is hope, and returns why there is none: a setting that cannot be
/// used, nodes that refuse to serve, a client that was closed.
async fn stand(lock: &Lock, name: &str) -> RunError<Infallible, Infallible> {
    loop {
        match lock.run(async |held| lead(&held, name).await).await {
            Ok(never) => match never {},
            // The work has been stopped. Somebody else may lead by now; this one stands again.
            Err(RunError::Lost { loss, .. }) => println!("{name} steps down: {loss}"),
            // Somebody leads, or too few nodes answer: for all of the setting `wait`, 30 s here.
            Err(RunError::Acquire(error)) if error.is_retryable() => {
                println!("{name} waits: {error}");
            }
            Err(error) => return error,
        }
    }
}

/// What a leader does until it is stopped, which happens at an `await` when the lock is lost.
async fn lead(held: &Held, name: &str) -> Result<Infallible, Infallible> {
    let term = held.fencing_token();
    println!("{name} leads, term {term}");
    loop {
        tokio::time::sleep(PERIOD).await;
        // Before each step that matters, since this task may not have run for a while.
        if held.is_held() {
            println!("{name} is at work, term {term}");
        }
    }
}
