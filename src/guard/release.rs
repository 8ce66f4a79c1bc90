//! Letting go by hand: the release whose outcome somebody waits for.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::field::Empty;
use tracing::{Instrument, debug_span};

use super::Guard;
use crate::error::{Loss, Printable, ReleaseError, Released};

impl Guard {
    /// Releases the lock on all nodes, and waits until a quorum has confirmed it, for
    /// `node_timeout` at most.
    ///
    /// # Errors
    /// [`ReleaseError::Unconfirmed`] no quorum answered in time. The release goes on in the
    /// background; at the latest the keys run out. A lock that was lost before is no error but
    /// [`Released::AlreadyLost`].
    ///
    /// # Cancel safety
    /// The release happens, whether or not anybody waits for it.
    ///
    /// # Round trips
    /// One. None if the lock is lost already.
    pub async fn release(self) -> Result<Released, ReleaseError> {
        let span = debug_span!(
            "release",
            resource = %Printable(self.resource()),
            validity = ?self.remaining(),
            outcome = Empty,
        );
        let outcome = self.let_go().instrument(span.clone()).await;
        match &outcome {
            Ok(Released::InTime) => span.record("outcome", "in_time"),
            Ok(Released::AlreadyLost(_)) => span.record("outcome", "already_lost"),
            Err(ReleaseError::Unconfirmed { .. }) => span.record("outcome", "unconfirmed"),
            Err(ReleaseError::Closed) => span.record("outcome", "closed"),
        };
        outcome
    }

    async fn let_go(self) -> Result<Released, ReleaseError> {
        if let Some(loss) = self.loss() {
            return Ok(Released::AlreadyLost(loss));
        }
        let cell = Arc::clone(&self.claim.cell);
        let (reply, outcome) = oneshot::channel();
        if !self.claim.release(reply) {
            return Err(ReleaseError::Closed);
        }
        match outcome.await {
            Ok(outcome) => outcome,
            // Lost, or closed, before the release came to its turn.
            Err(_) => match cell.loss() {
                Some(Loss::Closed) | None => Err(ReleaseError::Closed),
                Some(loss) => Ok(Released::AlreadyLost(loss)),
            },
        }
    }
}
