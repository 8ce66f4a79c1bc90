//! Rows in PostgreSQL that refuse stale writers, on a real server.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::join_all;
use quorumlock::fence::Stale;
use quorumlock::fence::postgres::{self, Error, Update, UpdateError};
use quorumlock::tokio_postgres::error::SqlState;
use quorumlock::tokio_postgres::{Client, IsolationLevel, NoTls};
use quorumlock::{FencingToken, tokio_postgres};

use support::{Postgres, pick};

const TASKS: u64 = 20;

fn token(number: u64) -> FencingToken {
    FencingToken::from_u64(number)
}

/// A database of one test, on the server that the tests share.
#[derive(Clone)]
struct Database {
    server: Arc<Postgres>,
    name: String,
}

impl Database {
    /// With the table of tokens and a log of writes, numbered in the order in which they came.
    async fn new() -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = tokio::task::spawn_blocking(Postgres::shared).await.unwrap();
        let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let admin = connect(&server, "postgres").await;
        let create = format!("CREATE DATABASE {name}");
        admin.batch_execute(&create).await.unwrap();
        let database = Database { server, name };
        let client = database.connect().await;
        client.batch_execute(postgres::CREATE_TABLE).await.unwrap();
        let tables = "CREATE TABLE written (at bigserial, token bigint NOT NULL, resource text);
            CREATE TABLE seat (id int PRIMARY KEY, buyer text);
            INSERT INTO seat VALUES (1, NULL), (2, NULL)";
        client.batch_execute(tables).await.unwrap();
        let columns = postgres::add_columns("seat");
        client.batch_execute(&columns).await.unwrap();
        database
    }

    async fn connect(&self) -> Client {
        connect(&self.server, &self.name).await
    }
}

