//! How the client presents itself: credentials byte for byte, databases, sockets, IPv6, TLS.
//!
//! F26, quick; its TLS part with the feature `tls`.

use std::io::Write;

use quorumlock::{Client, Config, FaultKind, Node};

use crate::common::{NODE_TIMEOUT, Said, TTL, client, key, said, settings};
use crate::stand_in::StandIn;
use crate::support::{Reply, Server, Stub, StubReply};

const USER: &str = "a@b";
const PASSWORD: &str = "p@s/s#1%25:+=?&[é ";
/// The same, percent-encoded.
const IN_URL: &str = "a%40b:p%40s%2Fs%231%2525%3A%2B%3D%3F%26%5B%C3%A9%20@";
/// The variable by which a test hands the password to itself in another process.
const VARIABLE: &str = "TEST_NODE_PASSWORD";

/// A node that wants the odd password.
fn closed() -> StandIn {
    let node = StandIn::start();
    node.redis.require(USER, PASSWORD);
    node
}

async fn acquire_with(node: impl Into<Node>) {
    let config = Config::default().node(node);
    let config = config.ttl(TTL).node_timeout(NODE_TIMEOUT);
    let guard = client(config).lock("job").acquire().await;
    assert!(guard.expect("a free lock").is_held());
}

/// One connection was made, and one login was sent, with these very bytes.
fn assert_authenticated(stub: &Stub) {
    let sent: Vec<_> = stub.of("HELLO").into_iter().map(|it| it.args).collect();
    let expected = ["HELLO", "3", "AUTH", USER, PASSWORD].map(|arg| arg.as_bytes().to_vec());
    assert_eq!(sent, [expected.to_vec()]);
    assert_eq!(stub.of("AUTH").len(), 0);
    assert_eq!(stub.connections(), 1);
}

