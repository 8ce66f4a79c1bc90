//! Moments at which something is due, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Instant;

/// A heap of moments. There is no way to cancel one: whoever is woken looks whether anything is
/// due, which it must do anyway.
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

    /// Takes the earliest key that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, key))| key)
    }
}
