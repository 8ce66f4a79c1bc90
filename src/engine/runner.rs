//! Feeds an engine: commands in, turns when something has arrived or is due, and the end.
//!
//! It runs on the client's thread, which waits between turns, and in a simulation, which does not.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::alarm::Alarm;
use super::{Chance, Command, Engine};
use crate::clock::{Clock, Instant};
use crate::coordinator::{Coordinator, Rules, Tokens};
use crate::node::{Inbox, Node};

/// Makes the nodes of one engine.
pub(crate) type MakeNodes = dyn Fn(Inbox, Clock) -> Vec<Box<dyn Node>> + Send + Sync;

/// What an engine is made of, in a form that can be sent to its thread.
pub(crate) struct Setup {
    pub(crate) clock: Clock,
    pub(crate) rules: Rules,
    /// Makes the nodes, where the engine runs.
    pub(crate) nodes: Arc<MakeNodes>,
    /// How long the end waits for the next release to be answered.
    pub(crate) drain: Duration,
}

/// The most commands taken in one turn.
const COMMANDS: usize = 1024;

/// An engine, and all that it is fed with.
pub(crate) struct Runner {
    engine: Engine<Coordinator>,
    commands: mpsc::UnboundedReceiver<Command>,
    inbox: Inbox,
    clock: Clock,
    drain: Duration,
    batch: Vec<Command>,
    /// Once it is to end.
    end: Option<End>,
}

/// The end of an engine: it waits for releases as long as nodes answer some.
struct End {
    /// When it comes, unless a node answers a release before.
    at: Instant,
    /// When it comes at the latest.
    latest: Instant,
    /// How many answers were missing at the last look.
    open: usize,
}

/// As many times as long as nothing may happen, the end may be put off.
const PATIENCE: u32 = 10;

impl Runner {
    pub(crate) fn new(
        setup: Setup,
        commands: mpsc::UnboundedReceiver<Command>,
        tokens: Tokens,
        chance: Chance,
    ) -> Self {
        let Setup {
            clock,
            rules,
            nodes,
            drain,
        } = setup;
        let inbox = Inbox::default();
        let nodes = nodes(inbox.clone(), clock.clone());
        let store = Coordinator::new(nodes, inbox.clone(), rules, tokens);
        let quorum = store.quorum();
        Runner {
            engine: Engine::new(store, quorum, clock.clone(), chance),
            commands,
            inbox,
            clock,
            drain,
            batch: Vec::with_capacity(COMMANDS),
            end: None,
        }
    }

    /// Waits until there is something to do: [`Runner::turn`] must follow.
    pub(crate) async fn wait(&mut self, alarm: &mut Alarm) {
        alarm.arm(self.next_timeout());
        let ended = self.end.is_some();
        tokio::select! {
            biased;
            count = self.commands.recv_many(&mut self.batch, COMMANDS), if !ended => {
                if count == 0 {
                    self.abandoned();
                }
            }
            () = self.inbox.arrived() => {}
            () = alarm.ring() => {}
        }
        if self
            .next_timeout()
            .is_some_and(|due| due <= self.clock.now())
        {
            // After a stall of this thread, or of the whole process, answers may have been here
            // before anything fell due. The connections read them first, or nodes that answered
            // in time are taken for silent ones: once to hear from the operating system, and once
            // to let the connections run.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
    }

    /// Client and guards are gone: what they left behind is released.
    fn abandoned(&mut self) {
        let now = self.clock.now();
        self.engine.close(now);
        self.begin_end(now);
    }

    fn begin_end(&mut self, now: Instant) {
        self.end = Some(End {
            at: now.after(self.drain),
            latest: now.after(self.drain.saturating_mul(PATIENCE)),
            open: self.engine.unreleased(),
        });
    }

    /// Does all there is to do now. `false` when the engine has ended.
    pub(crate) fn turn(&mut self) -> bool {
        let now = self.clock.now();
        for command in self.batch.drain(..) {
            self.engine.command(now, command);
        }
        self.engine.turn(self.clock.now());
        if self.engine.is_closing() && self.end.is_none() {
            self.refuse();
            self.begin_end(self.clock.now());
        }
        let Some(end) = &mut self.end else {
            return true;
        };
        let (now, open) = (self.clock.now(), self.engine.unreleased());
        if open < std::mem::replace(&mut end.open, open) {
            end.at = now.after(self.drain).min(end.latest);
        }
        let ended = now >= end.at || open == 0;
        if ended {
            self.engine.report();
        }
        !ended
    }

    /// Answers what was sent before the channel closed.
    fn refuse(&mut self) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            self.engine.command(self.clock.now(), command);
        }
        self.engine.turn(self.clock.now());
    }

    /// When [`Runner::turn`] must be called at the latest.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let engine = self.engine.next_timeout();
        let end = self.end.as_ref().map(|end| end.at);
        engine.into_iter().chain(end).min()
    }
}

#[cfg(any(test, feature = "test-util"))]
impl Runner {
    /// Takes what has been sent, without waiting for it: the simulation's way.
    pub(crate) fn take(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.batch.push(command);
        }
        if self.batch.is_empty() && self.end.is_none() && self.commands.is_closed() {
            self.abandoned();
        }
    }

    /// Whether anything has come in, be it due or not.
    pub(crate) fn is_busy(&self) -> bool {
        let left = self.commands.is_closed() && self.end.is_none();
        left || !self.commands.is_empty() || !self.inbox.is_empty()
    }
}
