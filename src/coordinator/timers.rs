//! Moments at which something is due, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Instant;

/// A heap of moments. There is no way to cancel one: whoever is woken looks whether anything is
/// due, which it must do anyway, and [`Timers::tidy`] drops what has become idle.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    heap: BinaryHeap<Reverse<(Instant, K)>>,
}

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Timers {
            heap: BinaryHeap::new(),
        }
    }
}

impl<K: Ord> Timers<K> {
    /// Something of `key` is due at `moment`.
    pub(crate) fn set(&mut self, moment: Instant, key: K) {
        if moment < Instant::FAR {
            self.heap.push(Reverse((moment, key)));
        }
    }

    /// The earliest moment.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((moment, _))| *moment)
    }

    /// The earliest moment of `key`.
    #[cfg(test)]
    pub(crate) fn first_of(&self, key: &K) -> Option<Instant> {
        let moments = self.heap.iter().filter(|Reverse((_, of))| of == key);
        moments.map(|Reverse((moment, _))| *moment).min()
    }

    /// Takes the earliest key that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, key))| key)
    }

    /// Drops the moments at which nothing is due any more, as `alive` says; `keys` is the number
    /// of keys that anything can be due for.
    ///
    /// At the head it always does, so that nobody is woken for nothing; further back once the heap
    /// has several times as many moments as there are keys, so that it stays in proportion to them
    /// and a moment costs the same however many there are.
    pub(crate) fn tidy(&mut self, keys: usize, alive: impl Fn(Instant, &K) -> bool) {
        if self.heap.len() > IDLE + keys.saturating_mul(4) {
            self.heap
                .retain(|Reverse((moment, key))| alive(*moment, key));
        }
        while let Some(Reverse((moment, key))) = self.heap.peek()
            && !alive(*moment, key)
        {
            self.heap.pop();
        }
    }
}

/// The number of idle moments that are not worth looking for.
const IDLE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn an_idle_moment_at_the_head_wakes_nobody() {
        let mut timers = Timers::default();
        for key in 1..=4 {
            timers.set(at(key), key);
        }
        timers.tidy(4, |_, &key| key > 2);
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.due(at(9)), Some(3));
        assert_eq!(timers.due(at(9)), Some(4));
        assert_eq!(timers.due(at(9)), None);
    }

    #[test]
    fn the_heap_stays_in_proportion_to_what_is_alive() {
        let mut timers = Timers::default();
        timers.set(at(0), 0);
        for key in 1..100_000 {
            timers.set(at(key), key);
            timers.tidy(2, |_, &other| other == 0 || other == key);
            assert!(timers.heap.len() <= IDLE + 9);
        }
        assert_eq!(timers.next(), Some(at(0)));
    }
}
