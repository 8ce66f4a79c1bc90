//! Whose turn it is: when the first in line asks, pauses, or listens (P12).

use std::sync::Arc;
use std::time::Duration;

use super::waiter::{State, Waiter};
use super::{Queue, Spec, WaiterId};
use crate::clock::Instant;
use crate::coordinator::LeaseStore;
use crate::quorum::Hint;
use crate::quorum::backoff::part;

impl<R> Queue<R> {
    /// Who is next in line for the lock at `key`, and not asking for it at this moment.
    pub(crate) fn heir(&self, key: &[u8]) -> Option<(WaiterId, &Arc<Spec>)> {
        let first = self.lines.first(key)?;
        let waiter = self.waiters.get(&first)?;
        let idle = !matches!(waiter.state, State::Asking(_)) && waiter.adopts.is_none();
        idle.then_some((first, &waiter.spec))
    }

    /// The lock at `key` is free as far as this client goes: the first in line is to have it.
    pub(crate) fn freed(
        &mut self,
        key: &[u8],
        (now, chance): (Instant, u64),
        store: &mut dyn LeaseStore,
    ) {
        let Some(first) = self.lines.first(key) else {
            return;
        };
        let asking = |waiter: &Waiter<R>| matches!(waiter.state, State::Asking(_));
        if self
            .waiters
            .get(&first)
            .is_some_and(|waiter| !asking(waiter))
        {
            self.take_turn(first, (now, chance), store);
        }
    }

    /// Something was heard of the lock at `key`.
    pub(crate) fn hint(
        &mut self,
        key: &[u8],
        hint: Hint,
        (now, chance): (Instant, u64),
        store: &mut dyn LeaseStore,
    ) {
        let Some(first) = self.lines.first(key) else {
            return;
        };
        let Some(waiter) = self.waiters.get(&first) else {
            return;
        };
        let trip = store.trip();
        match (hint, waiter.state) {
            (Hint::Freed, State::Listening(_)) => {
                let span = span(store.rivals(key), waiter.missed, trip);
                self.pause(first, now.after(part(span, chance)));
            }
            // Somebody was faster: what was a try would be a refusal.
            (Hint::Taken { left }, State::Pausing(_)) if waiter.is_parkable() => {
                let until = waiter.acquisition.look(now, Some(left), trip, chance);
                self.await_note(first, until, store);
            }
            _ => {}
        }
    }

    pub(super) fn await_note(&mut self, id: WaiterId, until: Instant, store: &mut dyn LeaseStore) {
        let Some(waiter) = self.waiters.get_mut(&id) else {
            return;
        };
        waiter.state = State::Listening(until);
        waiter.missed = waiter.missed.saturating_add(1);
        self.timers.set(until, id);
        let key = Arc::clone(&waiter.spec.key);
        self.listen(&key, store);
    }

    pub(super) fn listen(&mut self, key: &Arc<[u8]>, store: &mut dyn LeaseStore) {
        if self.lines.listen(key) {
            store.listen(key);
        }
    }

    /// The lock may be free, and `id` asks for it: at once, or where others wait for it, after a
    /// chance delay, so that each of them may be first. They hear of a release a little later than
    /// whoever releases.
    pub(super) fn take_turn(
        &mut self,
        id: WaiterId,
        (now, chance): (Instant, u64),
        store: &mut dyn LeaseStore,
    ) {
        let Some(waiter) = self.waiters.get(&id) else {
            return;
        };
        let rivals = store.rivals(&waiter.spec.key);
        if rivals == 0 {
            return self.ask(id, now, store);
        }
        let trip = store.trip();
        let delay = trip + part(span(rivals, waiter.missed, trip), chance);
        self.pause(id, now.after(delay));
    }

    pub(super) fn pause(&mut self, id: WaiterId, until: Instant) {
        if let Some(waiter) = self.waiters.get_mut(&id) {
            let until = until.min(waiter.acquisition.deadline());
            waiter.state = State::Pausing(until);
            self.timers.set(until, id);
        }
    }

    /// Somebody else may be the first in line now.
    pub(super) fn wake_first(
        &mut self,
        key: &[u8],
        held_here: bool,
        now: Instant,
        store: &mut dyn LeaseStore,
    ) {
        let Some(first) = self.lines.first(key) else {
            return;
        };
        if self.waiters.get(&first).map(|waiter| waiter.state) != Some(State::Behind) {
            return;
        }
        if held_here {
            self.set_state(first, State::Parked);
        } else {
            self.ask(first, now, store);
        }
    }

    pub(super) fn ignore(&mut self, key: &Arc<[u8]>, now: Instant, store: &mut dyn LeaseStore) {
        if self.lines.ignore(key) {
            store.idle(now, key);
        }
    }
}

/// The span over which contenders spread their tries: a turn of one round for each of them, and
/// two at least. Whoever has waited for long takes an earlier part of it, and is served in the end.
///
/// How many there are is what somebody said. Those who listen and never ask would keep the others
/// from a free lock, so there is a bound, above what crowds need.
fn span(rivals: u32, missed: u32, trip: Duration) -> Duration {
    let all = rivals.saturating_add(1).max(2);
    let aged = u64::from(all) * u64::from(all) / (u64::from(all) + u64::from(missed));
    let whole = trip * u32::try_from(aged.max(1)).unwrap_or(u32::MAX);
    whole.min(LONGEST.max(trip * MOST_TURNS))
}

/// No span is longer than this, the time after which notes are taken for lost; unless so many
/// rounds take longer.
const LONGEST: Duration = Duration::from_secs(2);
const MOST_TURNS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_room_for_all_and_shrinks_for_those_who_wait_long() {
        let trip = Duration::from_millis(1);
        let turns = |rivals, missed| span(rivals, missed, trip).as_millis();
        assert_eq!((turns(0, 0), turns(1, 0), turns(7, 0)), (2, 2, 8));
        assert_eq!((turns(7, 8), turns(7, 24), turns(7, u32::MAX)), (4, 2, 1));
    }

    #[test]
    fn however_many_listen_a_free_lock_is_looked_at_within_seconds() {
        let trip = Duration::from_millis(1);
        assert_eq!(span(u32::MAX, 0, trip), Duration::from_secs(2));
        // Where rounds are slow, a crowd needs its turns all the same.
        assert_eq!(span(u32::MAX, 0, trip * 200), trip * 200 * 64);
        assert_eq!(span(29, 0, trip * 200), trip * 200 * 30);
    }
}
