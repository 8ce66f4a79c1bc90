//! What the log and the texts of all public values show, and what they must not.
//!
//! F27 (the library's part, spans included; the command's is tested with the command), F23 (the
//! log; its 20 outages under `QUORUMLOCK_FULL=1`), the warnings of F35 and F44, and the one about a server that is listed twice; quick. A program of its own, since one
//! subscriber hears the whole process, the client's own thread included.

#[path = "../support/mod.rs"]
mod support;

#[path = "../nodes/common.rs"]
#[allow(dead_code)]
mod common;
#[path = "../nodes/stand_in.rs"]
#[allow(dead_code)]
mod stand_in;

mod capture;
mod dark;
mod spans;

use std::fmt::Write;

use quorumlock::{AcquireError, Client, Config, Node, RunError};

use capture::Log;
use common::{MS, SLACK, TTL, client, key, settings};
use stand_in::{StandIn, urls};
use support::{Cluster, Proxy, Reply, StubReply, eventually_async};

/// Looks like nothing else, and has characters that a URL must encode.
const PASSWORD: &str = "zq7/Kx@9#Vw";
const ENCODED: &str = "zq7%2FKx%409%23Vw";
const WRONG: &str = "zq7/Kx@9#Wrong";

/// Five nodes: the right password in the URL, the wrong one apart, one that is down, two open.
struct Field {
    cluster: Cluster,
    down: Proxy,
}

impl Field {
    fn new() -> Field {
        let closed = |node, server: support::ServerBuilder| match node {
            0 | 1 => server.args(["--requirepass", PASSWORD]),
            _ => server,
        };
        let cluster = Cluster::with(5, closed);
        let down = Proxy::in_front_of(cluster[2].port());
        down.refuse();
        Field { cluster, down }
    }

    fn config(&self) -> Config {
        let first = self.cluster[0].url();
        let first = first.replace("redis://", &format!("redis://:{ENCODED}@"));
        let second = Node::url(self.cluster[1].url());
        settings([first])
            .node(second.username("default").password(WRONG))
            .node(self.down.url())
            .node(self.cluster[3].url())
            .node(self.cluster[4].url())
            .wait(300 * MS)
    }

    fn hosts(&self) -> Vec<String> {
        let host = |node: usize| format!("127.0.0.1:{}", self.cluster[node].port());
        vec![host(1), format!("127.0.0.1:{}", self.down.port())]
    }
}

/// Acquires with and without success; all that can be printed is in the text, and every owner
/// token that was seen in a key is in the list.
async fn all_texts(field: &Field) -> (String, Vec<String>) {
    let (mut text, mut tokens) = (String::new(), Vec::new());
    let config = field.config();
    write!(text, "{config:?}").expect("written");
    let client = client(config);
    let lock = client.lock("job");
    let guard = lock.acquire().await.expect("three of five");
    let owners = field.cluster.probe().owners(key("job"));
    for (value, _) in owners.into_iter().flatten() {
        tokens.push(String::from_utf8(value).expect("a token is text"));
    }
    let (held, lost) = (guard.held(), guard.lost());
    write!(text, "{client:?} {lock:?} {guard:?} {held:?} {lost:?}").expect("written");
    let contended = lock.acquire().await.expect_err("we hold it");
    write!(text, "{contended} {contended:?}").expect("written");
    guard.extend().await.expect("three of five");
    let released = guard.release().await;
    write!(text, "{released:?}").expect("written");

    field.cluster[3].kill();
    let error = lock.acquire().await.expect_err("two of five");
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    write!(text, "{error} {error:?} {:?}", error.attempt()).expect("written");
    let run = lock.run(async |_| Ok::<(), std::io::Error>(())).await;
    match run {
        Err(error @ RunError::Acquire(_)) => write!(text, "{error} {error:?}"),
        other => panic!("{other:?}"),
    }
    .expect("written");
    (text, tokens)
}

#[tokio::test]
async fn no_text_and_no_log_shows_a_password_or_an_owner_token() {
    let log = Log::start();
    let field = Field::new();
    let (text, tokens) = all_texts(&field).await;
    assert!(!tokens.is_empty());
    let logged = log.all();
    let secrets = [PASSWORD, ENCODED, WRONG, "zq7"].map(str::to_owned);
    for secret in secrets.iter().chain(&tokens) {
        assert!(!text.contains(secret), "{secret} is in {text}");
        assert!(!logged.contains(secret), "{secret} is in {logged}");
    }
    // The nodes are named, in errors and in the log.
    for host in field.hosts() {
        assert!(text.contains(&host), "{host} is not in {text}");
        assert!(logged.contains(&host), "{host} is not in {logged}");
    }
    assert!(logged.contains("authentication failed"), "{logged}");
    // Spans are among what was looked at.
    for span in [" acquire ", " extend ", " release ", " run "] {
        assert!(logged.contains(span), "{span} is not in {logged}");
    }
}

