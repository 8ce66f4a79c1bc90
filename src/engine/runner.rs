//! Feeds an engine: commands in, turns when something has arrived or is due, and the end.
//!
//! It runs on the client's thread, which waits between turns; now and then on a caller's, for what
//! the caller asks; and in a simulation, where nothing waits.

use std::sync::Arc;
use std::time::Duration;

use super::alarm::Alarm;
use super::{Chance, Command, Commands, Engine};
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

/// The most commands, and the most events of nodes, that a caller's thread deals with beside its
/// own: the rest is the client's thread's.
const FEW: usize = 16;

/// How often a caller looks at what has come meanwhile.
const LOOKS: u32 = 4;

/// With more requests than this under way, commands wait for each other: one write for many costs
/// less than the hop.
const CROWD: usize = 8;

/// Tasks that were answered together ask again together: for so long after a crowd the next is
/// expected.
const DISPERSAL: Duration = Duration::from_millis(5);

/// An engine, and all that it is fed with.
pub(crate) struct Runner {
    engine: Engine<Coordinator>,
    commands: Arc<Commands>,
    inbox: Inbox,
    clock: Clock,
    drain: Duration,
    batch: Vec<Command>,
    /// When the alarm of its thread rings.
    armed: Option<Instant>,
    /// Until when callers do not work here.
    crowded_until: Instant,
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
        commands: Arc<Commands>,
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
            batch: Vec::new(),
            armed: None,
            crowded_until: Instant::from_nanos(0),
            end: None,
        }
    }

    /// Sets the alarm of its thread.
    pub(super) fn arm(&mut self, alarm: &mut Alarm) {
        self.armed = alarm.arm(self.next_timeout());
    }

    /// Whether something has fallen due.
    pub(super) fn is_late(&self) -> bool {
        let due = self.next_timeout();
        due.is_some_and(|due| due <= self.clock.now())
    }

    /// What its thread waits for beside the alarm and the commands.
    pub(super) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// Takes what has been sent, without waiting for it. [`Runner::turn`] must follow.
    pub(crate) fn take(&mut self) {
        if self.end.is_some() {
            return;
        }
        let all = self.commands.take(&mut self.batch, COMMANDS);
        if !all {
            self.commands.ring();
        }
        if self.batch.is_empty() && self.commands.are_over() {
            self.abandoned();
        }
    }

    /// Does what has been sent on the thread of a caller. `false` where the engine's own thread
    /// has to do it, or to do more.
    ///
    /// What falls due is left to that thread, which lets the nodes' answers in first. So is a
    /// crowd: nobody shall work for many others on his way.
    pub(super) fn serve_here(&mut self) -> bool {
        let crowd = self.inbox.len() > FEW || self.commands.len() > FEW;
        if self.end.is_some() || crowd || self.is_late() {
            return false;
        }
        // Answers that come while the requests are still being written save the caller the wait.
        for _ in 0..LOOKS {
            self.take();
            if !self.turn() || self.end.is_some() {
                return false;
            }
            if self.inbox.is_empty() {
                break;
            }
        }
        let next = self.next_timeout();
        let earlier = next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed));
        !earlier
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
        self.look_for_crowd();
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

    fn look_for_crowd(&mut self) {
        let now = self.clock.now();
        if self.engine.pending() > CROWD {
            self.crowded_until = now.after(DISPERSAL);
        }
        self.commands.set_crowded(now < self.crowded_until);
    }

    /// Answers what was sent before the channel closed.
    fn refuse(&mut self) {
        for command in self.commands.close() {
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

impl Drop for Runner {
    fn drop(&mut self) {
        // Whoever sends from now on is told that there is nobody.
        drop(self.commands.close());
    }
}

#[cfg(any(test, feature = "test-util"))]
impl Runner {
    /// Whether anything has come in, be it due or not.
    pub(crate) fn is_busy(&self) -> bool {
        let left = self.commands.are_over() && self.end.is_none();
        left || self.commands.len() > 0 || !self.inbox.is_empty()
    }
}

#[cfg(test)]
mod tests;
