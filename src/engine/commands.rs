//! Commands on their way to an engine, from whichever thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Command;

/// The queue between callers and one engine. Its length is bounded by the callers: each waits for
/// what it has asked, but for what a drop asks.
#[derive(Default)]
pub(crate) struct Commands {
    queue: Mutex<Queue>,
    bell: Notify,
    /// So much is under way that commands are better taken many at a time.
    crowded: AtomicBool,
}

/// With room for more, the queue gives its memory back after a burst.
const KEPT: usize = 4096;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Command>,
    /// The engine takes no more.
    closed: bool,
    /// Nobody is left who could send one.
    abandoned: bool,
}

impl Commands {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a command in. Somebody must take it: [`Commands::ring`] wakes the engine's thread.
    /// `false` when there is no engine any more.
    pub(super) fn push(&self, command: Command) -> bool {
        let mut queue = self.lock();
        if queue.closed {
            // What is dropped with it may be the last to know of this queue, and say so.
            drop(queue);
            drop(command);
            return false;
        }
        queue.waiting.push_back(command);
        true
    }

    /// Moves up to `most` commands behind `batch`. `false` when some are left.
    pub(super) fn take(&self, batch: &mut Vec<Command>, most: usize) -> bool {
        let mut queue = self.lock();
        let count = queue.waiting.len().min(most);
        batch.extend(queue.waiting.drain(..count));
        if queue.waiting.is_empty() && queue.waiting.capacity() > KEPT {
            queue.waiting = VecDeque::new();
        }
        queue.waiting.is_empty()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Wakes the engine's thread.
    pub(super) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Ends when somebody has rung since the last time it ended.
    pub(super) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Takes no more, and gives out what is there.
    pub(super) fn close(&self) -> VecDeque<Command> {
        let mut queue = self.lock();
        queue.closed = true;
        std::mem::take(&mut queue.waiting)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Nobody will send any more.
    pub(super) fn abandon(&self) {
        self.lock().abandoned = true;
        self.ring();
    }

    /// Whether nobody is left, and all is taken that was sent.
    pub(super) fn are_over(&self) -> bool {
        let queue = self.lock();
        queue.abandoned && queue.waiting.is_empty()
    }

    pub(super) fn set_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Ordering::Relaxed);
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }
}
