//! Who waits for which lock, in order of arrival.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::WaiterId;

/// The lines of all locks that somebody waits for.
#[derive(Default)]
pub(super) struct Lines {
    by_key: HashMap<Arc<[u8]>, Line>,
}

#[derive(Default)]
struct Line {
    waiters: VecDeque<WaiterId>,
    /// The store was asked to listen for the lock.
    listening: bool,
}

impl Lines {
    /// Joins the line for `key`. Whether it is the first.
    pub(super) fn join(&mut self, key: &Arc<[u8]>, id: WaiterId) -> bool {
        let line = self.by_key.entry(Arc::clone(key)).or_default();
        line.waiters.push_back(id);
        line.waiters.len() == 1
    }

    /// Leaves it.
    pub(super) fn leave(&mut self, key: &[u8], id: WaiterId) {
        if let Some(line) = self.by_key.get_mut(key) {
            line.waiters.retain(|&other| other != id);
            if line.waiters.is_empty() && !line.listening {
                self.by_key.remove(key);
            }
        }
    }

    pub(super) fn first(&self, key: &[u8]) -> Option<WaiterId> {
        self.by_key.get(key)?.waiters.front().copied()
    }

    /// The store is to listen for `key` from now on: whether it did not before.
    pub(super) fn listen(&mut self, key: &[u8]) -> bool {
        let line = self.by_key.get_mut(key);
        line.is_some_and(|line| !std::mem::replace(&mut line.listening, true))
    }

    /// The store need not listen for `key` any more: whether it did.
    pub(super) fn ignore(&mut self, key: &[u8]) -> bool {
        let Some(line) = self.by_key.get_mut(key) else {
            return false;
        };
        let listening = std::mem::take(&mut line.listening);
        if line.waiters.is_empty() {
            self.by_key.remove(key);
        }
        listening
    }

    pub(super) fn clear(&mut self) {
        self.by_key.clear();
    }
}
