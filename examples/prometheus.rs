//! A service that can be watched: locks at work, and what they count in text form over HTTP.
//!
//! ```text
//! scripts/cluster up
//! cargo run --features metrics --example prometheus -- 9464
//! curl http://127.0.0.1:9464/metrics
//! ```
//!
//! The nodes are those of `scripts/cluster up`, or those that `QUORUMLOCK_NODES` names; the other
//! settings are read from the environment, too. `scripts/demo --observe` runs it under Prometheus.
//!
//! Three lines make a service like this: the recorder is installed, [`quorumlock::metrics::describe`]
//! tells it what the names mean, and only then the client is made. The buckets are worth choosing:
//! without them the exporter makes summaries, which cannot be added up over instances.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use futures::future::join_all;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use quorumlock::{Client, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// Bounds of what is counted in seconds: a round trip in a data centre is in the first, the wait
/// for a busy lock in the last.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
const ROUNDS: &[f64] = &[0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0];
const BYTES: &[f64] = &[256.0, 1024.0, 4096.0, 16384.0, 65536.0];
const REQUESTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0];

/// How many tasks take turns on one lock.
const TAKERS: usize = 16;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "9464".to_owned());
    let collected = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_rounds".into()), ROUNDS)?
        .set_buckets_for_metric(Matcher::Suffix("_bytes".into()), BYTES)?
        .set_buckets_for_metric(Matcher::Suffix("_requests".into()), REQUESTS)?
        .install_recorder()?;
    quorumlock::metrics::describe();

    let client = Client::with_config(config()?)?;
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("http://{}/metrics", listener.local_addr()?);
    tokio::select! {
        _ = work(&client) => {}
        served = serve(listener, collected) => served?,
        interrupt = tokio::signal::ctrl_c() => interrupt?,
    }
    Ok(client.close().await?)
}

fn config() -> Result<Config, Box<dyn Error>> {
    if std::env::var_os("QUORUMLOCK_NODES").is_some() {
        return Ok(Config::from_env()?);
    }
    let node = |port| format!("redis://127.0.0.1:{port}");
    Ok(Config::new((7101..=7105).map(node)))
}

/// What a service does: one lock that is kept, one that tasks take turns on, and one that is tried
/// now and then.
async fn work(client: &Client) {
    let takers = (0..TAKERS).map(|_| turns(client));
    tokio::join!(keep(client), tries(client), join_all(takers));
}

async fn keep(client: &Client) -> Infallible {
    let lock = client.lock("leader");
    loop {
        let kept = lock.run(async |held| {
            held.lost().await;
            Ok::<_, Infallible>(())
        });
        if let Err(error) = kept.await {
            eprintln!("leader: {error}");
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn turns(client: &Client) -> Infallible {
    loop {
        match client.lock("report").acquire().await {
            Ok(guard) => {
                sleep(Duration::from_millis(20)).await;
                drop(guard);
            }
            Err(error) => eprintln!("report: {error}"),
        }
        sleep(Duration::from_secs(2)).await;
    }
}

async fn tries(client: &Client) -> Infallible {
    loop {
        drop(client.lock("cleanup").try_acquire().await);
        sleep(Duration::from_millis(250)).await;
    }
}

/// Answers each scrape, one after the other.
async fn serve(listener: TcpListener, collected: PrometheusHandle) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A scraper that hangs up, or says nothing, has no part in the next one's answer.
        let answered = timeout(Duration::from_secs(2), answer(stream, &collected)).await;
        if let Ok(Err(error)) = answered {
            eprintln!("a scrape failed: {error}");
        }
    }
}

async fn answer(mut stream: TcpStream, collected: &PrometheusHandle) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let mut length = 0;
    while !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut request[length..]).await? {
            0 => return Ok(()),
            read => length += read,
        }
    }
    let (status, body) = match request.starts_with(b"GET /metrics ") {
        true => ("200 OK", collected.render()),
        false => ("404 Not Found", "see /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await
}
