//! One process of a world: the engine of its client, run by the world instead of a thread.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::Instant;
use crate::coordinator::Tokens;
use crate::engine::{Chance, Commands, Handle, Runner, Setup, Start};
use crate::node::OwnerToken;
use crate::node::memory::chance;

type Newborn = (Setup, Arc<Commands>);

/// A process.
pub(super) struct Process {
    /// What its client has asked to be started.
    newborn: Arc<Mutex<Vec<Newborn>>>,
    runners: Vec<Runner>,
    chance: chance::Chance,
    pub(super) frozen_until: Instant,
    /// When it is due, where that was worked out and has not changed since.
    known_due: Cell<Option<Option<Instant>>>,
}

impl Process {
    pub(super) fn new(seed: u64) -> Self {
        Process {
            newborn: Arc::default(),
            runners: Vec::new(),
            chance: chance::Chance::new(seed),
            frozen_until: Instant::from_nanos(0),
            known_due: Cell::new(None),
        }
    }

    /// How its client starts an engine.
    pub(super) fn start(&self) -> Arc<Start> {
        let newborn = Arc::clone(&self.newborn);
        Arc::new(move |setup| {
            let commands = Arc::<Commands>::default();
            let mut newborn = newborn.lock().unwrap_or_else(PoisonError::into_inner);
            newborn.push((setup, Arc::clone(&commands)));
            Ok(Handle::new(commands))
        })
    }

    /// Does what is to be done now. `false` if there is nothing.
    pub(super) fn turn(&mut self, now: Instant) -> bool {
        if self.frozen_until > now {
            return false;
        }
        self.adopt();
        let due = self.due(now).is_some_and(|due| due <= now);
        if !due && !self.runners.iter().any(Runner::is_busy) {
            return false;
        }
        let late = |runner: &Runner| runner.next_timeout().is_some_and(|due| due <= now);
        let busy = |runner: &Runner| runner.is_busy() || late(runner);
        self.known_due.set(None);
        let Some(index) = self.runners.iter().position(busy) else {
            return false;
        };
        self.runners[index].take();
        if !self.runners[index].turn() {
            self.runners.remove(index);
        }
        true
    }

    fn adopt(&mut self) {
        let newborn =
            std::mem::take(&mut *self.newborn.lock().unwrap_or_else(PoisonError::into_inner));
        for (setup, commands) in newborn {
            self.known_due.set(None);
            let (tokens, chance) = (self.tokens(), self.jitter());
            self.runners
                .push(Runner::new(setup, commands, tokens, chance));
        }
    }

    fn tokens(&mut self) -> Tokens {
        let mut chance = chance::Chance::new(self.chance.draw());
        Box::new(move || {
            let mut bytes = [0; 20];
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&chance.draw().to_be_bytes()[..chunk.len()]);
            }
            Some(OwnerToken::new(bytes))
        })
    }

    fn jitter(&mut self) -> Chance {
        let mut chance = chance::Chance::new(self.chance.draw());
        Box::new(move || chance.draw())
    }

    /// When it has something to do, as far as is known at `now`.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if self.frozen_until > now {
            return Some(self.frozen_until);
        }
        if let Some(known) = self.known_due.get() {
            return known;
        }
        let due = self.runners.iter().filter_map(Runner::next_timeout).min();
        self.known_due.set(Some(due));
        due
    }

    /// Something has happened that may change when it is due: at a server, or by a task.
    pub(super) fn forget_due(&self) {
        self.known_due.set(None);
    }
}
