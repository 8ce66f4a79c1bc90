//! The future that ends with the hold.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::error::Loss;
use crate::keeper::Cell;

/// The future of [`Guard::lost`](crate::Guard::lost).
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{Client, Loss};
///
/// let guard = Client::in_memory(5).lock("job").acquire().await?;
/// let (lost, again) = (guard.lost(), guard.lost());
/// drop(guard);
/// assert_eq!((lost.await, again.await), (Loss::Released, Loss::Released));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[must_use = "a future does nothing unless it is polled"]
pub struct Lost {
    cell: Arc<Cell>,
    waker: Option<Waker>,
}

impl Lost {
    pub(super) fn new(cell: Arc<Cell>) -> Self {
        Lost { cell, waker: None }
    }
}

impl Future for Lost {
    type Output = Loss;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Loss> {
        let waker = context.waker();
        if let Some(old) = self.waker.take_if(|old| !old.will_wake(waker)) {
            self.cell.forget(&old);
        }
        let poll = self.cell.poll_loss(waker);
        self.waker.get_or_insert_with(|| waker.clone());
        poll
    }
}

impl Clone for Lost {
    fn clone(&self) -> Self {
        Lost::new(Arc::clone(&self.cell))
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        if let Some(waker) = self.waker.take() {
            self.cell.forget(&waker);
        }
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost").finish_non_exhaustive()
    }
}
