//! The processes of F49, and what they write to: a value in Redis and, with the feature
//! `postgres`, rows in PostgreSQL, both of which check the token.

use std::time::Duration;

use quorumlock::redis::AsyncConnectionConfig;
use quorumlock::redis::aio::MultiplexedConnection;
use quorumlock::{FencingToken, Guard, fence};

use crate::helpers::*;
use crate::support::*;

/// What they all lock.
pub const NAME: &str = "ledger";
pub const TTL: Duration = Duration::from_millis(600);
/// max_ttl is 1 s in these settings: ⌈1 s × 1.01⌉ + 1 s.
pub const RESTART_DELAY: Duration = Duration::from_secs(3);

/// The resources that check tokens, as their tests see them.
pub struct Resources {
    ledger: String,
    #[cfg(feature = "postgres")]
    rows: rows::Rows,
}

impl Resources {
    pub fn start(ledger: &Server) -> Resources {
        Resources {
            ledger: ledger.port().to_string(),
            #[cfg(feature = "postgres")]
            rows: rows::Rows::start(),
        }
    }

    pub fn count(&self) -> usize {
        1 + usize::from(cfg!(feature = "postgres"))
    }

    /// What a writer is told.
    pub fn vars(&self, urls: &str) -> Vec<(&'static str, String)> {
        vec![
            ("WORKER_URLS", urls.to_owned()),
            ("WORKER_LEDGER", self.ledger.clone()),
            #[cfg(feature = "postgres")]
            ("WORKER_ROWS", self.rows.config()),
        ]
    }

    /// The tokens of the rows, in the order in which they were written.
    pub fn written(&self) -> Vec<u64> {
        #[cfg(feature = "postgres")]
        return self.rows.written();
        #[cfg(not(feature = "postgres"))]
        Vec::new()
    }
}

/// One writer's connections.
struct Writer {
    notes: Probe,
    value: MultiplexedConnection,
    #[cfg(feature = "postgres")]
    rows: quorumlock::tokio_postgres::Client,
}

impl Writer {
    async fn connect() -> Writer {
        let port: u16 = told("WORKER_LEDGER").parse().expect("a port");
        let url = format!("redis://127.0.0.1:{port}");
        let client = quorumlock::redis::Client::open(url).expect("a URL");
        // A machine that is busy may take longer than the half second that is the default.
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(MS * 20_000));
        let value = client.get_multiplexed_async_connection_with_config(&config);
        Writer {
            notes: Probe::connect_within(port, MS * 20_000).expect("a connection"),
            value: value.await.expect("a connection"),
            #[cfg(feature = "postgres")]
            rows: rows::connect(&told("WORKER_ROWS")).await,
        }
    }

    fn note(&mut self, list: &str, line: &str) {
        self.notes.command(&["RPUSH", list, line]);
    }

    /// Writes to all resources; what each one said.
    async fn write(&mut self, token: FencingToken) -> Vec<String> {
        let value = token.to_string();
        let redis = fence::redis::write(&mut self.value, "value", token, value).await;
        let stale = redis.as_ref().is_err_and(|error| error.stale().is_some());
        let value = answer("redis", redis, stale);
        #[cfg(feature = "postgres")]
        {
            let rows = rows::write(&mut self.rows, token).await;
            let stale = rows.as_ref().is_err_and(|error| error.stale().is_some());
            vec![value, answer("postgres", rows, stale)]
        }
        #[cfg(not(feature = "postgres"))]
        vec![value]
    }

    /// Stops this process here, with the lock in its hands and its mind made up to write.
    async fn stop_and_write(&mut self, token: FencingToken) {
        let me = format!("{} {token}", std::process::id());
        self.notes.set_raw("stopped", me, None);
        // SAFETY: a signal to ourselves touches no memory.
        unsafe { libc::raise(libc::SIGSTOP) };
        for said in self.write(token).await {
            self.note("stale", &said);
        }
    }

    /// What is done under the lock.
    async fn work(&mut self, guard: &Guard, extend: bool) {
        let token = guard.fencing_token();
        let text = token.to_string();
        if !guard.is_held() {
            return;
        }
        self.note("grants", &format!("{} {token}", std::process::id()));
        if !guard.is_held() {
            return self.note("late", &text);
        }
        if self.notes.command(&["DEL", "pause"]).int() == Some(1) {
            return self.stop_and_write(token).await;
        }
        if extend {
            // Too few nodes may answer; the token stays, whatever they say.
            let _ = guard.extend().await;
            assert_eq!(guard.fencing_token(), token);
        }
        let said = self.write(token).await;
        if said.iter().all(|said| said.ends_with(" accepted")) {
            self.note("written", &text);
        } else if guard.is_held() {
            self.note("unexpected", &format!("{token}: {said:?}"));
        }
    }
}

fn answer<E: std::fmt::Display>(who: &str, result: Result<(), E>, stale: bool) -> String {
    match result {
        Ok(()) => format!("{who} accepted"),
        Err(_) if stale => format!("{who} refused"),
        Err(error) => format!("{who} failed: {error}"),
    }
}

#[test]
#[ignore = "a process of the churn"]
fn writer() {
    let client = open(settings(told_urls(), TTL).wait(Duration::from_secs(60)));
    let lock = client.lock(NAME);
    let mut dice = Dice::new();
    block_on(async {
        let mut writer = Writer::connect().await;
        while writer.notes.get("over").is_none() {
            let guard = match lock.acquire().await {
                Ok(guard) => guard,
                Err(error) if error.is_retryable() => continue,
                Err(error) => panic!("{error}"),
            };
            writer.work(&guard, dice.below(10) == 0).await;
            if dice.below(4) == 0 {
                drop(guard);
            } else {
                // A node that dies meanwhile may leave it unconfirmed, and so may a loss.
                let _ = guard.release().await;
            }
            tokio::time::sleep(dice.span(20 * MS)).await;
        }
    });
}

#[cfg(feature = "postgres")]
mod rows {
    //! Rows in PostgreSQL, written with a check in the same transaction.

    use std::sync::Arc;

    use quorumlock::fence::postgres::{self, Error};
    use quorumlock::tokio_postgres::{self, Client, NoTls};

    use super::*;

    pub struct Rows(Arc<Postgres>);

    impl Rows {
        pub fn start() -> Rows {
            let rows = Rows(Postgres::shared());
            block_on(async {
                let client = connect(&rows.config()).await;
                let table = "CREATE TABLE row (at bigserial, token bigint NOT NULL)";
                client.batch_execute(postgres::CREATE_TABLE).await.unwrap();
                client.batch_execute(table).await.unwrap();
            });
            rows
        }

        pub fn config(&self) -> String {
            self.0.config("postgres")
        }

        pub fn written(&self) -> Vec<u64> {
            block_on(async {
                let client = connect(&self.config()).await;
                let query = "SELECT token FROM row ORDER BY at";
                let rows = client.query(query, &[]).await.unwrap();
                let token = |row: &tokio_postgres::Row| row.get::<_, i64>(0) as u64;
                rows.iter().map(token).collect()
            })
        }
    }

    pub async fn connect(config: &str) -> Client {
        let (client, connection) = tokio_postgres::connect(config, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    pub async fn write(client: &mut Client, token: FencingToken) -> Result<(), Error> {
        let transaction = client.transaction().await?;
        postgres::check(&transaction, NAME, token).await?;
        let number = i64::try_from(u64::from(token)).expect("tokens end at 2^53");
        let insert = "INSERT INTO row (token) VALUES ($1)";
        transaction.execute(insert, &[&number]).await?;
        transaction.commit().await?;
        Ok(())
    }
}
