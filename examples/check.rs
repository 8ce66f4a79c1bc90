//! Asks the nodes how they are, and says whether the settings fit what was measured.
//!
//! ```sh
//! cargo run --example check redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//! QUORUMLOCK_NODES=redis://127.0.0.1:7101 QUORUMLOCK_TTL=5s cargo run --example check
//! cargo run --features serde --example check locks.toml
//! ```
//!
//! Exits with 0 where nothing has to be done, with 1 where something has, with 2 where the
//! settings cannot be used.

use std::error::Error;
use std::process::ExitCode;

use quorumlock::{Client, Config};

#[tokio::main]
async fn main() -> ExitCode {
    let client = settings().and_then(|config| Ok(Client::with_config(config)?));
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let report = client.check().await;
    print!("{report}");
    ExitCode::from(u8::from(!report.is_good()))
}

/// From a file or from URLs on the command line; variables go before both.
fn settings() -> Result<Config, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let config = match arguments.as_slice() {
        [file] if file.ends_with(".toml") => from_file(file)?,
        urls => Config::new(urls),
    };
    Ok(config.with_env()?)
}

#[cfg(feature = "serde")]
fn from_file(file: &str) -> Result<Config, Box<dyn Error>> {
    Ok(Config::from_file(file)?)
}

#[cfg(not(feature = "serde"))]
fn from_file(_: &str) -> Result<Config, Box<dyn Error>> {
    Err("reading a file needs --features serde".into())
}
