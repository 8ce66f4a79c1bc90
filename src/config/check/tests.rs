//! What is checked of each setting, and what the defaults are.

use std::time::Duration;

use super::*;
use crate::config::{Jitter, Node, RestartGuard};
use crate::node::connect::Endpoint;
use crate::quorum;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn config() -> Config {
    Config::new(["redis://a", "redis://b", "redis://c"])
}

fn refused(config: Config) -> ConfigError {
    config.check().unwrap_err()
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let settings = config().check().unwrap();
    assert_eq!(settings.node_names(), ["a:6379", "b:6379", "c:6379"]);
    assert_eq!(settings.prefix, "quorumlock:");
    assert_eq!(settings.ttl, ms(10_000));
    assert_eq!(settings.max_ttl, ms(60_000));
    assert_eq!(settings.wait, Wait::For(ms(30_000)));
    assert_eq!(settings.node_timeout, None);
    assert_eq!(settings.drift.allowance(ms(10_000)), ms(102));
    assert_eq!(settings.min_validity, Duration::ZERO);
    let retry = Retry {
        delay: ms(20),
        max_delay: ms(500),
        jitter: quorum::Jitter::Full,
        attempts: None,
    };
    assert_eq!(settings.retry, retry);
    assert!(settings.auto_extend);
    assert_eq!(settings.extend_every, None);
    assert_eq!(settings.max_hold, None);
    assert_eq!(settings.cohort.max_handoffs, 64);
    assert_eq!(settings.cohort.max_time, ms(200));
    assert_eq!(settings.guard_mode(), GuardMode::Auto);
    assert_eq!(settings.restart_delay, Duration::from_secs(62));
    assert!(settings.fencing);
    assert_eq!(settings.fence_retention, Duration::from_secs(86_400));
}

#[test]
fn what_is_given_arrives() {
    let settings = config()
        .prefix("é ")
        .ttl(ms(3000))
        .max_ttl(ms(4000))
        .wait_forever()
        .node_timeout(ms(70))
        .drift_factor(0.1)
        .drift_margin(ms(0))
        .min_validity(ms(100))
        .retry_delay(ms(7))
        .retry_max_delay(ms(7))
        .retry_jitter(Jitter::Equal)
        .retry_attempts(3)
        .auto_extend(false)
        .extend_every(ms(500))
        .max_hold(ms(9000))
        .cohort_max_handoffs(7)
        .cohort_max_time(ms(50))
        .restart_guard(RestartGuard::Strict)
        .restart_delay(ms(5400))
        .fencing(false)
        .fence_retention(ms(7000))
        .check()
        .unwrap();
    assert_eq!(settings.prefix, "é ");
    assert_eq!((settings.ttl, settings.max_ttl), (ms(3000), ms(4000)));
    assert_eq!(settings.wait, Wait::Forever);
    assert_eq!(settings.node_timeout, Some(ms(70)));
    assert_eq!(settings.drift.allowance(ms(3000)), ms(300));
    assert_eq!(settings.min_validity, ms(100));
    assert_eq!(settings.retry.jitter, quorum::Jitter::Equal);
    assert_eq!(settings.retry.attempts, NonZeroU32::new(3));
    assert!(!settings.auto_extend);
    assert_eq!(settings.extend_every, Some(ms(500)));
    assert_eq!(settings.max_hold, Some(ms(9000)));
    assert_eq!(settings.cohort.max_handoffs, 7);
    assert_eq!(settings.cohort.max_time, ms(50));
    assert_eq!(settings.guard_mode(), GuardMode::Strict);
    assert_eq!(settings.restart_delay, ms(5400));
    assert!(!settings.fencing);
    assert_eq!(settings.fence_retention, ms(7000));
    let host = "a".to_owned();
    assert_eq!(
        settings.nodes[0].endpoint,
        Endpoint::Tcp { host, port: 6379 }
    );
}

#[test]
fn the_wait_may_be_nothing_and_is_independent_of_the_ttl() {
    let none = config().wait(Duration::ZERO).check().unwrap();
    assert_eq!(none.wait, Wait::For(Duration::ZERO));
    // What is left until some moment is no whole number of milliseconds.
    assert!(
        config()
            .wait(Duration::from_nanos(1_234_567))
            .check()
            .is_ok()
    );
    assert!(config().ttl(ms(300)).wait(ms(3000)).check().is_ok());
    let error = refused(config().wait(Duration::MAX));
    assert_eq!(error.setting(), "wait");
    assert!(error.remedy().contains("forever"));
}

