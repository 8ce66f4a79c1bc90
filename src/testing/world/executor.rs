//! Tasks and timers of a world, in an order that repeats.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::ProcessId;
use crate::clock::Instant;

type TaskId = u64;
type Body = Pin<Box<dyn Future<Output = ()>>>;

/// Polls what has been woken, first woken first.
#[derive(Clone, Default)]
pub(super) struct Executor(Rc<RefCell<Inner>>);

#[derive(Default)]
struct Inner {
    next: u64,
    tasks: BTreeMap<TaskId, (Option<ProcessId>, Option<Body>)>,
    ready: Arc<Ready>,
    sleepers: BTreeMap<(Instant, u64), Waker>,
}

/// The tasks that were woken. Wakers must be `Send`, wherever they are used.
#[derive(Default)]
struct Ready(Mutex<VecDeque<TaskId>>);

impl Ready {
    fn push(&self, id: TaskId) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !queue.contains(&id) {
            queue.push_back(id);
        }
    }

    fn pop(&self, wanted: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = queue.iter().position(|&id| wanted(id))?;
        queue.remove(place)
    }
}

struct TaskWaker {
    id: TaskId,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.id);
    }
}

impl Executor {
    pub(super) fn spawn<F>(&self, process: Option<ProcessId>, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
    {
        let output = Rc::new(RefCell::new(None));
        let place = Rc::clone(&output);
        let body: Body = Box::pin(async move {
            let outcome = future.await;
            *place.borrow_mut() = Some(outcome);
        });
        let mut inner = self.0.borrow_mut();
        inner.next += 1;
        let id = inner.next;
        inner.tasks.insert(id, (process, Some(body)));
        inner.ready.push(id);
        Task {
            id,
            output,
            executor: self.clone(),
        }
    }

    /// Polls the first task that was woken and may run. `false` if there is none.
    pub(super) fn poll_one(&self, frozen: impl Fn(ProcessId) -> bool) -> bool {
        let (id, body, ready) = {
            let mut inner = self.0.borrow_mut();
            let ready = Arc::clone(&inner.ready);
            let may_run = |id| match inner.tasks.get(&id) {
                Some((Some(process), _)) => !frozen(*process),
                _ => true,
            };
            let Some(id) = ready.pop(may_run) else {
                return false;
            };
            let body = inner.tasks.get_mut(&id).and_then(|(_, body)| body.take());
            (id, body, ready)
        };
        // One that was dropped may still be woken.
        let Some(mut body) = body else { return true };
        let waker = Waker::from(Arc::new(TaskWaker { id, ready }));
        let poll = body.as_mut().poll(&mut Context::from_waker(&waker));
        let mut inner = self.0.borrow_mut();
        match poll {
            Poll::Pending => {
                if let Some((_, place)) = inner.tasks.get_mut(&id) {
                    *place = Some(body);
                }
            }
            Poll::Ready(()) => {
                inner.tasks.remove(&id);
            }
        }
        true
    }

    pub(super) fn sleep(&self, until: Instant) -> Sleep {
        Sleep {
            until,
            place: None,
            executor: self.clone(),
            over: false,
        }
    }

    pub(super) fn tasks(&self) -> usize {
        self.0.borrow().tasks.len()
    }

    pub(super) fn next_sleeper(&self) -> Option<Instant> {
        let inner = self.0.borrow();
        inner.sleepers.keys().next().map(|(until, _)| *until)
    }

    pub(super) fn wake_sleepers(&self, now: Instant) {
        loop {
            let mut inner = self.0.borrow_mut();
            match inner.sleepers.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let waker = first.remove();
                    drop(inner);
                    waker.wake();
                }
                _ => return,
            }
        }
    }

    pub(super) fn clear(&self) {
        let tasks = std::mem::take(&mut self.0.borrow_mut().tasks);
        drop(tasks);
    }

    /// Drops the tasks that belong to no process.
    pub(super) fn clear_outside(&self) {
        let mut inner = self.0.borrow_mut();
        let tasks = std::mem::take(&mut inner.tasks);
        let (inside, outside) = tasks
            .into_iter()
            .partition(|(_, (process, _))| process.is_some());
        inner.tasks = inside;
        drop(inner);
        drop::<BTreeMap<TaskId, (Option<ProcessId>, Option<Body>)>>(outside);
    }

    fn forget(&self, id: TaskId) {
        let task = self.0.borrow_mut().tasks.remove(&id);
        // Its destructors may come back here.
        drop(task);
    }
}

/// A task of a world. Dropping the handle leaves the task alone.
pub struct Task<T> {
    id: TaskId,
    output: Rc<RefCell<Option<T>>>,
    executor: Executor,
}

impl<T> Task<T> {
    /// What it returned, once.
    #[must_use]
    pub fn take(&self) -> Option<T> {
        self.output.borrow_mut().take()
    }

    /// Whether it has ended, and its output was not taken yet.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.output.borrow().is_some()
    }

    /// Drops its future, wherever that stands, and its output if nobody took it.
    pub fn cancel(self) {
        self.executor.forget(self.id);
        let output = self.take();
        drop(output);
    }
}

/// Ends at a moment of the world's clock.
pub struct Sleep {
    until: Instant,
    place: Option<(Instant, u64)>,
    executor: Executor,
    over: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let executor = self.executor.clone();
        let mut inner = executor.0.borrow_mut();
        if let Some(place) = self.place {
            if !inner.sleepers.contains_key(&place) {
                self.over = true;
                return Poll::Ready(());
            }
            inner.sleepers.insert(place, context.waker().clone());
            return Poll::Pending;
        }
        inner.next += 1;
        let place = (self.until, inner.next);
        inner.sleepers.insert(place, context.waker().clone());
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place.filter(|_| !self.over) {
            self.executor.0.borrow_mut().sleepers.remove(&place);
        }
    }
}
