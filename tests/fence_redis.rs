//! Values in Redis that refuse stale writers, on a real server.

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use quorumlock::fence::redis::{Entry, Error, check, read, write};
use quorumlock::fence::{Memory, Stale};
use quorumlock::{FencingToken, redis};
use redis::aio::MultiplexedConnection;

use support::{Server, pick};

const TASKS: u64 = 20;

fn token(number: u64) -> FencingToken {
    FencingToken::from_u64(number)
}

async fn connect(server: &Server) -> MultiplexedConnection {
    let client = redis::Client::open(server.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn command(connection: &mut MultiplexedConnection, words: &[&str]) -> redis::Value {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(connection).await.unwrap()
}

/// The value and the highest token under a key that must be there.
async fn held(connection: &mut MultiplexedConnection, key: &str) -> (Option<Vec<u8>>, u64) {
    let entry: Entry = read(connection, key).await.unwrap().unwrap();
    (entry.value, entry.highest.into())
}

#[tokio::test]
async fn a_stale_write_is_refused_and_changes_nothing() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    assert_eq!(read(&mut connection, "k").await.unwrap(), None);
    write(&mut connection, "k", token(33), "a").await.unwrap();
    write(&mut connection, "k", token(34), "b").await.unwrap();
    let refused = write(&mut connection, "k", token(33), "c").await;
    let stale = Stale {
        offered: token(33),
        highest: token(34),
    };
    assert_eq!(refused.unwrap_err().stale(), Some(stale));
    let refused = check(&mut connection, "k", token(33)).await;
    assert_eq!(refused.unwrap_err().stale(), Some(stale));
    assert_eq!(held(&mut connection, "k").await, (Some(b"b".into()), 34));
    let plain = command(&mut connection, &["HGET", "k", "value"]).await;
    assert_eq!(plain, redis::Value::BulkString(b"b".to_vec()));
}

#[tokio::test]
async fn no_token_is_refused_even_where_none_was_seen() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    for outcome in [
        write(&mut connection, "k", FencingToken::NONE, "a").await,
        check(&mut connection, "k", FencingToken::NONE).await,
    ] {
        let stale = outcome.unwrap_err().stale().unwrap();
        assert!(stale.offered.is_none());
    }
    assert_eq!(read(&mut connection, "k").await.unwrap(), None);
}

#[tokio::test]
async fn one_holder_writes_many_times_and_any_bytes() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    for value in [&b""[..], b"\0\xff\r\n", b"last"] {
        write(&mut connection, b"\0k\xff", token(7), value)
            .await
            .unwrap();
        let entry = read(&mut connection, b"\0k\xff").await.unwrap().unwrap();
        assert_eq!(entry.value.as_deref(), Some(value));
    }
}

#[tokio::test]
async fn a_check_keeps_the_value_and_refuses_older_writers() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    check(&mut connection, "new", token(1)).await.unwrap();
    assert_eq!(held(&mut connection, "new").await, (None, 1));
    write(&mut connection, "k", token(1), "a").await.unwrap();
    check(&mut connection, "k", token(2)).await.unwrap();
    assert_eq!(held(&mut connection, "k").await, (Some(b"a".into()), 2));
    assert!(write(&mut connection, "k", token(1), "b").await.is_err());
}

#[tokio::test]
async fn tokens_are_exact_where_lua_numbers_are_not() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    let edges = [
        1,
        9,
        10,
        9_999_999_999,
        10_000_000_000,
        10_000_000_001,
        (1 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
        (1 << 53) + 2,
        1 << 63,
        (1 << 63) + 1,
        u64::MAX - 1,
        u64::MAX,
    ];
    for (at, highest) in edges.into_iter().enumerate() {
        let key = format!("edge{at}");
        write(&mut connection, &key, token(highest), "x")
            .await
            .unwrap();
        for offered in edges {
            let verdict = check(&mut connection, &key, token(offered)).await;
            assert_eq!(verdict.is_ok(), offered >= highest, "{offered} {highest}");
            if offered > highest {
                command(&mut connection, &["DEL", &key]).await;
                check(&mut connection, &key, token(highest)).await.unwrap();
            }
        }
        assert_eq!(held(&mut connection, &key).await.1, highest);
    }
}

#[tokio::test]
async fn whatever_else_the_key_holds_is_left_alone() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    let cases: [(&[&str], &str); 7] = [
        (&["SET", "k", "v"], "a string"),
        (&["RPUSH", "k", "v"], "a list"),
        (&["SADD", "k", "v"], "a set"),
        (&["ZADD", "k", "1", "v"], "a zset"),
        (
            &["HSET", "k", "name", "v"],
            "a hash without a fencing token",
        ),
        (
            &["HSET", "k", "fence", "1e3"],
            "a hash without a fencing token",
        ),
        (
            &["HSET", "k", "fence", "99999999999999999999"],
            "a token that is no 64-bit number",
        ),
    ];
    for (setting, what) in cases {
        command(&mut connection, &["DEL", "k"]).await;
        command(&mut connection, setting).await;
        let before = command(&mut connection, &["DUMP", "k"]).await;
        let outcomes = [
            write(&mut connection, "k", token(5), "x").await,
            check(&mut connection, "k", token(5)).await,
            read(&mut connection, "k").await.map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Foreign { .. }), "{what}: {error:?}");
        }
        let refused = write(&mut connection, "k", token(5), "x").await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(what), "{text}");
        assert_eq!(command(&mut connection, &["DUMP", "k"]).await, before);
    }
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_taught_again() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    for number in 1..4 {
        command(&mut connection, &["SCRIPT", "FLUSH"]).await;
        write(&mut connection, "k", token(number), "v")
            .await
            .unwrap();
        command(&mut connection, &["SCRIPT", "FLUSH"]).await;
        assert_eq!(held(&mut connection, "k").await.1, number);
    }
}

