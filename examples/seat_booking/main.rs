//! Many buyers, few seats, and payments that come late or never. No seat is sold twice.
//!
//! ```text
//! scripts/cluster up
//! QUORUMLOCK_NODES=$(scripts/cluster urls) QUORUMLOCK_POSTGRES='host=/run/postgresql user=me' \
//!     cargo run --features postgres --example seat_booking
//!
//! shop.rs     how a service uses the library: read this one
//! hall.rs     the database: what is done in one transaction, and what refuses
//! scenes.rs   one scene for each thing that can go wrong
//! crowd.rs    all of them at once, by chance
//! tally.rs    what each layer caught, and what buyers were told
//! ```
//!
//! Three layers stand between a seat and its second buyer, and each catches what the one before
//! cannot:
//!
//! - the **lock** keeps a seat off the market while somebody pays for it, for a limited time. It
//!   saves people from paying for what they will not get; it cannot stop a payment that comes after
//!   its time;
//! - the **token** refuses such a payment once somebody else has begun to buy. It cannot stop one
//!   who shows no token;
//! - the **unique constraint** refuses everybody who comes second, whatever they forgot.
//!
//! It works in a schema of its own, which it drops at the end. It exits with 0 only if no seat was
//! sold twice, every abandoned seat was sold in the end, and every layer has caught something.

use std::env;
use std::error::Error;
use std::process::ExitCode;

use quorumlock::{Client, Config};

mod crowd;
mod hall;
mod scenes;
mod shop;
mod tally;

use hall::Theatre;
use tally::Tally;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nNot as it should be: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let database = env::var("QUORUMLOCK_POSTGRES").map_err(
        |_| "set QUORUMLOCK_POSTGRES to a PostgreSQL database: a URL, or key=value pairs",
    )?;
    // The nodes are in QUORUMLOCK_NODES. Reservations are for a limited time: no extensions.
    let config = Config::from_env()?.ttl(shop::LEASE).auto_extend(false);
    let config = config.node_timeout(shop::PATIENCE);
    let client = Client::with_config(config)?;
    let theatre = Theatre::build(&database).await?;
    let outcome = play(&theatre, &client).await;
    theatre.pull_down().await?;
    client.close().await?;
    outcome
}

async fn play(theatre: &Theatre, client: &Client) -> Result<(), Failure> {
    let mut scenes = Tally::default();
    scenes::play(theatre, client, &mut scenes).await?;
    let crowd = crowd::come(theatre, client).await?;
    tally::print(&scenes, &crowd);
    scenes.add(&crowd);
    let sold = theatre.hall().await?.sold().await?;
    tally::verify(&scenes, &sold, theatre.seats())
}
