//! The guard: proof of holding, as long as it says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::config::Settings;
use crate::coordinator::Secret;
use crate::engine::{Claim, Command};
use crate::error::{Loss, Printable};
use crate::quorum::FencingToken;
use crate::ticket::LeaseTicket;

mod extend;
mod held;
mod lost;
mod release;

pub use held::Held;
pub use lost::Lost;

/// A held lock.
///
/// It extends itself unless `auto_extend` is off. Dropping it releases the lock, without blocking
/// and without a runtime; [`Guard::release`] does the same and says how it went. A guard that is
/// leaked (`std::mem::forget`) goes on extending itself until `max_hold`, or until the process
/// ends.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::Client;
///
/// let guard = Client::in_memory(5).lock("ledger").acquire().await?;
/// assert_eq!((guard.resource(), guard.is_held(), guard.loss()), (&b"ledger"[..], true, None));
/// guard.extend().await?;
/// guard.extend_to(Duration::from_secs(40)).await?;
/// assert!(guard.remaining() > Duration::from_secs(38));
/// let held = guard.held();
/// assert!(guard.release().await?.in_time());
/// assert!(!held.is_held());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    claim: Claim,
    settings: Arc<Settings>,
}

impl Guard {
    pub(crate) fn new(settings: Arc<Settings>, claim: Claim) -> Self {
        Guard { claim, settings }
    }

    /// What is locked.
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.claim.spec().resource
    }

    /// The number that tells this hold from all others of the resource: larger than that of every
    /// holder before. Give it to the resource with each write, and let the resource refuse a
    /// smaller one than it has seen: that stops a holder that stood still past its validity, which
    /// no lock alone can do.
    ///
    /// It stays the same for as long as the guard holds, through extensions and through
    /// [`Guard::detach`]. Does no I/O. Under `fencing = false` it is [`FencingToken::NONE`], which
    /// is smaller than every token ever granted.
    ///
    /// # Guarantee
    /// Of two guards of one resource, the one that took over has the larger token, whatever
    /// clocks, pauses and messages do, as long as the nodes keep their data. After a loss of data
    /// it holds with the restart guard on, and while a node's clock does not come back behind the
    /// others' by `max_ttl`.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let lock = Client::in_memory(5).lock("ledger");
    /// let guard = lock.acquire().await?;
    /// let first = guard.fencing_token();
    /// guard.extend().await.unwrap();
    /// assert_eq!(guard.fencing_token(), first);
    /// guard.release().await?;
    /// assert!(lock.acquire().await?.fencing_token() > first);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.claim.token
    }

    /// Whether the lock is still ours, by the boot-time clock. Does no I/O, and needs no other
    /// task to have run: after a pause of any length the first call tells the truth.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.claim.cell.valid_until().is_some()
    }

    /// For how long yet, unless it is extended: zero once it is lost. Does no I/O.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.claim.cell.remaining()
    }

    /// A future that ends when the lock is lost or released, and says why. It ends no later than
    /// the validity, whether or not any node answers.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::{Client, Loss};
    ///
    /// let guard = Client::in_memory(5).lock("job").acquire().await.unwrap();
    /// let lost = guard.lost();
    /// drop(guard);
    /// assert_eq!(lost.await, Loss::Released);
    /// # });
    /// # }
    /// ```
    pub fn lost(&self) -> Lost {
        Lost::new(Arc::clone(&self.claim.cell))
    }

    /// Why the lock is lost, if it is.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.claim.cell.loss()
    }

    /// A view of this hold that can be cloned and given to the work. It holds nothing.
    #[must_use]
    pub fn held(&self) -> Held {
        Held {
            cell: Arc::clone(&self.claim.cell),
            resource: Arc::clone(&self.claim.spec().resource),
            token: self.claim.token,
        }
    }

    /// Lets go of the lock without releasing it: it stays held for [`Guard::remaining`], and
    /// whoever has the ticket can go on with [`Client::attach`](crate::Client::attach). To leave
    /// more time, call [`Guard::extend_to`] first.
    ///
    /// # Errors
    /// The reason, where the lock is lost already.
    ///
    /// # Cancel safety
    /// Dropping the future before it has given the ticket releases the lock, or lets it run out
    /// with its TTL.
    ///
    /// # Round trips
    /// None.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// let lock = quorumlock::Client::in_memory(5).lock("seat/12a");
    /// let ticket = lock.acquire().await?.detach().await.unwrap();
    /// assert_eq!(ticket.resource(), b"seat/12a");
    /// assert!(lock.try_acquire().await.is_err());
    /// # Ok::<(), quorumlock::AcquireError>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn detach(self) -> Result<LeaseTicket, Loss> {
        if let Some(loss) = self.loss() {
            return Err(loss);
        }
        let cell = Arc::clone(&self.claim.cell);
        let spec = Arc::clone(self.claim.spec());
        let (reply, secret) = oneshot::channel();
        self.claim.detach(reply);
        match secret.await {
            Ok(secret) => Ok(LeaseTicket {
                resource: spec.resource.to_vec(),
                secret,
                ttl: spec.terms.timing.ttl(),
            }),
            Err(_) => Err(cell.loss().unwrap_or(Loss::Closed)),
        }
    }

    /// What proves the lease, for whatever else is bound to it.
    ///
    /// # Errors
    /// The reason, where the lock is lost already.
    pub(crate) async fn secret(&self) -> Result<Secret, Loss> {
        let (reply, secret) = oneshot::channel();
        let hold = self.claim.hold;
        self.claim.send(Command::Secret { hold, reply });
        let answer = secret.await;
        answer.map_err(|_| self.loss().unwrap_or(Loss::Closed))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("resource", &format_args!("{}", Printable(self.resource())))
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
