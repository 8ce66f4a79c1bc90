//! The view of a hold that the work gets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Lost;
use crate::error::Printable;
use crate::keeper::Cell;
use crate::quorum::FencingToken;

/// A look at a held lock, for the work that runs under it. Keeps nothing alive.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::{Client, Loss};
///
/// let guard = Client::in_memory(5).lock("job").acquire().await?;
/// let held = guard.held();
/// assert_eq!((held.resource(), held.fencing_token()), (&b"job"[..], guard.fencing_token()));
/// assert!(held.is_held() && held.remaining() > Duration::from_secs(9));
/// drop(guard);
/// assert_eq!(held.lost().await, Loss::Released);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone)]
pub struct Held {
    pub(super) cell: Arc<Cell>,
    pub(super) resource: Arc<[u8]>,
    pub(super) token: FencingToken,
}

impl Held {
    /// What is locked.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// As [`Guard::fencing_token`](super::Guard::fencing_token).
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// As [`Guard::is_held`](super::Guard::is_held).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.cell.valid_until().is_some()
    }

    /// As [`Guard::remaining`](super::Guard::remaining).
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.cell.remaining()
    }

    /// As [`Guard::lost`](super::Guard::lost).
    pub fn lost(&self) -> Lost {
        Lost::new(Arc::clone(&self.cell))
    }
}

#[cfg(feature = "test-util")]
impl Held {
    /// As [`Held::is_held`], without a trace.
    pub(crate) fn peek(&self) -> bool {
        self.cell.peek().is_some()
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("resource", &format_args!("{}", Printable(&self.resource)))
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
