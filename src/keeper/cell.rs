//! What a guard and its keeper share: the deadline, and whether it is over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use crate::clock::{Clock, Instant};
use crate::error::Loss;
use crate::queue::Spec;

/// The deadline of one hold, as the guard sees it without any I/O.
///
/// **Invariant:** once somebody has seen the hold as over, it is over for good. A reader that
/// finds the deadline passed closes the cell, so that an extension which was decided a moment
/// before cannot bring it back to life under its eyes.
#[derive(Debug)]
pub(crate) struct Cell {
    spec: Arc<Spec>,
    clock: Clock,
    /// In nanoseconds of the boot clock; [`OVER`] when the hold has ended.
    deadline: AtomicU64,
    /// Made when somebody waits for the end, or at it: most holds last without either.
    end: Mutex<Option<Box<End>>>,
}

const OVER: u64 = 0;

#[derive(Debug, Default)]
struct End {
    loss: Option<Loss>,
    wakers: Vec<Waker>,
}

impl Cell {
    pub(crate) fn new(spec: Arc<Spec>, clock: Clock, deadline: Instant) -> Self {
        Cell {
            spec,
            clock,
            deadline: AtomicU64::new(deadline.as_nanos()),
            end: Mutex::default(),
        }
    }

    /// What is held, and on which terms.
    pub(crate) fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// The end of validity, while it has not passed. Looks at the clock, not at a flag.
    pub(crate) fn valid_until(&self) -> Option<Instant> {
        let deadline = self.deadline.load(Ordering::SeqCst);
        if deadline == OVER {
            return None;
        }
        if self.clock.now() < Instant::from_nanos(deadline) {
            return Some(Instant::from_nanos(deadline));
        }
        let closed =
            self.deadline
                .compare_exchange(deadline, OVER, Ordering::SeqCst, Ordering::SeqCst);
        match closed {
            Ok(_) => {
                self.finish(Loss::Expired);
                None
            }
            // The keeper was faster: with a later deadline, or with the end.
            Err(_) => self.valid_until(),
        }
    }

    /// As [`Cell::valid_until`], without closing a cell whose time has come.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn peek(&self) -> Option<Instant> {
        let deadline = self.deadline.load(Ordering::SeqCst);
        let valid = deadline != OVER && self.clock.now() < Instant::from_nanos(deadline);
        valid.then_some(Instant::from_nanos(deadline))
    }

    /// What is left of the validity, by the clock.
    pub(crate) fn remaining(&self) -> std::time::Duration {
        let until = self.valid_until();
        until.map_or(std::time::Duration::ZERO, |until| {
            until.since(self.clock.now())
        })
    }

    /// Moves the deadline. `false` if the hold was seen to be over.
    pub(crate) fn extend(&self, deadline: Instant) -> bool {
        let Some(present) = self.valid_until() else {
            return false;
        };
        let later = deadline.max(present).as_nanos();
        self.deadline
            .compare_exchange(
                present.as_nanos(),
                later,
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    /// Ends the hold, and wakes all that wait for its end. The first reason stands.
    pub(crate) fn end(&self, loss: Loss) {
        self.deadline.store(OVER, Ordering::SeqCst);
        self.finish(loss);
    }

    fn finish(&self, loss: Loss) {
        let wakers = {
            let mut slot = self.lock();
            let end = slot.get_or_insert_default();
            end.loss.get_or_insert(loss);
            std::mem::take(&mut end.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Why the hold is over, if it is.
    pub(crate) fn loss(&self) -> Option<Loss> {
        if self.valid_until().is_some() {
            return None;
        }
        // Between the deadline's end and its reason there is a moment without one.
        let loss = self.lock().as_ref().and_then(|end| end.loss);
        Some(loss.unwrap_or(Loss::Expired))
    }

    /// Ready with the reason once the hold is over; else `waker` is woken then.
    pub(crate) fn poll_loss(&self, waker: &Waker) -> Poll<Loss> {
        {
            let mut slot = self.lock();
            let end = slot.get_or_insert_default();
            if end.loss.is_none() && !end.wakers.iter().any(|known| known.will_wake(waker)) {
                end.wakers.push(waker.clone());
            }
        }
        match self.loss() {
            Some(loss) => Poll::Ready(loss),
            None => Poll::Pending,
        }
    }

    /// A waiter that is dropped takes its waker along.
    pub(crate) fn forget(&self, waker: &Waker) {
        if let Some(end) = &mut *self.lock() {
            end.wakers.retain(|known| !known.will_wake(waker));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Box<End>>> {
        // Nothing panics while it is held; and if it did, the data would still be whole.
        self.end
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn cell(now: u64, deadline: u64) -> (Cell, crate::clock::ManualClock) {
        let manual = crate::clock::ManualClock::new(at(now));
        (
            Cell::new(
                crate::queue::spec(1),
                Clock::Manual(manual.clone()),
                at(deadline),
            ),
            manual,
        )
    }

    #[test]
    fn it_is_valid_until_the_deadline_by_the_clock_alone() {
        let (cell, clock) = cell(10, 100);
        assert_eq!(cell.remaining(), Duration::from_millis(90));
        clock.set(at(99));
        assert_eq!(cell.valid_until(), Some(at(100)));
        clock.set(at(100));
        assert_eq!(cell.valid_until(), None);
        assert_eq!(cell.loss(), Some(Loss::Expired));
    }

    #[test]
    fn what_was_seen_as_over_is_not_revived() {
        let (cell, clock) = cell(10, 100);
        clock.set(at(100));
        assert_eq!(cell.valid_until(), None);
        assert!(!cell.extend(at(200)));
        clock.set(at(50));
        assert_eq!(cell.valid_until(), None);
    }

    #[test]
    fn an_extension_never_shortens() {
        let (cell, _clock) = cell(10, 100);
        assert!(cell.extend(at(60)));
        assert_eq!(cell.valid_until(), Some(at(100)));
        assert!(cell.extend(at(160)));
        assert_eq!(cell.valid_until(), Some(at(160)));
    }

    #[test]
    fn the_first_reason_stands() {
        let (cell, _clock) = cell(10, 100);
        cell.end(Loss::Deleted);
        cell.end(Loss::Released);
        assert_eq!(cell.loss(), Some(Loss::Deleted));
    }

    #[test]
    fn a_waiter_is_woken_once_and_leaves_nothing_behind() {
        struct Count(AtomicU64);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let (cell, _clock) = cell(10, 100);
        assert_eq!(cell.poll_loss(&waker), Poll::Pending);
        assert_eq!(cell.poll_loss(&waker), Poll::Pending);
        cell.end(Loss::Taken);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(cell.poll_loss(&waker), Poll::Ready(Loss::Taken));

        let (cell, _clock) = self::cell(10, 100);
        assert_eq!(cell.poll_loss(&waker), Poll::Pending);
        cell.forget(&waker);
        assert!(
            cell.lock()
                .as_ref()
                .is_some_and(|end| end.wakers.is_empty())
        );
    }
}
