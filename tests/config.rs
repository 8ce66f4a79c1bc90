//! What a user of the settings sees: which values are taken, what the errors say, and that no
//! secret is ever printed. Nothing here needs a server: a setting that cannot be used is an error
//! before anything is sent.

use std::time::Duration;

use quorumlock::{Config, ConfigError, Jitter, Node, Origin, RestartGuard};

const URLS: [&str; 3] = ["redis://a:6379", "redis://b:6379", "redis://c:6379"];

fn config() -> Config {
    Config::new(URLS)
}

fn with_var(name: &str, value: &str) -> Result<(), ConfigError> {
    config()
        .with_vars([(name.to_owned(), value.to_owned())])?
        .validate()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// F24: seconds or milliseconds; zero, fractions, huge ones. The text, and what the error has to
/// say, if it is one.
const TTLS: [(&str, Option<&str>); 11] = [
    ("30", Some("write \"30s\" or \"30ms\"")),
    ("30s", None),
    ("1500ms", None),
    ("1500.5ms", Some("finer than a millisecond")),
    ("0", Some("needs a unit")),
    ("0s", Some("longer than zero")),
    ("-1s", Some("cannot be negative")),
    ("0.4ms", Some("finer than a millisecond")),
    ("1e30s", Some("is no duration")),
    ("99999999999999999999s", Some("longer than ten years")),
    ("", Some("is empty")),
];

#[test]
fn durations_from_the_environment_need_a_unit_and_a_sensible_size() {
    for (text, expected) in TTLS {
        match (with_var("QUORUMLOCK_TTL", text), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(expected)) => {
                assert_eq!(error.setting(), "ttl");
                let variable = "QUORUMLOCK_TTL".into();
                assert_eq!(*error.origin(), Origin::Env { variable });
                let shown = error.to_string();
                let start = format!("ttl = {text:?} (environment variable QUORUMLOCK_TTL): ");
                assert!(shown.starts_with(&start), "{shown}");
                assert!(shown.contains(expected), "{text}: {shown}");
            }
            (result, _) => panic!("{text}: {result:?}"),
        }
    }
}

#[test]
fn wait_and_ttl_are_independent() {
    assert!(config().ttl(ms(300)).wait(ms(3000)).validate().is_ok());
    assert!(config().ttl(ms(3000)).wait(ms(300)).validate().is_ok());
    assert!(config().wait(ms(0)).validate().is_ok());
    assert!(config().wait_forever().validate().is_ok());
}

#[test]
fn values_from_code_are_checked_too() {
    for (name, config) in [
        ("ttl", config().ttl(ms(0))),
        ("ttl", config().ttl(Duration::from_micros(400))),
        ("ttl", config().ttl(Duration::MAX)),
        ("ttl", config().ttl(ms(60_001))),
        ("ttl", config().ttl(ms(2))),
        ("max_ttl", config().max_ttl(Duration::MAX)),
        ("wait", config().wait(Duration::MAX)),
        ("node_timeout", config().node_timeout(ms(9_898))),
        ("min_validity", config().min_validity(ms(9_898))),
        ("extend_every", config().extend_every(ms(9_500))),
        ("restart_delay", config().restart_delay(ms(60_000))),
        ("drift.factor", config().drift_factor(f64::NAN)),
        ("drift.factor", config().drift_factor(-0.01)),
        ("retry.delay", config().retry_delay(ms(600))),
        ("retry.attempts", config().retry_attempts(0)),
        ("prefix", config().prefix("x".repeat(1025))),
    ] {
        let error = config.validate().unwrap_err();
        assert_eq!(error.setting(), name);
        assert_eq!(*error.origin(), Origin::Code);
        assert!(error.value().is_some(), "{error}");
        assert!(!error.problem().is_empty(), "{error}");
        assert!(!error.remedy().is_empty(), "{error}");
    }
    let fine = config()
        .retry_jitter(Jitter::None)
        .restart_guard(RestartGuard::Off)
        .restart_delay(ms(1));
    assert!(fine.validate().is_ok());
}

