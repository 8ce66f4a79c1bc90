//! An axum service in which a report is written by one request at a time, whatever host gets it.
//!
//! ```text
//! scripts/cluster up
//! cargo run --manifest-path examples/services/Cargo.toml --bin axum
//! curl -i -X POST 'http://127.0.0.1:8080/reports/march?ms=5000'    # twice, in two terminals
//! ```
//!
//! | answer | when |
//! |---|---|
//! | 200 | written, under the lock |
//! | 409 | somebody else writes it, and was not ready within the deadline |
//! | 503 | too few nodes answer, or the lock was lost: nobody knows who may write |
//! | 500 | this service is set up wrong, or the nodes refuse to serve it |
//!
//! A client that goes away takes its request along: axum drops the handler's future, and with it
//! the work and the lock.

use std::env;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use quorumlock::{AcquireError, Client, Held, RunError};
use serde::Deserialize;
use tokio::net::TcpListener;

/// How long a request waits for the lock. Below what its client waits for an answer.
const DEADLINE: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = services::client()?;
    let routes = Router::new()
        .route("/reports/{name}", post(write))
        .with_state(client.clone());
    let address = env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, routes)
        .with_graceful_shutdown(interrupted())
        .await?;
    // The requests are done; the releases that they have left behind are waited for here.
    Ok(client.close().await?)
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// How long the report takes to write: for trying it out.
#[derive(Deserialize)]
struct Effort {
    #[serde(default)]
    ms: u64,
}

async fn write(
    State(client): State<Client>,
    Path(name): Path<String>,
    Query(effort): Query<Effort>,
) -> Result<String, Refusal> {
    let lock = client.lock(format!("report/{name}")).wait(DEADLINE);
    let written = lock.run(async |held| report(&held, &name, effort).await);
    Ok(written.await?)
}

/// The work. It stops at an `await` when the lock is lost, and what it stores carries the token, so
/// that a store which compares tokens refuses what comes too late (`quorumlock::fence`).
async fn report(held: &Held, name: &str, effort: Effort) -> Result<String, StoreError> {
    tokio::time::sleep(Duration::from_millis(effort.ms)).await;
    match held.is_held() {
        true => Ok(format!("{name} written, token {}\n", held.fencing_token())),
        false => Err(StoreError),
    }
}

/// The store has not taken the report.
#[derive(Debug)]
struct StoreError;

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not stored")
    }
}

impl Error for StoreError {}

/// Why there is no report, as a status that tells the caller what to do.
struct Refusal(RunError<String, StoreError>);

impl From<RunError<String, StoreError>> for Refusal {
    fn from(error: RunError<String, StoreError>) -> Self {
        Refusal(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self.0 {
            // The nodes are well, and say that somebody is at it.
            RunError::Acquire(error @ AcquireError::Contended(_)) => (
                StatusCode::CONFLICT,
                [(RETRY_AFTER, "1")],
                format!("{error}\n"),
            )
                .into_response(),
            // Nobody can say whether somebody is at it: the cause is with the nodes or the network.
            RunError::Acquire(error) if error.is_retryable() => unavailable(&error.to_string()),
            RunError::Acquire(error @ AcquireError::Closed) => unavailable(&error.to_string()),
            RunError::Lost { loss, .. } => unavailable(&format!("the lock was lost: {loss}")),
            // Credentials, permissions, settings, the store: another try would end like this one.
            error => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        }
    }
}

fn unavailable(cause: &str) -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    (status, [(RETRY_AFTER, "5")], format!("{cause}\n")).into_response()
}
