//! Hears from the nodes when a lock is let go, and who else waits for it (P12).
//!
//! ```text
//!   listen ─► Node::listen × N ─► Event::Listening, Event::Note ─► Notes ─► Outcome::Hint
//!   idle ─(a quarter of a second)─► Node::ignore × N
//! ```
//!
//! Nothing is subscribed to while nobody waits, but for a moment after: whoever takes turns with
//! others on one lock would do little else than subscribe.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{Coordinator, Outcome};
use crate::clock::Instant;
use crate::node::Note;
use crate::quorum::{Hint, Notes, Quorum};

/// How long what is known of a lock's rivals is of use, and subscriptions last that nobody needs.
const LINGER: Duration = Duration::from_millis(250);

/// The locks that somebody waits for, here or elsewhere.
#[derive(Default)]
pub(super) struct Listeners {
    by_key: HashMap<Arc<[u8]>, Listener>,
    /// When to look whether a lock may be forgotten, in order.
    idle: VecDeque<(Instant, Arc<[u8]>)>,
}

struct Listener {
    notes: Notes,
    /// The nodes were asked to tell.
    subscribed: bool,
    /// How many others wait, as far as a node said lately.
    rivals: u32,
    /// A lease of this client's holds it. Its rivals wait meanwhile, and are not forgotten.
    ours: bool,
    /// Since when nobody here waits; never, while somebody does.
    since: Option<Instant>,
}

impl Coordinator {
    /// Somebody waits for the lock at `key`.
    pub(super) fn begin_listening(&mut self, key: &Arc<[u8]>) {
        let listener = self.listeners.entry(key, self.quorum);
        listener.since = None;
        if !std::mem::replace(&mut listener.subscribed, true) {
            for node in &mut self.nodes {
                node.listen(key);
            }
        }
    }

    /// Nobody here waits for it any more.
    pub(super) fn end_listening(&mut self, key: &Arc<[u8]>, now: Instant) {
        if let Some(listener) = self.listeners.by_key.get_mut(key) {
            listener.since = Some(now);
            self.listeners
                .idle
                .push_back((now.after(LINGER), Arc::clone(key)));
        }
    }

    /// This client holds the lock at `key` no more.
    pub(super) fn let_go(&mut self, key: &Arc<[u8]>, now: Instant) {
        if let Some(listener) = self.listeners.by_key.get_mut(key)
            && std::mem::take(&mut listener.ours)
            && listener.since.is_some()
        {
            self.end_listening(key, now);
        }
    }

    /// How many others are known to wait for the lock at `key`.
    pub(super) fn known_rivals(&self, key: &[u8]) -> u32 {
        self.listeners.by_key.get(key).map_or(0, |it| it.rivals)
    }

    /// A round for `key` begins. Whether it is to be announced: somebody may listen.
    pub(super) fn attempted(&mut self, key: &[u8]) -> bool {
        let Some(listener) = self.listeners.by_key.get_mut(key) else {
            return false;
        };
        listener.notes.begin();
        listener.subscribed || listener.rivals > 0
    }

    /// What is known of the notes on `key`: whether a quorum tells us, and whether it was let go
    /// since the last round began.
    pub(super) fn heard(&self, key: &[u8]) -> (bool, bool) {
        let listener = self.listeners.by_key.get(key);
        listener.map_or((false, false), |it| (it.notes.is_live(), it.notes.is_due()))
    }

    /// `node` has refused the lock at `key`.
    pub(super) fn refused_by(&mut self, node: usize, key: &[u8]) {
        if let Some(listener) = self.listeners.by_key.get_mut(key) {
            listener.notes.refused(node);
        }
    }

    /// `node` has carried out a release, while so many listened.
    pub(super) fn heard_by(&mut self, node: usize, key: &Arc<[u8]>, count: u32, now: Instant) {
        let known = self.listeners.by_key.contains_key(key);
        if count == 0 && !known {
            return;
        }
        let listener = self.listeners.entry(key, self.quorum);
        listener.rivals = count.saturating_sub(listener.notes.hears(node).into());
        // What is known of rivals lasts for a moment, too.
        let fresh = |since: Instant| now < since.after(LINGER / 2);
        if listener.since.is_some_and(|since| !fresh(since)) || !known {
            self.end_listening(key, now);
        }
    }

    /// `node` tells of `key` from now on.
    pub(super) fn confirmed(&mut self, node: usize, key: &Arc<[u8]>) {
        if let Some(listener) = self.listeners.by_key.get_mut(key) {
            let hint = listener.notes.confirmed(node);
            self.hint(key, hint);
        }
    }

    /// A note of `node` on `key`.
    pub(super) fn noted(&mut self, node: usize, key: &Arc<[u8]>, note: Note) {
        let Some(listener) = self.listeners.by_key.get_mut(key) else {
            return;
        };
        let hint = match note {
            Note::Freed => listener.notes.freed(node),
            Note::Crowd { listeners } => {
                listener.rivals = listeners.saturating_sub(listener.notes.hears(node).into());
                None
            }
            Note::Taken { rival, left } => listener.notes.taken(node, rival, left),
        };
        self.hint(key, hint);
    }

    fn hint(&mut self, key: &Arc<[u8]>, hint: Option<Hint>) {
        let key = Arc::clone(key);
        self.outcomes
            .extend(hint.map(|hint| Outcome::Hint { key, hint }));
    }

    /// The connection of `node` has ended: it tells nothing before the next one.
    pub(super) fn deafen(&mut self, node: usize) {
        for listener in self.listeners.by_key.values_mut() {
            listener.notes.cut(node);
        }
    }

    /// Forgets locks that nobody has waited for lately.
    pub(super) fn tidy_listeners(&mut self, now: Instant) {
        while let Some((due, key)) = self.listeners.take_idle(now) {
            let since = self.listeners.by_key.get(&key).and_then(|it| it.since);
            let Some(since) = since else { continue };
            if since.after(LINGER) > due {
                continue;
            }
            if self.listeners.forget(&key, self.quorum) {
                for node in &mut self.nodes {
                    node.ignore(&key);
                }
            }
        }
    }
}

impl Listeners {
    fn entry(&mut self, key: &Arc<[u8]>, quorum: Quorum) -> &mut Listener {
        self.by_key
            .entry(Arc::clone(key))
            .or_insert_with(|| Listener {
                notes: Notes::new(quorum),
                subscribed: false,
                rivals: 0,
                ours: false,
                since: None,
            })
    }

    /// This client holds the lock at `key` from now on.
    pub(super) fn hold(&mut self, key: &[u8]) {
        if let Some(listener) = self.by_key.get_mut(key) {
            listener.ours = true;
        }
    }

    /// Forgets the lock at `key`, but for rivals that wait until this client lets go. Whether the
    /// nodes need not tell of it any more.
    fn forget(&mut self, key: &[u8], quorum: Quorum) -> bool {
        let Some(listener) = self.by_key.get_mut(key) else {
            return false;
        };
        let subscribed = std::mem::take(&mut listener.subscribed);
        if listener.ours && listener.rivals > 0 {
            listener.notes = Notes::new(quorum);
        } else {
            self.by_key.remove(key);
        }
        subscribed
    }

    fn take_idle(&mut self, now: Instant) -> Option<(Instant, Arc<[u8]>)> {
        if self.next_timeout()? > now {
            return None;
        }
        self.idle.pop_front()
    }

    /// When there is something to forget.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.idle.front().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests;
