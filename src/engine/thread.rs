//! The thread that runs an engine and its connections.
//!
//! It is the client's own, so that extensions and releases go on while the caller's runtime is
//! blocked, is dropped, or is another one at each call. DESIGN.md has the measurement behind it.
//!
//! It has the timers, and reads what the nodes answer. Callers use the engine, too, where it is
//! free: only to carry out what they ask, and never for longer than that takes.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use tokio::task::{LocalSet, yield_now};

use super::alarm::Alarm;
use super::handle::Seat;
use super::{Chance, Commands, Handle, Runner, Setup};
use crate::coordinator::Tokens;
use crate::node::OwnerToken;

/// Starts an engine.
///
/// # Errors
/// The operating system gives no thread, or no event queue.
pub(crate) fn start(setup: Setup) -> io::Result<Handle> {
    let (commands, seat) = (Arc::<Commands>::default(), Seat::default());
    let handle = Handle::seated(Arc::clone(&commands), Arc::clone(&seat));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("quorumlock".into())
        .spawn(move || LocalSet::new().block_on(&runtime, run(setup, commands, seat)))?;
    Ok(handle)
}

async fn run(setup: Setup, commands: Arc<Commands>, seat: Seat) {
    let mut alarm = Alarm::new(setup.clock.clone());
    let runner = Runner::new(setup, Arc::clone(&commands), random_tokens(), chance());
    let inbox = runner.inbox();
    let runner = Arc::new(Mutex::new(runner));
    let _ = seat.set(Arc::downgrade(&runner));
    let mut rang = true;
    loop {
        // A caller who is at the engine looks once more at what has come when he is done, and
        // rings. Only he does not know that the alarm has rung.
        let Ok(engine) = sit_down(&runner, rang) else {
            return;
        };
        if let Some(mut runner) = engine {
            runner.take();
            if !runner.turn() {
                return;
            }
            runner.arm(&mut alarm);
        }
        rang = tokio::select! {
            biased;
            () = commands.rung() => false,
            () = inbox.arrived() => false,
            () = alarm.ring() => true,
        };
        if rang || runner.try_lock().is_ok_and(|runner| runner.is_late()) {
            // After a stall of this thread, or of the whole process, answers may have been here
            // before anything fell due. The connections read them first, or nodes that answered
            // in time are taken for silent ones: once to hear from the operating system, and once
            // to let the connections run.
            yield_now().await;
            yield_now().await;
        }
    }
}

/// The engine; nothing where a caller has it and `wait` does not say otherwise.
///
/// # Errors
/// It has panicked, on whichever thread, and does nothing any more.
fn sit_down(runner: &Mutex<Runner>, wait: bool) -> Result<Option<MutexGuard<'_, Runner>>, ()> {
    match runner.try_lock() {
        Ok(runner) => Ok(Some(runner)),
        Err(TryLockError::WouldBlock) if wait => runner.lock().map(Some).map_err(drop),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Poisoned(_)) => Err(()),
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