#[test]
fn zero_is_refused_where_it_means_nothing() {
    let zero = Duration::ZERO;
    for (name, config) in [
        ("ttl", config().ttl(zero)),
        ("max_ttl", config().max_ttl(zero)),
        ("node_timeout", config().node_timeout(zero)),
        ("retry.delay", config().retry_delay(zero)),
        ("retry.max_delay", config().retry_max_delay(zero)),
        ("extend_every", config().extend_every(zero)),
        ("max_hold", config().max_hold(zero)),
        ("restart_delay", config().restart_delay(zero)),
        ("fence_retention", config().fence_retention(zero)),
    ] {
        let error = refused(config);
        assert_eq!(error.setting(), name);
        assert_eq!(error.value(), Some("0s"));
        assert!(error.problem().contains("longer than zero"), "{error}");
    }
    assert!(
        config()
            .min_validity(zero)
            .drift_margin(zero)
            .check()
            .is_ok()
    );
}

#[test]
fn an_acquire_makes_at_least_one_attempt() {
    let error = refused(config().retry_attempts(0));
    assert_eq!(
        error.to_string(),
        "retry.attempts = 0 (set in code): an acquire makes at least one attempt; write 1 for no \
         retry"
    );
    for attempts in [1, u32::MAX] {
        let settings = config().retry_attempts(attempts).check().unwrap();
        assert_eq!(settings.retry.attempts, NonZeroU32::new(attempts));
    }
}

#[test]
fn drift_is_a_share_below_one() {
    for factor in [-0.01, 1.0, 1.5, f64::NAN, f64::INFINITY] {
        let error = refused(config().drift_factor(factor));
        assert_eq!(error.setting(), "drift.factor");
        assert_eq!(error.value(), Some(factor.to_string().as_str()));
    }
    assert!(config().drift_factor(0.0).check().is_ok());
}

#[test]
fn delays_fit_each_other() {
    let error = refused(config().retry_delay(ms(501)));
    assert_eq!(error.setting(), "retry.delay");
    assert!(error.problem().contains("500ms (default)"), "{error}");
    let error = refused(config().retry_max_delay(ms(19)));
    assert_eq!(error.setting(), "retry.max_delay");
    assert!(error.problem().contains("20ms (default)"), "{error}");
}

#[test]
fn the_prefix_is_any_text_up_to_a_kibibyte() {
    for prefix in ["", "{a}", "\0", &"x".repeat(1024)] {
        assert_eq!(config().prefix(prefix).check().unwrap().prefix, prefix);
    }
    let error = refused(config().prefix("x".repeat(1025)));
    assert_eq!(
        (error.setting(), error.value()),
        ("prefix", Some("1025 bytes"))
    );
}

#[test]
fn the_restart_delay_covers_what_a_node_may_have_forgotten() {
    let derived = |config: Config| config.check().unwrap().restart_delay;
    let short = || config().ttl(ms(1000));
    assert_eq!(derived(short().max_ttl(ms(1000))), ms(3000));
    assert_eq!(
        derived(short().max_ttl(ms(1000)).drift_factor(0.0)),
        ms(2000)
    );
    assert_eq!(
        derived(short().max_ttl(ms(1001)).drift_factor(0.0)),
        ms(3000)
    );

    let delay = |millis| short().max_ttl(ms(1000)).restart_delay(ms(millis));
    assert_eq!(derived(delay(2010)), ms(2010));
    let error = refused(delay(2009));
    assert_eq!(error.setting(), "restart_delay");
    assert!(error.problem().contains("2010ms"), "{error}");
    assert_eq!(derived(delay(1).restart_guard(RestartGuard::Off)), ms(1));
}

#[test]
fn the_list_has_one_to_thirty_two_nodes() {
    let many = |count| Config::new((0..count).map(|n| format!("redis://n{n}")));
    for count in [1, 2, 4, 32] {
        assert_eq!(many(count).check().unwrap().nodes.len(), count);
    }
    for count in [0, 33] {
        assert_eq!(refused(many(count)).setting(), "nodes");
    }
    assert!(
        refused(Config::default())
            .remedy()
            .contains("QUORUMLOCK_NODES")
    );
}

#[test]
fn one_server_stands_in_the_list_once() {
    for (first, second) in [
        ("redis://a", "redis://a"),
        ("redis://a", "redis://A:6379"),
        ("redis://a", "redis://u:p@a:6379/3"),
        ("redis://localhost:7001", "redis://127.0.0.1:7001"),
        ("redis://[::1]:7001", "redis://localhost:7001/1"),
        ("unix:///s", "unix:///s?db=1&pass=x"),
    ] {
        let error = refused(Config::new([first, "redis://other", second]));
        assert_eq!(error.setting(), "nodes[2]");
        assert!(
            error.problem().contains("same server as nodes[0]"),
            "{error}"
        );
        assert!(!error.to_string().contains("u:p"), "{error}");
    }
    assert!(Config::new(["redis://a:1", "redis://a:2"]).check().is_ok());
}

#[test]
fn a_node_is_named_by_its_place_and_its_problem() {
    let error = refused(config().node(Node::url("redis://user:hunter2@h:x")));
    assert_eq!(error.setting(), "nodes[3]");
    assert_eq!(error.value(), None);
    assert!(
        error
            .to_string()
            .starts_with("nodes[3] (set in code): the port is not a number from 1 to 65535; ")
    );
    assert!(!error.to_string().contains("hunter2"));
}
