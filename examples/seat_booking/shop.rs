//! A shop that sells seats, as a service would write it: this file is the example.

use std::future::Future;
use std::time::Duration;

use futures::future::{Either, select};
use quorumlock::{AcquireError, Client, FencingToken, Guard};

use crate::Failure;
use crate::hall::{self, Booking, Hall, Seat};

/// How long a seat is kept, as a rule. (A real shop would give its buyers minutes.)
pub const LEASE: Duration = Duration::from_millis(600);

/// How long the nodes may take to answer, on a machine that does much else.
pub const PATIENCE: Duration = Duration::from_millis(300);

/// One web server's way to the locks and to the database.
pub struct Shop {
    pub locks: Client,
    pub hall: Hall,
    /// How long it keeps a seat for a buyer who does not pay.
    pub lease: Duration,
}

/// What became of a buyer's wish.
pub enum Outcome {
    /// The seat is theirs.
    Booked,
    /// Somebody else is about to buy it. Nobody has paid.
    Busy,
    /// It is sold. Nobody has paid.
    Sold,
    /// The locks do not answer. Nobody has paid, and nobody can begin now.
    Later,
    /// They have paid, and do not get it: the money goes back.
    Refund(Booking),
    /// The time is up. Their payment may still come: see [`Shop::paid`].
    TimeUp(FencingToken),
}

/// A seat that is kept for one buyer.
pub enum Reserved {
    Yes(Guard),
    Busy,
    Sold,
    Later(AcquireError),
}

impl Shop {
    /// Keeps the seat for one buyer, until the lease ends by itself.
    pub async fn reserve(&mut self, seat: i32) -> Result<Reserved, Failure> {
        let lock = self.locks.lock(hall::name(seat)).ttl(self.lease);
        let guard = match lock.try_acquire().await {
            Ok(guard) => guard,
            Err(AcquireError::Contended(_)) => return Ok(Reserved::Busy),
            Err(error) if error.is_retryable() => return Ok(Reserved::Later(error)),
            Err(error) => return Err(error.into()),
        };
        self.begin(seat, guard).await
    }

    /// The same, for a buyer who waits until the seat is free.
    pub async fn wait_for(&mut self, seat: i32) -> Result<Reserved, Failure> {
        let lock = self.locks.lock(hall::name(seat)).ttl(self.lease);
        let guard = lock.acquire().await?;
        self.begin(seat, guard).await
    }

    /// Under the lock, but before anybody pays: the database hears of the token.
    async fn begin(&mut self, seat: i32, guard: Guard) -> Result<Reserved, Failure> {
        match self.hall.begin(seat, guard.fencing_token()).await? {
            Seat::Free => Ok(Reserved::Yes(guard)),
            Seat::Sold => {
                guard.release().await?;
                Ok(Reserved::Sold)
            }
            // We were so slow that the lease is over, and somebody else's turn has begun.
            Seat::Overtaken => Ok(Reserved::Busy),
        }
    }

    /// The whole purchase: keep the seat, wait for the money while it is kept, book.
    pub async fn buy(
        &mut self,
        seat: i32,
        buyer: &str,
        payment: impl Future<Output = ()> + Unpin,
    ) -> Result<Outcome, Failure> {
        let guard = match self.reserve(seat).await? {
            Reserved::Yes(guard) => guard,
            Reserved::Busy => return Ok(Outcome::Busy),
            Reserved::Sold => return Ok(Outcome::Sold),
            Reserved::Later(_) => return Ok(Outcome::Later),
        };
        let token = guard.fencing_token();
        match select(payment, guard.lost()).await {
            Either::Left(((), _)) => {
                let outcome = self.paid(seat, buyer, token).await;
                // Booked or not, the seat is of no interest any more. A release that no quorum
                // confirms does no harm: the lease ends by itself.
                let _ = guard.release().await;
                outcome
            }
            Either::Right(_) => Ok(Outcome::TimeUp(token)),
        }
    }

    /// The bank tells us that somebody has paid; it knows the seat and the token, which went out
    /// with the bill. The lock may be long gone. That does not matter: the token decides.
    pub async fn paid(
        &mut self,
        seat: i32,
        buyer: &str,
        token: FencingToken,
    ) -> Result<Outcome, Failure> {
        match self.hall.book(seat, buyer, token).await? {
            Booking::Done => Ok(Outcome::Booked),
            refused => Ok(Outcome::Refund(refused)),
        }
    }
}
