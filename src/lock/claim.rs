//! How a lock asks for itself, and what the spans of `acquire` and `run` say of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::field::{self, Empty};
use tracing::{Instrument, Span, debug, debug_span};

use super::Lock;
use crate::coordinator::Secret;
use crate::engine::{Command, Handle, Won};
use crate::error::{AcquireError, Attempt, Headline, Printable, RunError};
use crate::guard::Guard;
use crate::queue::WaiterId;
use crate::quorum::Wait;

impl Lock {
    pub(super) async fn claim(
        &self,
        wait: Wait,
        adopts: Option<Secret>,
    ) -> Result<Guard, AcquireError> {
        let span = debug_span!(
            "acquire",
            resource = %Printable(&self.resource),
            outcome = Empty,
            rounds = Empty,
            votes = Empty,
            wait = Empty,
            validity = Empty,
        );
        let asking = self.ask(wait, adopts, &span).instrument(span.clone());
        asking.await.inspect_err(|error| record_error(&span, error))
    }

    async fn ask(
        &self,
        wait: Wait,
        adopts: Option<Secret>,
        span: &Span,
    ) -> Result<Guard, AcquireError> {
        let spec = self
            .spec
            .get_or_init(|| self.spec().map(Arc::new))
            .clone()?;
        let handle = self.core.engine()?;
        let (reply, outcome) = oneshot::channel();
        let id = handle.new_waiter();
        let sent = handle.send(Command::Acquire {
            id,
            spec,
            wait,
            adopts,
            handle: handle.clone(),
            reply,
        });
        if !sent {
            return Err(AcquireError::Closed);
        }
        let mut waiting = Waiting {
            asked: Some((handle, id)),
            span,
        };
        let won = outcome.await.map_err(|_| AcquireError::Closed)?;
        waiting.asked = None;
        let Won {
            claim,
            rounds,
            votes,
            waited,
        } = won?;
        let guard = Guard::new(Arc::clone(self.core.settings()), claim);
        if guard.is_held() {
            if !span.is_disabled() {
                span.record("outcome", "granted");
                span.record("rounds", rounds);
                span.record("votes", votes);
                span.record("wait", field::debug(waited));
                span.record("validity", field::debug(guard.remaining()));
            }
            return Ok(guard);
        }
        // The lease ran out between the grant and this task's turn.
        Err(AcquireError::TooSlow(Box::new(Attempt {
            headline: Headline::TooSlow,
            resource: Arc::clone(&self.resource),
            votes: Vec::new(),
            needed: 0,
            rounds: 1,
            waited: Duration::ZERO,
            held_here: false,
        })))
    }
}

/// Takes an acquisition back when its caller is gone.
struct Waiting<'a> {
    asked: Option<(Handle, WaiterId)>,
    span: &'a Span,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some((handle, id)) = self.asked.take() {
            self.span.record("outcome", "cancelled");
            handle.send(Command::Cancel { id });
        }
    }
}

/// What the span of an acquisition says of its error. To be refused is daily business.
fn record_error(span: &Span, error: &AcquireError) {
    if span.is_disabled() {
        return;
    }
    span.record("outcome", word(error));
    if let Some(attempt) = error.attempt() {
        span.record("rounds", attempt.rounds());
        span.record("votes", attempt.granted());
        span.record("wait", field::debug(attempt.waited()));
    }
    debug!(parent: span, %error, "not acquired");
}

fn word(error: &AcquireError) -> &'static str {
    match error {
        AcquireError::Contended(_) => "contended",
        AcquireError::Unavailable(_) => "unavailable",
        AcquireError::Rejected(_) => "rejected",
        AcquireError::TooSlow(_) => "too_slow",
        AcquireError::Invalid(_) => "invalid",
        AcquireError::Thread(_) => "no_thread",
        AcquireError::Closed => "closed",
    }
}

pub(super) fn run_span(resource: &[u8]) -> Span {
    debug_span!("run", resource = %Printable(resource), outcome = Empty)
}

/// How work under a lock went. Its own output is none of our business.
pub(super) fn record_run<T, E>(span: &Span, outcome: &Result<T, RunError<T, E>>) {
    if span.is_disabled() {
        return;
    }
    match outcome {
        Ok(_) => span.record("outcome", "done"),
        Err(RunError::Acquire(error)) => span.record("outcome", word(error)),
        Err(RunError::Work(_)) => span.record("outcome", "failed"),
        Err(RunError::Lost { loss, .. }) => span.record("outcome", field::display(loss)),
    };
}
