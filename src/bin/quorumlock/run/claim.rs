//! Waiting for the lock, until it is ours, the time is over, or a signal comes.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use quorumlock::{AcquireError, Client, Guard, LockState};

use super::plan::Plan;
use super::signals::Signals;

/// How often a single try is made again while nobody has the lock: several that start at one
/// moment may all miss the quorum, and then it was not held elsewhere.
const SPLITS: u32 = 12;

/// What came of the wait.
pub(super) enum Claim {
    Held(Guard),
    /// This signal came first. The lock is not held.
    Signal(i32),
    Failed(AcquireError),
}

pub(super) async fn claim(plan: &Plan, client: &Client, signals: &mut Signals) -> Claim {
    let outcome = tokio::select! {
        biased;
        signal = signals.next() => return Claim::Signal(signal),
        outcome = acquire(plan, client) => outcome,
    };
    // A signal that came together with the grant is seen only after one look at the sources of
    // events: no child is started after it.
    tokio::task::yield_now().await;
    match (signals.pending(), outcome) {
        (Some(signal), outcome) => {
            drop(outcome);
            Claim::Signal(signal)
        }
        (None, Ok(guard)) => Claim::Held(guard),
        (None, Err(error)) => Claim::Failed(error),
    }
}

async fn acquire(plan: &Plan, client: &Client) -> Result<Guard, AcquireError> {
    let mut lock = client.lock(plan.resource.as_bytes());
    if plan.once {
        lock = lock.wait(Duration::ZERO);
    }
    let mut tries = 0;
    loop {
        let error = match lock.acquire().await {
            Err(error @ AcquireError::Contended(_)) if plan.once => error,
            outcome => return outcome,
        };
        let status = client.status(plan.resource.as_bytes()).await?;
        let held = matches!(status.state(), LockState::Held { .. });
        if held || tries == SPLITS {
            return Err(error);
        }
        tries += 1;
        let most = 20_u64 << tries.min(5);
        let chance = getrandom::u64().unwrap_or(most / 2);
        tokio::time::sleep(Duration::from_millis(chance % most)).await;
    }
}