async fn connect(server: &Postgres, database: &str) -> Client {
    let config = server.config(database);
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

const WRITE: &str = "INSERT INTO written (token, resource) VALUES ($1, $2)";

/// Checks the token, writes it to the log, and commits or rolls back.
async fn write(client: &mut Client, resource: &str, number: u64, end: End) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    postgres::check(&transaction, resource, token(number)).await?;
    let value = i64::try_from(number).unwrap();
    transaction.execute(WRITE, &[&value, &resource]).await?;
    match end {
        End::Commit => transaction.commit().await?,
        End::Rollback => transaction.rollback().await?,
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum End {
    Commit,
    Rollback,
}

async fn written(client: &Client, resource: &str) -> Vec<i64> {
    let query = "SELECT token FROM written WHERE resource = $1 ORDER BY at";
    let rows = client.query(query, &[&resource]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn highest(client: &Client, resource: &str) -> Option<u64> {
    let highest = postgres::highest(client, resource).await.unwrap();
    highest.map(u64::from)
}

#[tokio::test]
async fn a_stale_transaction_is_refused_and_leaves_nothing() {
    let database = Database::new().await;
    let mut client = database.connect().await;
    assert_eq!(highest(&client, "seat").await, None);
    for number in [33, 34, 34] {
        write(&mut client, "seat", number, End::Commit)
            .await
            .unwrap();
    }
    let refused = write(&mut client, "seat", 33, End::Commit).await;
    let stale = Stale {
        offered: token(33),
        highest: token(34),
    };
    assert_eq!(refused.unwrap_err().stale(), Some(stale));
    write(&mut client, "other", 1, End::Commit).await.unwrap();
    assert_eq!(written(&client, "seat").await, [33, 34, 34]);
    assert_eq!(highest(&client, "seat").await, Some(34));
    assert_eq!(highest(&client, "other").await, Some(1));
}

#[tokio::test]
async fn a_transaction_that_rolls_back_leaves_the_highest_token_as_it_was() {
    let database = Database::new().await;
    let mut client = database.connect().await;
    write(&mut client, "seat", 5, End::Rollback).await.unwrap();
    assert_eq!(highest(&client, "seat").await, None);
    write(&mut client, "seat", 3, End::Commit).await.unwrap();
    write(&mut client, "seat", 9, End::Rollback).await.unwrap();
    assert_eq!(highest(&client, "seat").await, Some(3));
    write(&mut client, "seat", 4, End::Commit).await.unwrap();
    assert_eq!(written(&client, "seat").await, [3, 4]);
}

/// Whoever checked first is waited for, and the one who waited is judged by how that ended.
#[tokio::test]
async fn an_open_transaction_holds_up_the_next_check_and_its_end_decides() {
    let database = Database::new().await;
    let (mut first, mut second) = (database.connect().await, database.connect().await);
    write(&mut first, "seat", 1, End::Commit).await.unwrap();
    for (end, passes) in [(End::Commit, false), (End::Rollback, true)] {
        let newer = first.transaction().await.unwrap();
        let number = highest(&database.connect().await, "seat").await.unwrap() + 2;
        postgres::check(&newer, "seat", token(number))
            .await
            .unwrap();
        let older = write(&mut second, "seat", number - 1, End::Commit);
        let mut older = std::pin::pin!(older);
        // It waits for the row: the server says so, and no answer comes.
        let watch = database.connect().await;
        let waits = "SELECT count(*) FROM pg_stat_activity \
             WHERE datname = current_database() AND wait_event_type = 'Lock'";
        loop {
            tokio::select! {
                early = &mut older => panic!("it did not wait: {early:?}"),
                row = watch.query_one(waits, &[]) => {
                    if row.unwrap().get::<_, i64>(0) == 1 { break; }
                }
            }
        }
        match end {
            End::Commit => newer.commit().await.unwrap(),
            End::Rollback => newer.rollback().await.unwrap(),
        }
        assert_eq!(older.await.is_ok(), passes);
    }
}

/// The same as what must not be done: the check commits by itself, and the write comes later.
#[tokio::test]
async fn a_check_in_a_transaction_of_its_own_protects_nothing() {
    let database = Database::new().await;
    let (mut paused, mut current) = (database.connect().await, database.connect().await);
    let transaction = paused.transaction().await.unwrap();
    postgres::check(&transaction, "seat", token(33))
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    write(&mut current, "seat", 34, End::Commit).await.unwrap();
    paused.execute(WRITE, &[&33_i64, &"seat"]).await.unwrap();
    assert_eq!(written(&current, "seat").await, [34, 33], "33 went past 34");
}

/// Twenty connections offer interleaved tokens, and every fifth transaction rolls back. The log is
/// numbered under the row lock, so its order is the order in which the transactions went.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_highest_token_never_goes_back_and_no_stale_write_commits() {
    let database = Database::new().await;
    let each: u64 = pick(20, 300);
    let tasks = (0..TASKS).map(|first| {
        let database = database.clone();
        async move {
            let mut client = database.connect().await;
            let (mut refused, mut most) = (0, 0);
            for round in 0..each {
                let number = round * TASKS + first + 1;
                let end = if number % 5 == 3 {
                    End::Rollback
                } else {
                    End::Commit
                };
                match (write(&mut client, "seat", number, end).await, end) {
                    (Ok(()), End::Commit) => most = number,
                    (Ok(()), End::Rollback) => {}
                    (Err(Error::Stale(stale)), _) => {
                        assert!(stale.highest > stale.offered);
                        refused += 1;
                    }
                    (Err(error), _) => panic!("{error}"),
                }
            }
            (refused, most)
        }
    });
    let tasks = tasks.map(tokio::spawn);
    let ended: Vec<(u64, u64)> = join_all(tasks)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let client = database.connect().await;
    let log = written(&client, "seat").await;
    assert!(log.is_sorted(), "{log:?}");
    assert!(log.iter().all(|number| number % 5 != 3));
    let most = ended.iter().map(|(_, most)| *most).max();
    assert_eq!(highest(&client, "seat").await, most);
    assert_eq!(log.last().map(|last| *last as u64), most);
    assert!(
        ended.iter().any(|(refused, _)| *refused > 0),
        "not interleaved"
    );
}

/// Where the snapshot is older than the newer holder's commit, PostgreSQL itself refuses.
#[tokio::test]
async fn under_repeatable_read_the_loser_is_told_to_run_again() {
    let database = Database::new().await;
    let (mut slow, mut fast) = (database.connect().await, database.connect().await);
    write(&mut fast, "seat", 1, End::Commit).await.unwrap();
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let transaction = slow.build_transaction().isolation_level(level);
        let transaction = transaction.start().await.unwrap();
        transaction.query_one("SELECT 1", &[]).await.unwrap();
        write(&mut fast, "seat", 9, End::Commit).await.unwrap();
        let refused = postgres::check(&transaction, "seat", token(8)).await;
        let Err(Error::Postgres(error)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
        drop(transaction);
        let again = write(&mut slow, "seat", 8, End::Commit).await;
        assert!(again.unwrap_err().stale().is_some());
    }
}

#[tokio::test]
async fn what_the_table_cannot_hold_is_refused_before_anything_is_sent() {
    let database = Database::new().await;
    let mut client = database.connect().await;
    let transaction = client.transaction().await.unwrap();
    let most = i64::MAX as u64;
    let too_large = postgres::check(&transaction, "a", token(most + 1)).await;
    assert!(matches!(too_large, Err(Error::TokenTooLarge(_))));
    for name in ["", &"x".repeat(postgres::LONGEST_RESOURCE + 1)] {
        let refused = postgres::check(&transaction, name, token(1)).await;
        assert!(
            matches!(refused, Err(Error::ResourceName(_))),
            "{refused:?}"
        );
    }
    // The transaction is as good as before, up to the very edges.
    let longest = [0xff; postgres::LONGEST_RESOURCE];
    postgres::check(&transaction, longest, token(most))
        .await
        .unwrap();
    postgres::check(&transaction, "one", token(1))
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    let seen = postgres::highest(&client, longest).await.unwrap();
    assert_eq!(seen, Some(token(most)));
    let equal = write(&mut client, "one", 1, End::Commit).await;
    assert!(equal.is_ok(), "equal is accepted");
    let none = write(&mut client, "none", 0, End::Commit).await;
    assert!(none.unwrap_err().stale().unwrap().offered.is_none());
    let update = Update::new("seat", "id", &1_i32).fence(FencingToken::NONE);
    let none = update.execute(&client).await;
    assert!(matches!(none, Err(UpdateError::Stale(_))), "{none:?}");
}

async fn row(client: &Client) -> (Option<String>, i64, i64) {
    let query = "SELECT buyer, fence, version FROM seat WHERE id = 1";
    let row = client.query_one(query, &[]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test]
async fn a_row_with_a_token_column_refuses_stale_updates() {
    let database = Database::new().await;
    let client = database.connect().await;
    let update = |number, buyer| {
        let update = Update::new("seat", "id", &1_i32).set("buyer", buyer);
        update.fence(token(number))
    };
    update(7, &"ada").execute(&client).await.unwrap();
    update(7, &"ada again").execute(&client).await.unwrap();
    let refused = update(6, &"bob").execute(&client).await;
    let stale = Stale {
        offered: token(6),
        highest: token(7),
    };
    assert!(matches!(refused, Err(UpdateError::Stale(found)) if found == stale));
    assert_eq!(row(&client).await, (Some("ada again".into()), 7, 0));
    client
        .batch_execute("ALTER TABLE seat ALTER fence DROP NOT NULL; UPDATE seat SET fence = NULL")
        .await
        .unwrap();
    update(1, &"cyd").execute(&client).await.unwrap();
    assert_eq!(row(&client).await.1, 1, "NULL is no token yet");
}

#[tokio::test]
async fn a_row_with_a_version_refuses_what_was_read_before_the_last_update() {
    let database = Database::new().await;
    let client = database.connect().await;
    let update = |read, buyer| {
        Update::new("seat", "id", &1_i32)
            .set("buyer", buyer)
            .version(read)
    };
    update(0, &"ada").execute(&client).await.unwrap();
    let refused = update(0, &"bob").execute(&client).await;
    let expected = matches!(
        refused,
        Err(UpdateError::Changed {
            expected: 0,
            found: 1
        })
    );
    assert!(expected, "{refused:?}");
    update(1, &"cyd")
        .fence(token(4))
        .execute(&client)
        .await
        .unwrap();
    assert_eq!(row(&client).await, (Some("cyd".into()), 4, 2));
    // Both at once: the token is looked at first, since it ends the work and does not repeat it.
    let refused = update(1, &"dan").fence(token(3)).execute(&client).await;
    assert!(matches!(refused, Err(UpdateError::Stale(_))), "{refused:?}");
    let refused = update(1, &"dan").fence(token(5)).execute(&client).await;
    assert!(
        matches!(refused, Err(UpdateError::Changed { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_update_without_a_row_or_without_a_guard_says_so() {
    let database = Database::new().await;
    let client = database.connect().await;
    let missing = Update::new("seat", "id", &99_i32).version(0);
    let refused = missing.execute(&client).await;
    assert!(matches!(refused, Err(UpdateError::Missing)), "{refused:?}");
    let unguarded = Update::new("seat", "id", &1_i32).set("buyer", &"ada");
    let refused = unguarded.execute(&client).await;
    assert!(
        matches!(refused, Err(UpdateError::Unguarded)),
        "{refused:?}"
    );
    let large = Update::new("seat", "id", &1_i32).fence(token(u64::MAX));
    let refused = large.execute(&client).await;
    assert!(
        matches!(refused, Err(UpdateError::TokenTooLarge(_))),
        "{refused:?}"
    );
    assert_eq!(row(&client).await, (None, 0, 0));
}

/// Without any lock, versions alone let exactly one of those who read the same row through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_those_who_read_the_same_version_one_writes() {
    let database = Database::new().await;
    let tasks = (0..TASKS).map(|number| {
        let database = database.clone();
        async move {
            let client = database.connect().await;
            let buyer = format!("buyer {number}");
            let update = Update::new("seat", "id", &1_i32).set("buyer", &buyer);
            match update.version(0).execute(&client).await {
                Ok(()) => Some(buyer),
                Err(UpdateError::Changed { .. }) => None,
                Err(error) => panic!("{error}"),
            }
        }
    });
    let winners: Vec<String> = join_all(tasks).await.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    let client = database.connect().await;
    assert_eq!(row(&client).await, (winners.into_iter().next(), 0, 1));
}

/// Without any lock: the constraint alone sells a seat once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unique_constraint_alone_lets_one_buyer_through() {
    let database = Database::new().await;
    let setup = database.connect().await;
    let table = "CREATE TABLE booking (seat int UNIQUE, buyer text)";
    setup.batch_execute(table).await.unwrap();
    let buyers = (0..TASKS).map(|number| {
        let database = database.clone();
        async move {
            let client = database.connect().await;
            let buyer = format!("buyer {number}");
            let insert = "INSERT INTO booking VALUES (1, $1)";
            match client.execute(insert, &[&buyer]).await {
                Ok(_) => true,
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => false,
                Err(error) => panic!("{error}"),
            }
        }
    });
    let bought = join_all(buyers).await;
    assert_eq!(bought.iter().filter(|bought| **bought).count(), 1);
}

/// Reads the row's version, adds one to it in the program, and writes it back.
async fn add_one(client: &mut Client, read: &str) {
    let transaction = client.transaction().await.unwrap();
    let row = transaction.query_one(read, &[]).await.unwrap();
    let version: i64 = row.get(0);
    let update = "UPDATE seat SET version = $1 WHERE id = 1";
    transaction
        .execute(update, &[&(version + 1)])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

/// Without any lock of ours: who reads under FOR UPDATE is served one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_lock_alone_loses_no_update() {
    let database = Database::new().await;
    let tasks = (0..TASKS).map(|_| {
        let database = database.clone();
        async move {
            let read = "SELECT version FROM seat WHERE id = 1 FOR UPDATE";
            add_one(&mut database.connect().await, read).await;
        }
    });
    join_all(tasks).await;
    let client = database.connect().await;
    assert_eq!(row(&client).await.2, TASKS as i64);
}

/// The control: a transaction by itself, at the default level, does lose one.
#[tokio::test]
async fn a_transaction_without_a_row_lock_loses_an_update() {
    let database = Database::new().await;
    let (mut slow, mut fast) = (database.connect().await, database.connect().await);
    let read = "SELECT version FROM seat WHERE id = 1";
    let transaction = slow.transaction().await.unwrap();
    let version: i64 = transaction.query_one(read, &[]).await.unwrap().get(0);
    add_one(&mut fast, read).await;
    let update = "UPDATE seat SET version = $1 WHERE id = 1";
    transaction
        .execute(update, &[&(version + 1)])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(row(&fast).await.2, 1, "two were added");
}

#[tokio::test]
async fn the_migrations_run_twice_and_back() {
    let database = Database::new().await;
    let mut client = database.connect().await;
    write(&mut client, "seat", 4, End::Commit).await.unwrap();
    client.batch_execute(postgres::CREATE_TABLE).await.unwrap();
    assert_eq!(highest(&client, "seat").await, Some(4));
    let columns = postgres::add_columns("seat");
    client.batch_execute(&columns).await.unwrap();
    client.batch_execute(postgres::DROP_TABLE).await.unwrap();
    client.batch_execute(postgres::DROP_TABLE).await.unwrap();
    let gone = write(&mut database.connect().await, "seat", 5, End::Commit).await;
    let Err(Error::Postgres(error)) = gone else {
        panic!("{gone:?}");
    };
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_TABLE));
}
