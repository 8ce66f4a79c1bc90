//! Waiting for a future on a thread that has nothing else to do.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::task::unconstrained;

use crate::clock::{Clock, Instant};

/// Blocks the calling thread until `future` has its output: for what has no call of its own here.
///
/// It is meant for the futures of this crate, which need no runtime. One that needs the timers or
/// sockets of a runtime does not get them from this.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use quorumlock::blocking::{Client, wait};
///
/// let report = wait(Client::in_memory(5).as_async().check());
/// assert!(report.is_good(), "{report}");
/// # }
/// ```
pub fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(unconstrained(future));
    let (sleeper, waker) = Sleeper::new();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        sleeper.sleep();
    }
}

/// As [`wait`], for `limit` at most. By the boot clock, and so no longer after a suspend; a thread
/// that sleeps may notice that late.
pub(super) fn wait_for<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    let begin = Clock::Boot.now();
    let mut future = pin!(unconstrained(future));
    let (sleeper, waker) = Sleeper::new();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let left = left(begin, limit);
        if left.is_zero() {
            return None;
        }
        sleeper.sleep_for(left);
    }
}

fn left(begin: Instant, limit: Duration) -> Duration {
    limit.saturating_sub(Clock::Boot.now().since(begin))
}

/// A thread that waits.
///
/// The flag is what counts, since a future may use up the thread's one permit to go on.
///
/// Futures are polled `unconstrained`: inside a task of tokio its budget for one poll would be used
/// up by many calls in a row, and never be filled again, since the task does not come to an await.
struct Sleeper {
    thread: Thread,
    woken: AtomicBool,
}

impl Sleeper {
    fn new() -> (Arc<Self>, Waker) {
        let sleeper = Arc::new(Sleeper {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&sleeper));
        (sleeper, waker)
    }

    fn sleep(&self) {
        while !self.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }

    /// May end for nothing.
    fn sleep_for(&self, limit: Duration) {
        if !self.woken.swap(false, Ordering::Acquire) {
            thread::park_timeout(limit);
            self.woken.store(false, Ordering::Relaxed);
        }
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_of_another_thread_ends_the_wait() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let teller = thread::spawn(move || tell.send(7));
        assert_eq!(wait(told), Ok(7));
        assert_eq!(teller.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_future_that_wakes_itself_and_uses_the_permit_up_is_polled_again() {
        let mut polls = 0;
        let future = std::future::poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            thread::park();
            if polls < 3 {
                Poll::Pending
            } else {
                Poll::Ready(polls)
            }
        });
        assert_eq!(wait(future), 3);
    }

    #[test]
    fn a_limit_ends_the_wait_and_a_limit_without_end_does_not() {
        let never = std::future::pending::<()>;
        assert_eq!(wait_for(never(), Duration::ZERO), None);
        assert_eq!(wait_for(never(), Duration::from_millis(5)), None);
        let (tell, told) = tokio::sync::oneshot::channel();
        let teller = thread::spawn(move || tell.send(7));
        assert_eq!(wait_for(told, Duration::MAX), Some(Ok(7)));
        assert_eq!(teller.join().unwrap(), Ok(()));
    }
}
