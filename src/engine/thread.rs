//! The thread that runs an engine and its connections.
//!
//! It is the client's own, so that extensions and releases go on while the caller's runtime is
//! blocked, is dropped, or is another one at each call. DESIGN.md has the measurement behind it.

use std::io;

use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::alarm::Alarm;
use super::{Chance, Handle, Runner, Setup};
use crate::coordinator::Tokens;
use crate::node::OwnerToken;

/// Starts an engine.
///
/// # Errors
/// The operating system gives no thread, or no event queue.
pub(crate) fn start(setup: Setup) -> io::Result<Handle> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("quorumlock".into())
        .spawn(move || LocalSet::new().block_on(&runtime, run(setup, receiver)))?;
    Ok(Handle::new(sender))
}

async fn run(setup: Setup, commands: mpsc::UnboundedReceiver<super::Command>) {
    let mut alarm = Alarm::new(setup.clock.clone());
    let mut runner = Runner::new(setup, commands, random_tokens(), chance());
    loop {
        runner.wait(&mut alarm).await;
        if !runner.turn() {
            return;
        }
    }
}

/// Owner tokens from the operating system, 20 bytes each. A generator in user space would give
/// the same ones to both sides of a fork, and to clones of a machine's snapshot.
fn random_tokens() -> Tokens {
    Box::new(|| {
        let mut bytes = [0; 20];
        getrandom::fill(&mut bytes).ok()?;
        Some(OwnerToken::new(bytes))
    })
}

/// Jitter, which needs to be fast and nothing else.
fn chance() -> Chance {
    use rand::{RngExt, SeedableRng};
    let seed = getrandom::u64().unwrap_or(0x9e37_79b9_7f4a_7c15);
    let mut random = rand::rngs::SmallRng::seed_from_u64(seed);
    Box::new(move || random.random())
}