#[tokio::test]
async fn config_errors_show_no_password() {
    for url in [
        format!("redis://u:{PASSWORD}@a"),
        format!("redis://u:{ENCODED}@a:port"),
        format!("http://u:{ENCODED}@a"),
        format!("redis://u:{ENCODED}@a/x"),
    ] {
        let error = Client::open([&url]).expect_err("a bad URL");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("zq7"), "{text}");
        let config = Config::new([&url]);
        assert!(!format!("{config:?}").contains("zq7"), "{config:?}");
    }
    let fine = format!("redis://u:{ENCODED}@a");
    let twice = Config::new([fine.clone(), fine]);
    let error = twice.validate().expect_err("the same twice");
    let text = format!("{error} {error:?} {twice:?}");
    assert!(!text.contains("zq7"), "{text}");
}

#[tokio::test]
async fn nodes_that_permit_too_little_are_named_in_a_warning() {
    let log = Log::start();
    let cluster = Cluster::start(5);
    let rules = ["~*", "+@all", "-eval", "-evalsha"];
    let user = [&["ACL", "SETUSER", "locker", "on", ">pw"], &rules[..]].concat();
    let mut config = settings([""; 0]);
    for (index, server) in cluster.iter().enumerate() {
        let node = Node::url(server.url());
        config = match index {
            0 | 1 => {
                let reply = server.probe().command(&user);
                assert_eq!(reply, Reply::Simple("OK".into()));
                config.node(node.username("locker").password("pw"))
            }
            _ => config.node(node),
        };
    }
    let guard = client(config).lock("job").acquire().await;
    let guard = guard.expect("three of five");
    for node in [0, 1] {
        let host = format!("127.0.0.1:{}", cluster[node].port());
        let warned = || log.warnings(&[&host, "permission denied"]) > 0;
        assert!(eventually_async(SLACK, warned).await, "{}", log.all());
    }
    // Told once, not at each try to connect.
    tokio::time::sleep(1500 * MS).await;
    for node in [0, 1] {
        let host = format!("127.0.0.1:{}", cluster[node].port());
        assert_eq!(log.warnings(&[&host]), 1, "{}", log.all());
    }
    drop(guard);
}

#[tokio::test]
async fn a_forbidden_info_is_worth_one_warning() {
    let log = Log::start();
    let nodes: Vec<_> = (0..3)
        .map(|_| {
            let denied = StubReply::error("NOPERM no permissions to run the 'info' command");
            StandIn::start().answers(&["INFO", "CONFIG", "HELLO"], &denied)
        })
        .collect();
    let client = client(settings(urls(&nodes)));
    for _ in 0..3 {
        let guard = client.lock("job").acquire().await.expect("a free lock");
        guard.release().await.expect("a release");
        nodes.iter().for_each(|node| node.stub.hang_up());
    }
    for node in &nodes {
        let host = format!("127.0.0.1:{}", node.stub.port());
        assert_eq!(log.warnings(&[&host, "INFO"]), 1, "{}", log.all());
    }
}

#[tokio::test]
async fn a_server_that_is_listed_twice_is_worth_a_warning_that_names_both() {
    let log = Log::start();
    let cluster = Cluster::start(2);
    let alias = Proxy::in_front_of(cluster[0].port());
    let urls = [cluster[0].url(), alias.url(), cluster[1].url()];
    let client = client(settings(urls));
    let guard = client.lock("job").acquire().await;
    assert!(guard.expect("two servers").is_held());
    let names = [cluster[0].port(), alias.port()].map(|port| format!("127.0.0.1:{port}"));
    let warned = || log.warnings(&[&names[0], &names[1], "one vote"]) > 0;
    assert!(eventually_async(SLACK, warned).await, "{}", log.all());
}

/// Contention is daily business, and an outage is told once.
#[tokio::test]
async fn contention_warns_of_nothing_and_an_outage_warns_once() {
    let log = Log::start();
    let cluster = Cluster::start(3);
    let holder = client(settings(cluster.urls()));
    let guard = holder.lock("job").acquire().await.expect("a free lock");
    let waiter = client(settings(cluster.urls()));
    for _ in 0..20 {
        let refused = waiter.lock("job").try_acquire().await;
        refused.expect_err("it is held");
    }
    let hosts: Vec<_> = cluster
        .ports()
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    assert!(
        hosts.iter().all(|host| log.warnings(&[host]) == 0),
        "{}",
        log.all()
    );
    cluster[0].kill();
    tokio::time::sleep(1500 * MS).await;
    // One for each of the two clients.
    assert_eq!(log.warnings(&[&hosts[0], "down"]), 2, "{}", log.all());
    cluster[0].restart_empty();
    let back = || log.count(&[&hosts[0], "back"]) == 2;
    assert!(eventually_async(TTL, back).await, "{}", log.all());
    assert!(guard.is_held());
}
