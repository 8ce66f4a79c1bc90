//! `run`: a command under a lock.
//!
//! ```text
//!   plan (settings fit, nothing sent) ─► wait ──► child ──► watch ──► end: release | leave
//!                                         │                  │
//!                        a signal ends it ┘                  └ loss: TERM, KILL, and no release
//! ```

mod child;
mod claim;
mod finish;
mod plan;
mod signals;
mod terminal;
mod watch;

use nix::sys::signal::Signal;
use quorumlock::{AcquireError, Client, Guard};

use self::child::{Child, Refused};
use self::claim::{Claim, claim};
use self::finish::Badge;
use self::plan::Plan;
use self::signals::Signals;
use super::args::{Common, IfHeld, Run};
use super::exit;
use super::out::Out;
use super::runtime;
use super::settings::Unusable;

pub(crate) fn run(common: &Common, args: &Run, out: Out) -> Result<u8, Unusable> {
    let plan = Plan::of(common, args)?;
    let client = Client::with_config(plan.config.clone())?;
    let Ok(runtime) = runtime() else {
        out.complain("internal", "there is no runtime to be had");
        return Ok(exit::INTERNAL);
    };
    let outcome = runtime.block_on(async {
        match Signals::waiting() {
            Ok(signals) => under_lock(&plan, &client, signals, out).await,
            Err(error) => {
                out.complain("internal", format!("no signals to be had: {error}"));
                Outcome::Status(exit::INTERNAL)
            }
        }
    });
    // What the runtime may still do is of no interest to anybody.
    runtime.shutdown_background();
    Ok(match outcome {
        Outcome::Status(code) => code,
        Outcome::Interrupted => {
            terminal::interrupt();
            exit::by_signal(Signal::SIGINT as i32)
        }
    })
}

/// How the process is to end.
enum Outcome {
    Status(u8),
    /// By the interrupt that has ended the child.
    Interrupted,
}

async fn under_lock(plan: &Plan, client: &Client, mut signals: Signals, out: Out) -> Outcome {
    let guard = match claim(plan, client, &mut signals).await {
        Claim::Held(guard) => guard,
        Claim::Signal(signal) => {
            finish::hurry(client).await;
            return Outcome::Status(exit::by_signal(signal));
        }
        Claim::Failed(error) => return Outcome::Status(failed(plan, &error, out)),
    };
    let started = std::time::Instant::now();
    let resource = plan.name();
    let child = match signals.all().map(|()| Child::start(plan, &guard)) {
        Ok(Ok(child)) => child,
        Ok(Err(Refused { code, text })) => {
            // Nobody ran: nothing is kept, whatever --at-least says.
            finish::release(client, guard, out).await;
            out.complain("not_started", text);
            return Outcome::Status(code);
        }
        Err(error) => {
            finish::release(client, guard, out).await;
            out.complain("internal", format!("no signals to be had: {error}"));
            return Outcome::Status(exit::INTERNAL);
        }
    };
    let badge = Badge::pin(plan, client, &guard).await;
    let end = watch::watch(plan, &guard, child, &mut signals, out).await;
    badge.stop();
    if let Some(loss) = end.loss.or(guard.loss()) {
        out.complain("lost", format!("lock {resource} was lost: {loss}"));
        finish::close(client, guard, &badge).await;
        return Outcome::Status(exit::LOST);
    }
    match finish::let_go(plan, client, guard, started.elapsed(), &badge, out).await {
        Some(loss) => {
            out.complain("lost", format!("lock {resource} was lost: {loss}"));
            Outcome::Status(exit::LOST)
        }
        None if end.interrupted => Outcome::Interrupted,
        None => Outcome::Status(end.code),
    }
}

fn failed(plan: &Plan, error: &AcquireError, out: Out) -> u8 {
    match error {
        AcquireError::Contended(_) if plan.if_held == IfHeld::Skip => exit::OK,
        AcquireError::Contended(_) => {
            out.complain("held", error);
            exit::HELD
        }
        AcquireError::Unavailable(_) | AcquireError::Rejected(_) | AcquireError::TooSlow(_) => {
            out.complain("unavailable", error);
            exit::UNAVAILABLE
        }
        AcquireError::Invalid(_) => {
            out.complain("usage", error);
            exit::USAGE
        }
        _ => {
            out.complain("internal", error);
            exit::INTERNAL
        }
    }
}

/// The guard's token, where there is one.
fn token(guard: &Guard) -> Option<String> {
    let token = guard.fencing_token();
    (token != quorumlock::FencingToken::NONE).then(|| token.to_string())
}