#[tokio::test]
async fn where_hello_is_refused_the_same_bytes_arrive_by_auth() {
    for refusal in [
        "ERR unknown command 'HELLO'",
        "NOPROTO unsupported protocol version",
        "NOPERM this user has no permissions to run the 'hello' command",
        "ERR AUTH called without any password configured for the default user.",
    ] {
        let node = closed().answers(&["HELLO"], &StubReply::error(refusal));
        acquire_with(Node::url(node.url()).username(USER).password(PASSWORD)).await;
        let auth: Vec<_> = node.stub.of("AUTH").into_iter().map(|it| it.args).collect();
        let expected = ["AUTH", USER, PASSWORD].map(|arg| arg.as_bytes().to_vec());
        assert_eq!(auth, [expected.to_vec()], "{refusal}");
        assert_eq!(node.stub.connections(), 1, "{refusal}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_told_and_nothing_is_asked_after_it() {
    let node = closed();
    let refused = closed().answers(&["HELLO"], &StubReply::error("ERR unknown command"));
    for node in [&node, &refused] {
        let config = Config::default().node(Node::url(node.url()).username(USER).password("no"));
        let config = config.ttl(TTL).node_timeout(NODE_TIMEOUT);
        let error = client(config).lock("job").try_acquire().await;
        let error = error.expect_err("not let in");
        assert_eq!(said(&error), [Said::Failed(FaultKind::Auth)], "{error}");
        for command in ["INFO", "EVAL", "SET"] {
            assert_eq!(node.stub.of(command).len(), 0, "{command}");
        }
    }
}

#[tokio::test]
async fn a_percent_encoded_password_arrives_byte_for_byte() {
    let node = closed();
    let url = node.url().replace("redis://", &format!("redis://{IN_URL}"));
    acquire_with(url).await;
    assert_authenticated(&node.stub);
}

#[tokio::test]
async fn a_password_apart_from_the_url_arrives_byte_for_byte() {
    let node = closed();
    acquire_with(Node::url(node.url()).username(USER).password(PASSWORD)).await;
    assert_authenticated(&node.stub);
}

#[tokio::test]
async fn a_password_in_a_file_arrives_byte_for_byte() {
    let node = closed();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    writeln!(file, "{PASSWORD}").expect("written");
    acquire_with(
        Node::url(node.url())
            .username(USER)
            .password_file(file.path()),
    )
    .await;
    assert_authenticated(&node.stub);
}

/// Runs itself once more with the password in the environment, since a process with threads must
/// not change its own.
#[tokio::test]
async fn a_password_in_a_variable_arrives_byte_for_byte() {
    if std::env::var_os(VARIABLE).is_none() {
        let program = std::env::current_exe().expect("this program");
        let name = "login::a_password_in_a_variable_arrives_byte_for_byte";
        let output = std::process::Command::new(program)
            .args(["--exact", name])
            .env(VARIABLE, PASSWORD)
            .output()
            .expect("this program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    let node = closed();
    acquire_with(Node::url(node.url()).username(USER).password_env(VARIABLE)).await;
    assert_authenticated(&node.stub);
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_password_arrives_byte_for_byte_under_tls() {
    use crate::tls_front::{TlsFront, authority};

    let node = closed();
    let front = TlsFront::of(node.stub.port()).await;
    for host in ["127.0.0.1", "localhost"] {
        node.stub.forget_received();
        let url = format!("rediss://{IN_URL}{host}:{}/3", front.port());
        acquire_with(Node::url(url).ca_file(authority())).await;
        let login = node.stub.of("HELLO");
        assert_eq!(login[0].args[4], PASSWORD.as_bytes());
        assert_eq!(node.stub.of("SELECT")[0].args[1], b"3");
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_not_talked_to() {
    use crate::tls_front::TlsFront;

    let node = closed();
    let front = TlsFront::of(node.stub.port()).await;
    let url = format!("rediss://{IN_URL}127.0.0.1:{}", front.port());
    let lock = client(settings([url])).lock("job");
    let error = lock.try_acquire().await.expect_err("not trusted");
    assert_eq!(said(&error), [Said::Failed(FaultKind::Tls)], "{error}");
    assert!(node.stub.received().is_empty());
}

#[tokio::test]
async fn a_database_in_the_url_is_the_one_that_is_used() {
    let server = Server::start();
    let config = settings([format!("{}/3", server.url())]);
    let guard = client(config).lock("job").acquire().await;
    let guard = guard.expect("a free lock");
    let mut probe = server.probe();
    assert_eq!(probe.get(key("job")), None);
    probe.command(&["SELECT", "3"]);
    assert!(probe.get(key("job")).is_some());
    guard.release().await.expect("a release");

    let node = StandIn::start();
    acquire_with(format!("{}/3", node.url())).await;
    assert_eq!(node.stub.of("SELECT")[0].args[1], b"3");
}

#[tokio::test]
async fn a_unix_socket_and_an_ipv6_address_are_reached() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("redis.sock");
    let path = socket.to_str().expect("a plain path").to_owned();
    let args = ["--unixsocket", &path, "--bind", "127.0.0.1", "::1"];
    let server = Server::builder().args(args).start();
    let user = ["ACL", "SETUSER", "u", "on", ">p w", "~*", "&*", "+@all"];
    assert_eq!(server.probe().command(&user), Reply::Simple("OK".into()));
    let plain: [Node; 3] = [
        format!("unix://{path}?db=3").into(),
        format!("unix://{path}?user=u&pass=p%20w").into(),
        Node::url(format!("redis://[::1]:{}", server.port()))
            .username("u")
            .password("p w"),
    ];
    for node in plain {
        acquire_with(node).await;
    }
}

/// It says so before it has read anything, and hangs up.
#[tokio::test]
async fn a_server_that_is_full_is_reported_as_one() {
    let server = Server::builder().args(["--maxclients", "2"]).start();
    let mut probes = [server.probe(), server.probe()];
    for probe in &mut probes {
        assert_eq!(probe.command(&["PING"]), Reply::Simple("PONG".into()));
    }
    let lock = client(settings([server.url()])).lock("job");
    let error = lock.try_acquire().await.expect_err("no place");
    let text = error.to_string();
    assert!(text.contains("max number of clients"), "{text}");
    drop(probes);
}

#[test]
fn a_malformed_url_is_told_without_its_secret() {
    let secret = "hunter2";
    for (url, wrong) in [
        (format!("http://u:{secret}@a"), "scheme"),
        (format!("redis://u:{secret}@"), "host"),
        (format!("redis://u:{secret}@a:port"), "port"),
        (format!("redis://u:{secret}/x@a"), "percent-encoded"),
        (format!("redis://u:{secret}%zz@a"), "password"),
        (format!("redis://u:{secret}@[::1"), "host"),
        (format!("redis://u:{secret}@a/three"), "database"),
        (format!("redis://u:{secret}@a?db=3"), "query"),
        (format!("redis://u:{secret} @a"), "white space"),
        (format!("redis://u:{secret}#@a"), "#"),
    ] {
        let error = Client::open(["redis://fine", &url]).expect_err(&url);
        assert_eq!(error.setting(), "nodes[1]", "{error}");
        let text = format!("{error} {error:?}");
        assert!(error.problem().contains(wrong), "{wrong}: {text}");
        assert!(!text.contains(secret), "{text}");
        assert!(!error.remedy().is_empty(), "{text}");
    }
}
