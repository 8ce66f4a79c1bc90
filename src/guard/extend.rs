//! Extensions by hand.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Guard;
use crate::engine::Command;
use crate::error::{ExtendError, Loss};
use crate::keeper::extension_span;
use crate::quorum::Timing;

impl Guard {
    /// Asks the nodes for a full TTL from now. Not needed while the guard extends itself.
    ///
    /// # Errors
    /// [`ExtendError::Unconfirmed`] no quorum answered, and the old deadline stands;
    /// [`ExtendError::Lost`] the lock is not held any more.
    ///
    /// # Cancel safety
    /// Dropping the future does not take the extension back.
    ///
    /// # Round trips
    /// One, after the one of an extension that is under way.
    pub async fn extend(&self) -> Result<(), ExtendError> {
        self.ask(None).await
    }

    /// [`Guard::extend`] with another TTL. Never shortens: with a TTL below
    /// [`Guard::remaining`] the deadline stays as it is.
    ///
    /// # Errors
    /// As for [`Guard::extend`], and [`ExtendError::Invalid`] for a TTL that cannot be used.
    ///
    /// # Cancel safety
    /// As for [`Guard::extend`].
    pub async fn extend_to(&self, ttl: Duration) -> Result<(), ExtendError> {
        let timing = self.settings.timing(Some(ttl))?;
        self.ask(Some(timing)).await
    }

    async fn ask(&self, timing: Option<Timing>) -> Result<(), ExtendError> {
        if let Some(loss) = self.loss() {
            return Err(ExtendError::Lost(loss));
        }
        let (reply, outcome) = oneshot::channel();
        self.claim.send(Command::Extend {
            hold: self.claim.hold,
            timing,
            span: extension_span(self.resource()),
            reply,
        });
        match outcome.await {
            Ok(outcome) => outcome,
            Err(_) => Err(ExtendError::Lost(self.loss().unwrap_or(Loss::Closed))),
        }
    }
}
