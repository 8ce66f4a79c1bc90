//! A nightly job in a service that runs on every host, done by one of them.
//!
//! ```text
//! scripts/cluster up
//! CRON='*/10 * * * * *' cargo run --manifest-path examples/services/Cargo.toml --bin cron -- web-1
//! CRON='*/10 * * * * *' cargo run --manifest-path examples/services/Cargo.toml --bin cron -- web-2
//! ```
//!
//! The scheduler rings on every host at about the same time. Whoever gets the lock does the job, and
//! leaves the lock behind it: a host whose clock is late finds it held and does nothing, although
//! the job may be over by then. So one run a period is what comes of it as long as
//!
//! - clocks are apart by less than [`AT_LEAST`] without [`WAIT`], and the period is longer than both;
//! - the job's host lives. If it dies, the lock runs out after its TTL, and nobody does the job again
//!   unless another host still waits for it. Where that matters, write down what was done.
//!
//! For a job that is a program of its own see `quorumlock run --at-least`.

use std::env;
use std::error::Error;
use std::time::Duration;

use futures::future::{Either, select};
use quorumlock::{AcquireError, Client, Guard, Held};
use tokio_cron_scheduler::{Job, JobScheduler};

/// For how long nobody else gets the lock, however short the job is: up to `max_ttl`. Tests, which
/// have no time, say less in a variable of this name, in seconds.
const AT_LEAST: Duration = Duration::from_secs(30);

/// How long a host waits for the lock. Not for its turn: hosts that ask at one moment may split the
/// nodes between them, and then agree in a few round trips.
const WAIT: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = env::args().nth(1).unwrap_or_else(|| "web-1".to_owned());
    let when = env::var("CRON").unwrap_or_else(|_| "0 0 2 * * *".to_owned());
    let at_least = match env::var("AT_LEAST") {
        Ok(seconds) => Duration::from_secs(seconds.parse()?),
        Err(_) => AT_LEAST,
    };
    let client = services::client()?;

    let mut scheduler = JobScheduler::new().await?;
    let of_job = (client.clone(), host.clone());
    let job = Job::new_async(when.as_str(), move |_id, _scheduler| {
        let (client, host) = of_job.clone();
        Box::pin(async move { once(&client, &host, at_least).await })
    })?;
    scheduler.add(job).await?;
    scheduler.start().await?;
    println!("{host} waits for {when}");

    tokio::signal::ctrl_c().await?;
    scheduler.shutdown().await?;
    // A job that is still at work hears of it as of any loss.
    Ok(client.close().await?)
}

async fn once(client: &Client, host: &str, at_least: Duration) {
    match client.lock("nightly").wait(WAIT).acquire().await {
        Ok(guard) => work(client, guard, host, at_least).await,
        Err(AcquireError::Contended(_)) => println!("{host} skips: done elsewhere"),
        // Nobody may have done it: this is one for the alerts.
        Err(error) => println!("{host} could not ask: {error}"),
    }
}

async fn work(client: &Client, guard: Guard, host: &str, at_least: Duration) {
    let held = guard.held();
    let job = std::pin::pin!(nightly(&held, host));
    match select(guard.lost(), job).await {
        Either::Left((loss, _job)) => println!("{host} was stopped: {loss}"),
        // Instead of a release: the keys run out by themselves.
        Either::Right(((), _lost)) => match client.leave(guard, at_least, "done").await {
            Ok(_nodes) => println!("{host} is done"),
            Err(error) => println!("{host} is done, but others may do it again: {error}"),
        },
    }
}

/// The job. It is dropped at an `await` when the lock is lost; what it writes carries the token.
async fn nightly(held: &Held, host: &str) {
    println!("{host} works, token {}", held.fencing_token());
    tokio::time::sleep(Duration::from_millis(50)).await;
}
