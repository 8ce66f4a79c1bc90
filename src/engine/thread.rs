//! The thread that runs an engine and its connections.
//!
//! It is the client's own, so that extensions and releases go on while the caller's runtime is
//! blocked, is dropped, or is another one at each call. DESIGN.md has the measurement behind it.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::alarm::Alarm;
use super::{Chance, Command, Engine, Handle};
use crate::clock::Clock;
use crate::coordinator::{Coordinator, Rules, Tokens};
use crate::node::{Inbox, Node};

/// What an engine is made of, in a form that can be sent to its thread.
pub(crate) struct Setup {
    pub(crate) clock: Clock,
    pub(crate) rules: Rules,
    /// Makes the nodes, on the engine's thread.
    pub(crate) nodes: Box<dyn FnOnce(Inbox, Clock) -> Vec<Box<dyn Node>> + Send>,
    /// How long the end may wait for releases.
    pub(crate) drain: Duration,
}

/// The most commands taken in one turn.
const COMMANDS: usize = 1024;

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

async fn run(setup: Setup, mut commands: mpsc::UnboundedReceiver<Command>) {
    let Setup {
        clock,
        rules,
        nodes,
        drain,
    } = setup;
    let inbox = Inbox::default();
    let nodes = nodes(inbox.clone(), clock.clone());
    let store = Coordinator::new(nodes, inbox.clone(), rules, random_tokens());
    let quorum = store.quorum();
    let mut engine = Engine::new(store, quorum, clock.clone(), chance());
    let mut alarm = Alarm::new(clock.clone());
    let mut batch = Vec::with_capacity(COMMANDS);
    let mut end = None;
    loop {
        tokio::select! {
            biased;
            count = commands.recv_many(&mut batch, COMMANDS), if end.is_none() => {
                if count == 0 {
                    // Client and guards are gone: what they left behind is released.
                    engine.close(clock.now());
                    end = Some(clock.now().after(drain));
                }
            }
            () = inbox.arrived() => {}
            () = alarm.ring() => {}
        }
        if engine.next_timeout().is_some_and(|due| due <= clock.now()) {
            // After a stall of this thread, or of the whole process, answers may have been here
            // before anything fell due. The connections read them first, or nodes that answered
            // in time are taken for silent ones: once to hear from the operating system, and once
            // to let the connections run.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
        let now = clock.now();
        for command in batch.drain(..) {
            engine.command(now, command);
        }
        engine.turn(clock.now());
        if engine.is_closing() && end.is_none() {
            end = Some(clock.now().after(drain));
            refuse(&mut commands, &mut engine, &clock);
        }
        let late = end.is_some_and(|end| clock.now() >= end);
        if end.is_some() && (late || engine.is_quiet()) {
            engine.report();
            return;
        }
        alarm.arm(engine.next_timeout());
        alarm.arm(end);
    }
}

/// Answers what was sent before the channel closed.
fn refuse(
    commands: &mut mpsc::UnboundedReceiver<Command>,
    engine: &mut Engine<Coordinator>,
    clock: &Clock,
) {
    commands.close();
    while let Ok(command) = commands.try_recv() {
        engine.command(clock.now(), command);
    }
    engine.turn(clock.now());
}

/// Owner tokens from the operating system, 20 bytes each. A generator in user space would give
/// the same ones to both sides of a fork, and to clones of a machine's snapshot.
fn random_tokens() -> Tokens {
    Box::new(|| {
        let mut bytes = [0; 20];
        getrandom::fill(&mut bytes).ok()?;
        Some(crate::node::OwnerToken::new(bytes))
    })
}

/// Jitter, which needs to be fast and nothing else.
fn chance() -> Chance {
    use rand::{RngExt, SeedableRng};
    let seed = getrandom::u64().unwrap_or(0x9e37_79b9_7f4a_7c15);
    let mut random = rand::rngs::SmallRng::seed_from_u64(seed);
    Box::new(move || random.random())
}
