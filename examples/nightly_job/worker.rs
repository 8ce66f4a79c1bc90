//! One worker, as a service would write it: this file is the example. Whatever breaks things, and
//! whatever watches, is in the files beside it.

use std::convert::Infallible;
use std::error::Error;
use std::time::{Duration, Instant};

use quorumlock::{AcquireError, Client, Config, Held, RunError};
use tokio::time::sleep;

use crate::desk::Desk;

/// How long the lease of a worker that dies keeps the others out.
pub const TTL: Duration = Duration::from_secs(2);

/// The longest TTL that anybody uses on these nodes. A node that restarts may have forgotten a
/// lease, and has no vote before all that it may have forgotten has run out: here for 5 s.
pub const MAX_TTL: Duration = Duration::from_secs(3);

/// What is taken off the lease for clocks that disagree. Far more than clocks need: it is also the
/// time that a worker has on an overloaded machine to wake up and stop, before its lease can be
/// somebody else's.
pub const MARGIN: Duration = Duration::from_millis(150);

/// How long a worker waits for the job before it looks up and says how things are.
pub const WAIT: Duration = Duration::from_secs(1);

/// From one report to the next.
const NIGHT: Duration = Duration::from_secs(1);

/// Does the nightly report, night after night, whenever no other worker does it.
pub async fn serve(desk: &Desk) -> Result<(), Box<dyn Error>> {
    // The nodes are in QUORUMLOCK_NODES.
    let config = Config::from_env()?
        .ttl(TTL)
        .max_ttl(MAX_TTL)
        .drift_margin(MARGIN)
        .wait(WAIT);
    let report = Client::with_config(config)?.lock("nightly-report");
    loop {
        let asked = Instant::now();
        match report.run(async |held| write_pages(held, desk).await).await {
            Ok(()) => sleep(NIGHT).await,
            // Somebody is at it. Wait again: they may die before it is done.
            Err(RunError::Acquire(AcquireError::Contended(_))) => {}
            // Too few nodes answer. Nobody can begin now; the error says which node has what.
            Err(RunError::Acquire(AcquireError::Unavailable(attempt))) => {
                desk.unavailable(asked.elapsed(), &attempt);
            }
            // The job was stopped at its last `await`, before anybody else could begin it.
            Err(RunError::Lost { loss, .. }) => desk.lost(loss),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The job itself. It needs to know nothing of the lock; a job that does what cannot be undone
/// would ask `held.is_held()` first.
async fn write_pages(held: Held, desk: &Desk) -> Result<(), Infallible> {
    desk.begin(held.remaining());
    while !desk.is_complete() {
        sleep(Duration::from_millis(100)).await;
        desk.page(held.remaining());
    }
    desk.done();
    Ok(())
}
