//! Nodes as URLs and as parts.

use super::*;

const USER: &str = "a@b";
const PASSWORD: &str = "p@s/s#1%25:+=?&[é ";
const ENCODED: &str = "a%40b:p%40s%2Fs%231%2525%3A%2B%3D%3F%26%5B%C3%A9%20";

fn problem(node: Node) -> String {
    NodeAddress::of(&node).unwrap_err().problem
}

fn server(url: &str) -> String {
    NodeAddress::of(&Node::url(url)).unwrap().server()
}

#[test]
fn credentials_are_the_same_bytes_on_every_path() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let mut nodes = vec![
        Node::url(format!("redis://{ENCODED}@[::1]:6379/3")),
        Node::url("redis://[::1]:6379/3")
            .username(USER)
            .password(PASSWORD),
        Node::url("redis://a%40b@[::1]:6379/3").password(PASSWORD),
        Node::url("redis://[::1]:6379/3")
            .username(USER)
            .password_file(&file),
        Node::url("unix:///s?user=a%40b&db=3").password_file(&file),
    ];
    if cfg!(feature = "tls") {
        nodes.push(Node::url(format!("rediss://{ENCODED}@[::1]:6379/3")));
    }
    for node in nodes {
        let address = NodeAddress::of(&node).unwrap();
        let credentials = address.credentials().unwrap();
        assert_eq!(credentials.username.as_deref(), Some(USER));
        assert_eq!(credentials.password.unwrap().reveal(), PASSWORD);
        assert_eq!(address.database, 3);
        let text = format!("{address:?}");
        assert!(!text.contains("p@s") && !text.contains("p%40s"), "{text}");
    }
}

#[test]
fn a_variable_is_read_at_each_connection() {
    let node = Node::url("redis://a").password_env("CARGO_PKG_NAME");
    let credentials = NodeAddress::of(&node).unwrap().credentials().unwrap();
    assert_eq!(credentials.password.unwrap().reveal(), "quorumlock");

    let node = Node::url("redis://a").password_env("QUORUMLOCK_NO_SUCH_VARIABLE");
    let error = NodeAddress::of(&node).unwrap().credentials().unwrap_err();
    assert!(error.to_string().contains("QUORUMLOCK_NO_SUCH_VARIABLE"));
}

#[test]
fn names_are_for_people() {
    for (url, name) in [
        ("redis://a", "a:6379"),
        ("redis://u:p@a:7000/3", "a:7000/3"),
        ("redis://[::1]:1", "[::1]:1"),
        ("unix:///run/redis.sock", "unix:/run/redis.sock"),
        ("unix:///s?db=3&pass=x", "unix:/s/3"),
    ] {
        let address = NodeAddress::of(&Node::url(url)).unwrap();
        assert_eq!(address.name(), name);
    }
}

#[test]
fn spellings_of_one_server_are_one() {
    let same = [
        "redis://localhost",
        "redis://LOCALHOST:6379/1",
        "redis://localhost.:6379",
        "redis://127.0.0.1",
        "redis://u:p@[::1]:6379/3",
        "redis://[0:0:0:0:0:0:0:1]",
        "redis://[::ffff:127.0.0.1]",
        "redis://0.0.0.0",
    ];
    for url in same {
        assert_eq!(server(url), "localhost:6379", "{url}");
    }
    assert_eq!(server("redis://[FE80::0:1]"), server("redis://[fe80::1]"));
    assert_eq!(server("unix:///run//s"), server("unix:///run/./s?db=1"));
    assert_ne!(server("redis://127.0.0.1:1"), server("redis://127.0.0.1:2"));
    assert_ne!(server("redis://127.0.0.1"), server("redis://127.0.0.2"));
    assert_ne!(server("redis://a"), server("redis://a.local"));
}

#[test]
fn a_password_has_one_place() {
    for node in [
        Node::url("redis://:x@a").password("y"),
        Node::url("redis://:x@a").password_env("Y"),
        Node::url("redis://a").password("x").password_file("y"),
        Node::url("redis://a").password_env("X").password_file("y"),
    ] {
        assert!(problem(node).contains("more than one password"));
    }
    let twice = Node::url("redis://u:p@a").username("u");
    assert!(problem(twice).contains("user name in the URL"));
}

#[test]
fn a_user_needs_a_password() {
    let without = problem(Node::url("redis://u@a"));
    assert!(without.contains("without a password"), "{without}");
    assert!(NodeAddress::of(&Node::url("redis://u@a").password_env("X")).is_ok());
    let nopass = NodeAddress::of(&Node::url("redis://u:@a")).unwrap();
    let password = nopass.credentials().unwrap().password;
    assert_eq!(password.unwrap().reveal(), "");
}

#[test]
fn empty_parts_are_errors() {
    for node in [
        Node::url("redis://a").password(""),
        Node::url("redis://a").password_env(""),
        Node::url("redis://a").password_file(""),
    ] {
        assert!(problem(node).contains("empty password"));
    }
    let node = Node::url("redis://a").username("").password("p");
    assert!(problem(node).contains("empty user name"));
    let node = Node::url("redis://a").password_env("A=b");
    assert!(problem(node).contains("password_env"));
}

#[test]
fn tls_files_are_for_tls_nodes() {
    let plain = Node::url("redis://a").ca_file("ca.pem");
    assert!(problem(plain).contains("asks for no TLS"));
    assert!(problem(Node::url("unix:///s").client_key_file("k")).contains("no TLS"));
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_names_the_feature() {
    let unfit = NodeAddress::of(&Node::url("rediss://a")).unwrap_err();
    assert!(unfit.remedy.contains("feature `tls`"), "{unfit:?}");
}

#[cfg(feature = "tls")]
#[test]
fn tls_nodes_keep_their_files() {
    let half = Node::url("rediss://a").client_cert_file("c.pem");
    assert!(problem(half).contains("only one of"));
    let node = Node::url("rediss://a:7000")
        .ca_file("ca.pem")
        .client_cert_file("c.pem")
        .client_key_file("k.pem");
    let address = NodeAddress::of(&node).unwrap();
    let files = TlsFiles {
        ca: Some("ca.pem".into()),
        certificate: Some("c.pem".into()),
        key: Some("k.pem".into()),
    };
    let host = "a".to_owned();
    assert_eq!(
        address.endpoint,
        Endpoint::Tls {
            host,
            port: 7000,
            files
        }
    );
}
