//! What an operator can do at night: look at a lock, list the locks, free one.
//!
//! ```text
//! cargo run --example operator -- status nightly
//! cargo run --example operator -- list seat/
//! cargo run --example operator -- force-release nightly
//! ```
//!
//! The nodes are those of `scripts/cluster up`, or those that `QUORUMLOCK_NODES` names. It exits
//! with 0 for a lock that is held or was freed, with 1 for one that is free, and with 2 where too
//! few nodes answer to tell.

use std::error::Error;
use std::process::ExitCode;

use futures::executor::block_on;
use quorumlock::{Client, LockState};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let nodes = std::env::var("QUORUMLOCK_NODES").unwrap_or_else(|_| {
        let node = |port| format!("redis://127.0.0.1:{port}");
        (7101..=7105).map(node).collect::<Vec<_>>().join(",")
    });
    let client = Client::open(nodes.split(','))?;
    let mut args = std::env::args().skip(1);
    let (verb, name) = (args.next().unwrap_or_default(), args.next());
    let name = name.unwrap_or_default();
    let code = match verb.as_str() {
        "status" => {
            let status = block_on(client.status(&name))?;
            print!("{status}");
            match status.state() {
                LockState::Held { .. } => 0,
                LockState::Free => 1,
                _ => 2,
            }
        }
        "list" => {
            let listing = block_on(client.list(&name));
            print!("{listing}");
            if listing.is_complete() { 0 } else { 2 }
        }
        "force-release" => {
            let freed = block_on(client.force_release(&name))?;
            print!("{freed}");
            println!("The holder, if it lives, works on until its next extension.");
            if freed.deleted() > 0 { 0 } else { 1 }
        }
        _ => return Err("usage: operator status|list|force-release NAME".into()),
    };
    Ok(ExitCode::from(code))
}
