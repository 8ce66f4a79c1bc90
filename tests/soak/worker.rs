//! One of the processes that want the lock.

use std::time::Duration;

use quorumlock::{Guard, Loss, Released, RestartGuard};

use crate::helpers::*;
use crate::history::{How, Notes};
use crate::support::boot_nanos;

/// The lease of all workers, and the bound of their set: the restart guard waits 3 s.
pub const TTL: Duration = Duration::from_millis(600);
const MAX_TTL: Duration = Duration::from_millis(1000);

/// What all of them want.
pub const NAME: &str = "soaked";

/// Each process has some tasks, so that the lock is also handed on inside it.
const TASKS: usize = 2;

#[test]
#[ignore = "a process of the tests in soak.rs"]
fn worker() {
    let config = settings(told_urls(), TTL).max_ttl(MAX_TTL);
    let client = open(config.restart_guard(RestartGuard::Auto));
    let lock = client.lock(NAME).wait(Duration::from_secs(3));
    block_on(async {
        let task = || {
            let lock = lock.clone();
            let notes = Notes::open(told("WORKER_NOTES")).expect("the notes");
            async move {
                let mut dice = Dice::new();
                // Killed long before the last one.
                for _ in 0..1_000_000_u64 {
                    let asked = boot_nanos();
                    if let Ok(guard) = lock.acquire().await {
                        notes.grant(token(&guard), asked, boot_nanos());
                        hold(guard, &notes, &mut dice).await;
                    }
                }
            }
        };
        futures::future::join_all((0..TASKS).map(|_| task())).await;
    });
}

pub fn token(guard: &Guard) -> u64 {
    u64::from(guard.fencing_token())
}

/// Notes that the lock is held now and until when, if it is.
pub fn look(guard: &Guard, notes: &Notes) -> bool {
    // The clock first: what remains after it ends no sooner than we say.
    let now = boot_nanos();
    let left = guard.remaining();
    let held = guard.is_held();
    if held {
        let left = u64::try_from(left.as_nanos()).expect("a short lease");
        notes.held(token(guard), now, now + left);
    }
    held
}

async fn hold(guard: Guard, notes: &Notes, dice: &mut Dice) {
    let mut left = match dice.below(80) {
        0 => dice.span(2 * TTL),
        1..20 => Duration::ZERO,
        _ => dice.span(6 * MS),
    };
    let mut held = look(&guard, notes);
    while held && !left.is_zero() {
        let nap = left.min(30 * MS);
        tokio::time::sleep(nap).await;
        left -= nap;
        held = look(&guard, notes);
    }
    leave(guard, notes, dice.below(4) > 0).await;
}

/// Lets go, and asks how it went or does not.
pub async fn leave(guard: Guard, notes: &Notes, asks: bool) {
    let token = token(&guard);
    notes.leaving(token, boot_nanos());
    let how = if asks {
        match guard.release().await {
            Ok(Released::InTime) => How::InTime,
            Ok(Released::AlreadyLost(Loss::Expired)) => How::Expired,
            Ok(_) => How::Early,
            Err(_) => How::Unsure,
        }
    } else {
        drop(guard);
        How::Unsure
    };
    notes.left(token, boot_nanos(), how);
}
