//! Errors name the truth: contended only where somebody has held it lately, in this process or by
//! the word of a server; and never rejected, invalid or closed, since no fault is of that kind.

use std::time::Duration;

use quorumlock::AcquireError;
use quorumlock::testing::world::ProcessId;

use super::Seen;

/// What `error`, of an acquire that began at `began`, says is true.
pub fn check(
    seen: &Seen,
    process: ProcessId,
    began: Duration,
    error: &AcquireError,
) -> Result<(), String> {
    match error {
        AcquireError::Contended(_) => {
            // Somebody else of this process may have asked for both.
            let lately = began.saturating_sub(seen.longest);
            let refused = seen.world.last_refusal(process);
            let told = refused.is_some_and(|at| at >= lately);
            let holds = seen.holds.borrow();
            let own = holds.iter().any(|hold| hold.process == process);
            match told || own {
                true => Ok(()),
                false => Err(format!(
                    "c{process}: contended, and nobody held it: {error}"
                )),
            }
        }
        AcquireError::Unavailable(_) | AcquireError::TooSlow(_) => Ok(()),
        other => Err(format!("c{process}: not for any fault there is: {other}")),
    }
}
