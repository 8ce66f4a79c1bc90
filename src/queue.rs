//! The acquisitions of one client, in order of arrival for each resource (P12).
//!
//! ```text
//!   enter ─► [ first: round, pause or listen, round, … ]─► acquired | given up
//!            [ others: wait their turn                 ]
//!   freed(key), hint(key): the first asks again
//! ```
//!
//! Inside one client only the first in line asks the nodes. Where others are known to wait, too, it
//! takes its chance among them, whoever held the lock before. One whose time is up while it stands
//! further back asks once, out of line, so that its error tells how things are.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Instant;
use crate::coordinator::{AttemptId, LeaseStore, Timers};
use crate::hash::FastMap;
use crate::metrics;
use crate::quorum::{Acquisition, Next, Wait};

mod failure;
mod line;
mod spec;
mod turns;
mod waiter;

pub(crate) use failure::Failure;
#[cfg(test)]
pub(crate) use spec::spec;
pub(crate) use spec::{Spec, Terms};
pub(crate) use waiter::{Entrant, Served, Unserved};

use failure::Seen;
use line::Lines;
use waiter::{State, Waiter};

/// Names one acquisition.
pub(crate) type WaiterId = u64;

/// The acquisitions that go on. `R` is how a waiter hears of the outcome.
pub(crate) struct Queue<R> {
    waiters: FastMap<WaiterId, Waiter<R>>,
    lines: Lines,
    attempts: FastMap<AttemptId, WaiterId>,
    next_attempt: AttemptId,
    timers: Timers<WaiterId>,
    meters: metrics::Queueing,
}

impl<R> Default for Queue<R> {
    fn default() -> Self {
        Queue {
            waiters: FastMap::default(),
            lines: Lines::default(),
            attempts: FastMap::default(),
            next_attempt: 0,
            timers: Timers::default(),
            meters: metrics::Queueing::default(),
        }
    }
}

impl<R> Queue<R> {
    /// A new acquisition. The first in line begins its round at once; `held_here` tells that a
    /// guard of this client holds the lock.
    pub(crate) fn enter(
        &mut self,
        id: WaiterId,
        entrant: Entrant<R>,
        held_here: bool,
        (now, chance): (Instant, u64),
        store: &mut dyn LeaseStore,
    ) {
        let Entrant {
            spec,
            wait,
            adopts,
            reply,
        } = entrant;
        let terms = &spec.terms;
        let acquisition = Acquisition::begin(now, wait, &terms.retry, terms.timing.ttl());
        let in_line = wait != Wait::For(Duration::ZERO);
        let first = !in_line || self.lines.join(&spec.key, id);
        self.timers.set(acquisition.deadline(), id);
        let waiter = Waiter {
            spec,
            acquisition,
            entered: now,
            state: State::Behind,
            missed: 0,
            in_line,
            adopts,
            reply,
        };
        let parkable = waiter.is_parkable();
        self.waiters.insert(id, waiter);
        self.meters.waiters(self.waiters.len());
        if first && held_here && parkable {
            self.set_state(id, State::Parked);
        } else if first && parkable {
            self.take_turn(id, (now, chance), store);
        } else if first {
            self.ask(id, now, store);
        }
    }

    fn set_state(&mut self, id: WaiterId, state: State) {
        if let Some(waiter) = self.waiters.get_mut(&id) {
            waiter.state = state;
        }
    }