/// F13: zero, three, no limit, and what is no number of attempts.
#[test]
fn attempts_are_one_or_more_or_unlimited() {
    let attempts = |text| with_var("QUORUMLOCK_RETRY_ATTEMPTS", text);
    for text in ["1", "3", "4294967295", "unlimited"] {
        assert!(attempts(text).is_ok(), "{text}");
    }
    for (text, expected) in [
        ("0", "an acquire makes at least one attempt; write 1"),
        ("-1", "cannot be negative"),
        ("4294967296", "more than 4294967295"),
        ("99999999999999999999", "no whole number"),
        ("NaN", "no whole number"),
        ("1.5", "no whole number"),
        ("", "no whole number"),
    ] {
        let error = attempts(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

/// F33, for variables.
#[test]
fn an_unknown_variable_names_the_nearest_one() {
    for (name, near) in [
        ("QUORUMLOCK_TLL", "QUORUMLOCK_TTL"),
        ("QUORUMLOCK_RETRY_COUNT", "QUORUMLOCK_RETRY_ATTEMPTS"),
        ("QUORUMLOCK_RETRY_DELY", "QUORUMLOCK_RETRY_DELAY"),
        ("QUORUMLOCK_FACTOR", "QUORUMLOCK_DRIFT_FACTOR"),
        ("QUORUMLOCK_URLS", "QUORUMLOCK_NODES"),
        ("QUORUMLOCK_ttl", "QUORUMLOCK_TTL"),
    ] {
        let error = with_var(name, "hunter2").unwrap_err();
        assert_eq!(error.setting(), name);
        assert_eq!(error.remedy(), format!("did you mean {near}?"));
        assert!(!error.to_string().contains("hunter2"));
    }
    let error = with_var("QUORUMLOCK_COLOUR_OF_THE_SKY", "x").unwrap_err();
    assert!(error.remedy().contains("QUORUMLOCK_NODES"), "{error}");
}

#[test]
fn other_variables_are_nobodys_business() {
    for name in [
        "QUORUMLOCK_CONFIG",
        "QUORUMLOCK_RESOURCE",
        "QUORUMLOCK_FENCING_TOKEN",
        "QUORUMLOCK_SERVER",
        "QUORUMLOCK_INSTALL",
        "QUORUMLOCK_FULL",
        "QUORUMLOCK_CLUSTER_DIR",
        "QUORUMLOCK_DEMO",
        "QUORUMLOCK_POSTGRES",
        "QUORUMLOCK_POSTGRES_BIN",
        "QUORUMLOCKED",
        "TTL",
        "PATH",
    ] {
        assert!(with_var(name, "-1s").is_ok(), "{name}");
    }
    let node = Node::url("redis://d").password_env("QUORUMLOCK_PASSWORD");
    let variables = [("QUORUMLOCK_PASSWORD".to_owned(), "hunter2".to_owned())];
    assert!(config().node(node).with_vars(variables).is_ok());
}

#[test]
fn variables_replace_what_was_there() {
    let variables = [
        ("QUORUMLOCK_TTL", "5s"),
        ("QUORUMLOCK_NODES", "redis://a, redis://b ,redis://:p%2Cq@c"),
        ("QUORUMLOCK_AUTO_EXTEND", "false"),
        ("QUORUMLOCK_WAIT", "forever"),
        ("QUORUMLOCK_MAX_HOLD", "none"),
        ("QUORUMLOCK_DRIFT_FACTOR", "0.05"),
        ("QUORUMLOCK_DRIFT_MARGIN", "0ms"),
        ("QUORUMLOCK_RETRY_JITTER", "equal"),
        ("QUORUMLOCK_RESTART_GUARD", "strict"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let bad = config().ttl(ms(0)).node(Node::url("http://d"));
    bad.with_vars(variables).unwrap().validate().unwrap();

    for (value, setting) in [
        ("", "nodes[0]"),
        ("redis://a,,redis://b", "nodes[1]"),
        ("redis://a,", "nodes[1]"),
    ] {
        let error = with_var("QUORUMLOCK_NODES", value).unwrap_err();
        assert_eq!(error.setting(), setting);
        let variable = "QUORUMLOCK_NODES".into();
        assert_eq!(*error.origin(), Origin::Env { variable });
    }
}

const PASSWORD: &str = "p@s/s#1%25:+=?&[é ";
const ENCODED: &str = "p%40s%2Fs%231%2525%3A%2B%3D%3F%26%5B%C3%A9%20";

/// F26: the same node as a URL and as parts. That all give the same bytes is tested beside the
/// parser.
#[test]
fn a_hard_password_is_taken_as_url_and_as_parts() {
    let parts = || Node::url("redis://[::1]:6379/3").username("a@b");
    for node in [
        Node::url(format!("redis://a%40b:{ENCODED}@[::1]:6379/3")),
        Node::url("redis://a%40b@[::1]:6379/3").password(PASSWORD),
        parts().password(PASSWORD),
        parts().password_env("LOCK_PASSWORD"),
        parts().password_file("no/such/file"),
    ] {
        assert_eq!(node.to_string(), "[::1]:6379/3");
        Config::default().node(node).validate().unwrap();
    }
    let socket = Node::url(format!("unix:///redis.sock?db=3&user=a%40b&pass={ENCODED}"));
    assert_eq!(socket.to_string(), "unix:/redis.sock/3");
    Config::default().node(socket).validate().unwrap();
}

#[test]
fn a_malformed_url_is_named_by_its_place_and_its_part() {
    for (url, part) in [
        ("redis://user:hunter2@", "host"),
        ("redis://user:hunter2@a:70000", "port"),
        ("redis://user:hunter2@a/three", "database"),
        ("redis://user:hunter2%@a", "password"),
        ("redis://user:hunter2/x@a", "percent-encoded"),
        ("redis://user:hunter2@a?timeout=5", "query"),
        ("http://user:hunter2@a", "scheme"),
        ("redis://user:hunter2@b", "same server"),
    ] {
        let error = config().node(Node::url(url)).validate().unwrap_err();
        assert_eq!(error.setting(), "nodes[3]");
        assert!(error.problem().contains(part), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_needs_its_feature() {
    let error = config().node("rediss://d").validate().unwrap_err();
    assert!(error.remedy().contains("feature `tls`"), "{error}");
}

/// F27, as far as settings go: host and port do occur.
#[test]
fn nothing_that_is_printed_holds_a_password() {
    let config = config()
        .node(Node::url(format!("redis://locker:{ENCODED}@d:7001")))
        .node(Node::url("redis://e:7002").password(PASSWORD))
        .node(Node::url(format!("unix:///s?pass={ENCODED}")))
        .node(Node::url(format!("redis://locker:{PASSWORD}@f:7003")));
    let error = config.validate().unwrap_err();
    let text = format!("{config:?} {config:#?} {error} {error:?}");
    for secret in [PASSWORD, ENCODED, "p@s", "p%40s", "1%25"] {
        assert!(!text.contains(secret), "{text}");
    }
    for place in ["a:6379", "d:7001", "e:7002", "unix:/s"] {
        assert!(text.contains(place), "{text}");
    }
}

/// F57 (c) and (d): any number of nodes from 1 to 32, each server once.
#[test]
fn lists_have_distinct_servers() {
    let many = |count| Config::new((0..count).map(|n| format!("redis://n{n}")));
    for count in [1, 2, 4, 5, 32] {
        assert!(many(count).validate().is_ok(), "{count}");
    }
    for count in [0, 33] {
        assert_eq!(many(count).validate().unwrap_err().setting(), "nodes");
    }
    for (first, second) in [
        ("redis://a:7001", "redis://a:7001"),
        ("redis://a:7001/0", "redis://a:7001/3"),
        ("redis://127.0.0.1:7001", "redis://localhost:7001"),
        ("redis://[::1]:7001", "redis://127.0.0.1:7001"),
        ("redis://u:p@a:7001", "redis://v:q@a:7001"),
    ] {
        let error = Config::new([first, second]).validate().unwrap_err();
        assert_eq!(error.setting(), "nodes[1]");
        assert!(
            error.problem().contains("same server as nodes[0]"),
            "{error}"
        );
    }
}

/// F36: two environments are kept apart by a prefix of any text.
#[test]
fn a_prefix_is_any_text() {
    for prefix in ["", "staging:", "{a}{b}", "a b", "é\0"] {
        assert!(config().prefix(prefix).validate().is_ok(), "{prefix}");
    }
}

#[cfg(feature = "serde")]
mod toml {
    use super::*;

    #[test]
    fn durations_in_a_file_are_the_same() {
        for (text, expected) in TTLS {
            let toml = format!("nodes = [\"redis://a\"]\nttl = {text:?}\n");
            match (Config::from_toml(&toml), expected) {
                (Ok(config), None) => config.validate().unwrap(),
                (Err(error), Some(expected)) => {
                    let shown = error.to_string();
                    let start = format!("ttl = {text:?} (line 2): ");
                    assert!(shown.starts_with(&start), "{shown}");
                    assert!(shown.contains(expected), "{text}: {shown}");
                }
                (result, _) => panic!("{text}: {result:?}"),
            }
        }
    }

    /// F33: one mutation of a good file at a time.
    #[test]
    fn each_mistake_in_a_file_names_file_line_key_and_what_was_meant() {
        const GOOD: &str = "nodes = [\n  \"redis://a\",\n  \"redis://b\",\n]\nttl = \"5s\"\n\n\
                            [retry]\ndelay = \"10ms\"\n";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("quorumlock.toml");
        let outcome = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Config::from_file(&path).and_then(|config| config.validate())
        };
        outcome(GOOD).unwrap();
        let level = "did you mean ttl, above the first [table]?";
        for (from, to, line, key, says) in [
            ("ttl", "tll", 5, "tll", "did you mean ttl?"),
            ("ttl", "retry_cout", 5, "retry_cout", "mean retry.attempts"),
            ("[retry]", "[retyr]", 7, "retyr", "did you mean retry?"),
            ("delay", "ttl", 8, "retry.ttl", level),
            ("delay", "delya", 8, "retry.delya", "mean retry.delay?"),
            ("[retry]", "ttl = \"6s\"", 7, "ttl", "is set twice"),
            ("\"10ms\"", "10", 8, "retry.delay", "\"10s\" or \"10ms\""),
            ("\"5s\"", "[5]", 5, "ttl", "cannot be a list"),
            (
                "//b",
                "//a:6379/1",
                3,
                "nodes[1]",
                "same server as nodes[0]",
            ),
            ("//b", "//b:b", 3, "nodes[1]", "the port is not a number"),
        ] {
            let error = outcome(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.setting(), key);
            let text = error.to_string();
            let place = format!("quorumlock.toml, line {line})");
            assert!(text.contains(&place), "{text}");
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Config::from_file("no-such-directory/quorumlock.toml").unwrap_err();
        let text = error.to_string();
        let says = "no-such-directory/quorumlock.toml): cannot be read";
        assert!(text.contains(says), "{text}");
    }

    #[test]
    fn the_environment_replaces_the_file() {
        let config = Config::from_toml("nodes = [\"http://a\"]\nttl = \"5s\"\n").unwrap();
        assert!(config.validate().is_err());
        let variables = [("QUORUMLOCK_NODES".to_owned(), "redis://b".to_owned())];
        let config = config.with_vars(variables).unwrap();
        config.validate().unwrap();
        let text = format!("{config:?}");
        assert!(text.contains("b:6379"), "{text}");
        assert!(text.contains("5s (line 2)"), "{text}");
    }

    #[test]
    fn a_password_in_a_file_is_never_printed() {
        let nodes = "nodes = [{ url = \"redis://a\", password = \"hunter2\" }]";
        let config = Config::from_toml(nodes).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
        // A URL in the wrong place, and its first lines cut off.
        for text in [
            "ttl = \"redis://:hunter2@a\"",
            "ttl = \"5s\nredis://:hunter2@a",
        ] {
            let error = Config::from_toml(text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}