#[tokio::test]
async fn a_server_out_of_memory_refuses_and_keeps_what_was_there() {
    let server = Server::start();
    let mut connection = connect(&server).await;
    write(&mut connection, "k", token(1), "a").await.unwrap();
    command(&mut connection, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let refused = write(&mut connection, "k", token(2), "b").await;
    assert!(matches!(refused, Err(Error::Redis(_))), "{refused:?}");
    command(&mut connection, &["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(held(&mut connection, "k").await, (Some(b"a".into()), 1));
}

/// Twenty tasks offer interleaved tokens, each its own number as the value. What a reader sees must
/// never go back, and value and token must be of one write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_highest_token_never_goes_back() {
    let server = Server::start();
    let each: u64 = pick(50, 1_000);
    let writers = (0..TASKS).map(|first| {
        let connection = connect(&server);
        async move {
            let mut connection = connection.await;
            let mut refused = 0;
            for number in (first + 1..=each * TASKS).step_by(TASKS as usize) {
                let value = number.to_string();
                match write(&mut connection, "k", token(number), value).await {
                    Ok(()) => {}
                    Err(Error::Stale(stale)) => {
                        assert_eq!(stale.offered, token(number));
                        assert!(stale.highest > stale.offered);
                        refused += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            refused
        }
    });
    let mut reader = connect(&server).await;
    let writers = futures::future::join_all(writers);
    let mut writers = std::pin::pin!(writers);
    let mut seen = 0;
    let refused: u64 = loop {
        tokio::select! {
            refused = &mut writers => break refused.into_iter().sum(),
            entry = read(&mut reader, "k") => {
                let Some(entry) = entry.unwrap() else { continue };
                let highest = u64::from(entry.highest);
                assert!(highest >= seen, "{highest} after {seen}");
                assert_eq!(entry.value, Some(highest.to_string().into_bytes()));
                seen = highest;
            }
        }
    };
    let last = each * TASKS;
    let value = last.to_string().into_bytes();
    assert_eq!(held(&mut reader, "k").await, (Some(value), last));
    assert!(refused > 0, "the tokens were not interleaved");
}

/// One step of the model: which resource, which token, and a value unless it only checks.
type Offer = (u8, u64, Option<u8>);

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let number = prop_oneof![1_u64..6, 1..=u64::MAX, (1_u64 << 53)..(1 << 53) + 4];
    prop::collection::vec((0_u8..3, number, any::<Option<u8>>()), 1..40)
}

#[test]
fn redis_and_memory_do_what_the_model_does() {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connection = runtime.block_on(connect(&server));
    let cases = pick(64, 1_000);
    proptest!(ProptestConfig::with_cases(cases), |(offers in offers())| {
        let mut connection = connection.clone();
        runtime.block_on(async {
            command(&mut connection, &["FLUSHALL"]).await;
            follow_the_model(&mut connection, offers).await
        })?;
    });
}

async fn follow_the_model(
    connection: &mut MultiplexedConnection,
    offers: Vec<Offer>,
) -> Result<(), TestCaseError> {
    let memory = Memory::new();
    let mut model: HashMap<u8, (u64, Option<Vec<u8>>)> = HashMap::new();
    for (resource, offered, value) in offers {
        let offered = token(offered);
        let here = memory.check([resource], offered);
        let there = match value {
            Some(value) => write(connection, [resource], offered, [value]).await,
            None => check(connection, [resource], offered).await,
        };
        let highest = model.get(&resource).map(|(highest, _)| token(*highest));
        match highest.filter(|highest| offered < *highest) {
            Some(highest) => {
                let stale = Stale { offered, highest };
                prop_assert_eq!(here, Err(stale));
                prop_assert_eq!(there.unwrap_err().stale(), Some(stale));
            }
            None => {
                prop_assert_eq!(here, Ok(()));
                prop_assert!(there.is_ok(), "{:?}", there);
                let entry = model.entry(resource).or_default();
                entry.0 = offered.into();
                if let Some(value) = value {
                    entry.1 = Some(vec![value]);
                }
            }
        }
        let (highest, value) = model[&resource].clone();
        prop_assert_eq!(memory.highest([resource]), Some(token(highest)));
        let entry = read(connection, [resource]).await.unwrap().unwrap();
        prop_assert_eq!((entry.highest, entry.value), (token(highest), value));
    }
    Ok(())
}