    /// Begins a round for `id`.
    fn ask(&mut self, id: WaiterId, now: Instant, store: &mut dyn LeaseStore) {
        let Some(waiter) = self.waiters.get_mut(&id) else {
            return;
        };
        self.next_attempt += 1;
        let attempt = self.next_attempt;
        waiter.state = State::Asking(attempt);
        self.attempts.insert(attempt, id);
        let Spec { key, terms, .. } = &*waiter.spec;
        let timing = &terms.timing;
        match waiter.adopts {
            Some(secret) => store.adopt(now, attempt, key, secret, timing),
            None => store.acquire(now, attempt, key, timing),
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Begins the rounds that are due.
    pub(crate) fn turn(&mut self, now: Instant, store: &mut dyn LeaseStore) {
        while let Some(id) = self.timers.due(now) {
            let due = self
                .waiters
                .get(&id)
                .is_some_and(|waiter| match waiter.state {
                    State::Pausing(until) | State::Listening(until) => now >= until,
                    State::Behind | State::Parked => now >= waiter.acquisition.deadline(),
                    State::Asking(_) => false,
                });
            if due {
                self.ask(id, now, store);
            }
        }
        let waiters = &self.waiters;
        self.timers.tidy(waiters.len(), |moment, id| {
            waiters.get(id).is_some_and(|waiter| match waiter.state {
                State::Pausing(until) | State::Listening(until) if until == moment => true,
                _ => waiter.acquisition.deadline() == moment,
            })
        });
    }

    /// The round of `attempt` has its lease. `None` when its waiter is gone.
    pub(crate) fn acquired(
        &mut self,
        attempt: AttemptId,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Served<R>> {
        let id = self.attempts.remove(&attempt)?;
        self.served(id, 1, now, store)
    }

    /// `id` has the lock, by so many rounds beside those that failed: one, or none where it was
    /// handed on.
    pub(crate) fn served(
        &mut self,
        id: WaiterId,
        last: u32,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Served<R>> {
        let waiter = self.leave(id, now, store)?;
        // Whoever is first now waits for the hold to end, and needs no notes for that.
        self.ignore(&waiter.spec.key, now, store);
        if let Some(first) = self.lines.first(&waiter.spec.key)
            && let Some(next) = self.waiters.get_mut(&first)
        {
            next.acquisition.ignores();
            if !matches!(next.state, State::Asking(_)) {
                next.state = State::Parked;
            }
        }
        let rounds = waiter.acquisition.rounds() + last;
        let waited = now.since(waiter.entered);
        if waiter.adopts.is_none() {
            let granted = metrics::Ended::Granted;
            self.meters.answered(granted, rounds, waited);
        }
        Some(Served {
            spec: waiter.spec,
            adopted: waiter.adopts.is_some(),
            rounds,
            waited,
            reply: waiter.reply,
        })
    }

    /// What the round of `attempt` is about.
    pub(crate) fn key_of(&self, attempt: AttemptId) -> Option<&[u8]> {
        let waiter = self.waiters.get(self.attempts.get(&attempt)?)?;
        Some(&waiter.spec.key)
    }

    /// The round of `attempt` has failed: another one follows, or its waiter gives up.
    pub(crate) fn failed(
        &mut self,
        attempt: AttemptId,
        failure: Failure,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Unserved<R>> {
        let id = self.attempts.remove(&attempt)?;
        let waiter = self.waiters.get_mut(&id)?;
        match waiter
            .acquisition
            .failed(now, &failure.failed, failure.chance)
        {
            Next::RetryAt(moment) => {
                self.pause(id, moment);
                None
            }
            Next::Listen => {
                let key = Arc::clone(&waiter.spec.key);
                self.listen(&key, store);
                self.ask(id, now, store);
                None
            }
            Next::Await(until) => {
                self.await_note(id, until, store);
                None
            }
            Next::GiveUp => {
                let waiter = self.leave(id, now, store)?;
                self.wake_first(&waiter.spec.key, failure.held_here, now, store);
                let seen = Seen {
                    resource: &waiter.spec.resource,
                    rounds: waiter.acquisition.rounds(),
                    waited: now.since(waiter.entered),
                };
                if waiter.adopts.is_none() {
                    let ended = failure.failed.why.into();
                    self.meters.answered(ended, seen.rounds, seen.waited);
                }
                let error = failure.into_error(seen);
                Some(Unserved {
                    reply: waiter.reply,
                    error,
                })
            }
        }
    }

    /// The waiter is gone; its place is the next one's.
    pub(crate) fn cancel(
        &mut self,
        id: WaiterId,
        held_here: impl FnOnce(&[u8]) -> bool,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) {
        let Some(waiter) = self.leave(id, now, store) else {
            return;
        };
        if waiter.adopts.is_none() {
            self.meters.ended(metrics::Ended::Cancelled);
        }
        if let State::Asking(attempt) = waiter.state {
            self.attempts.remove(&attempt);
            store.abandon(now, attempt);
        }
        let key = &waiter.spec.key;
        self.wake_first(key, held_here(key), now, store);
    }

    /// Everybody gives up: the client is closed.
    pub(crate) fn close(&mut self, now: Instant, store: &mut dyn LeaseStore) -> Vec<R> {
        for attempt in std::mem::take(&mut self.attempts).into_keys() {
            store.abandon(now, attempt);
        }
        self.lines.clear();
        self.meters.waiters(0);
        let waiters = std::mem::take(&mut self.waiters).into_values();
        let ended = |waiter: Waiter<R>| {
            self.meters.ended(metrics::Ended::Closed);
            waiter.reply
        };
        waiters.map(ended).collect()
    }

    /// Takes a waiter out of its line.
    fn leave(
        &mut self,
        id: WaiterId,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Waiter<R>> {
        let waiter = self.waiters.remove(&id)?;
        self.meters.waiters(self.waiters.len());
        if waiter.in_line {
            let key = &waiter.spec.key;
            self.lines.leave(key, id);
            if self.lines.first(key).is_none() {
                self.ignore(key, now, store);
            }
        }
        Some(waiter)
    }
}
