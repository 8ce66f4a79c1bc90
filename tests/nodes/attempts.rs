//! How often an acquire asks, and settings that cannot be meant.
//!
//! F13 (the limits as durations and numbers; their texts are tested with the configuration) and
//! the bad input of the settings, quick.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quorumlock::{
    AcquireError, Client, Config, ConfigError, ExtendError, Jitter, Lock, RestartGuard,
};

use crate::common::{MS, SLACK, client, last_round};
use crate::stand_in::{StandIn, urls};

/// Five nodes on which a rival holds the lock, and that count SETs.
fn held_nodes() -> Vec<StandIn> {
    let nodes = StandIn::some(5);
    nodes.iter().for_each(|node| node.let_rival_hold("job"));
    nodes
}

/// Nothing here waits for silent nodes, so their budget may be large. Without fencing the first
/// attempt is a SET.
fn config(nodes: &[StandIn]) -> Config {
    let config = Config::new(urls(nodes)).ttl(20_000 * MS);
    config.node_timeout(NODE_TIMEOUT).fencing(false)
}

const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// So many rounds were made: each asks a quorum at least, and no node twice. One that was slower
/// than the decision may find its request withdrawn before it was sent.
fn assert_rounds(nodes: &[StandIn], rounds: u32) {
    let rounds = rounds as usize;
    // Once it listens, an attempt is a script that tells others of a grant. Each has an owner
    // token of its own, and a script may have to be sent twice.
    let asks = |node: &StandIn| {
        let sent = ["SET", "EVAL", "EVALSHA"].map(|name| node.stub.of(name));
        let words = sent
            .iter()
            .flatten()
            .flat_map(|received| received.args.iter().skip(2));
        let owners: BTreeSet<_> = words.filter(|word| word.len() == 40).collect();
        owners.len()
    };
    let asked: Vec<_> = nodes.iter().map(asks).collect();
    assert!(asked.iter().all(|count| *count <= rounds), "{asked:?}");
    assert!(asked.iter().sum::<usize>() >= 3 * rounds, "{asked:?}");
}

async fn contended(lock: &Lock) -> (AcquireError, Duration) {
    let begin = Instant::now();
    let error = lock.acquire().await.expect_err("a rival holds it");
    assert!(matches!(error, AcquireError::Contended(_)), "{error}");
    (error, begin.elapsed())
}

#[tokio::test]
async fn attempts_are_what_was_asked_for_and_nothing_is_slept_after_the_last() {
    // One delay shows beyond doubt where one is slept, and where not.
    let delay = 3000 * MS;
    for attempts in [1, 2, 4] {
        let nodes = held_nodes();
        let config = config(&nodes)
            .wait_forever()
            .retry_attempts(attempts)
            .retry_delay(delay / 3)
            .retry_max_delay(delay / 3)
            .retry_jitter(Jitter::None);
        let (error, taken) = contended(&client(config).lock("job")).await;
        assert_eq!(last_round(&error).rounds(), attempts);
        assert_rounds(&nodes, attempts);
        let slept = (attempts - 1) * delay / 3;
        assert!(taken >= slept, "{attempts} attempts in {taken:?}");
        let last = nodes.iter().flat_map(|node| node.stub.of("SET"));
        let last = last.map(|set| set.at).max().expect("the last attempt");
        let after = last.elapsed();
        assert!(after < delay / 3, "{after:?} after the last attempt");
    }
}

#[tokio::test]
async fn without_a_wait_there_is_one_attempt() {
    let nodes = held_nodes();
    let lock = client(config(&nodes)).lock("job");
    let (error, taken) = contended(&lock.clone().wait(Duration::ZERO)).await;
    assert_eq!(last_round(&error).rounds(), 1);
    assert!(taken < NODE_TIMEOUT + SLACK, "{taken:?}");
    let error = lock.try_acquire().await.expect_err("a rival holds it");
    assert_eq!(last_round(&error).rounds(), 1);
    assert_rounds(&nodes, 2);
}

#[tokio::test]
async fn a_tiny_wait_makes_its_attempt_all_the_same() {
    let nodes = held_nodes();
    let lock = client(config(&nodes)).lock("job");
    let (error, _) = contended(&lock.wait(Duration::from_nanos(1))).await;
    // The deadline cuts the first delay to nothing, so a second attempt may follow at once.
    let rounds = last_round(&error).rounds();
    assert!((1..=2).contains(&rounds), "{error}");
    assert_rounds(&nodes, rounds);
}

#[tokio::test]
async fn an_acquire_ends_when_its_wait_has_passed() {
    let nodes = held_nodes();
    let wait = 4000 * MS;
    let config = config(&nodes).wait(wait).retry_delay(50 * MS);
    let (error, taken) = contended(&client(config).lock("job")).await;
    assert!(taken >= wait, "{taken:?}");
    assert!(taken < wait + NODE_TIMEOUT + SLACK, "{taken:?}");
    let rounds = last_round(&error).rounds();
    assert_rounds(&nodes, rounds);
    // Delays of 500 ms at most, so there is at least one round for each.
    assert!((4..=200).contains(&rounds), "{rounds} rounds");
}

#[tokio::test]
async fn an_acquire_without_limits_waits_until_the_rival_lets_go() {
    let nodes = held_nodes();
    let lock = client(config(&nodes).wait_forever()).lock("job");
    let task = tokio::spawn(async move { lock.acquire().await });
    tokio::time::sleep(3000 * MS).await;
    assert!(!task.is_finished());
    let begin = Instant::now();
    nodes.iter().for_each(|node| node.free("job"));
    let guard = task.await.expect("no panic").expect("it is free now");
    // The longest delay between two rounds, and a round.
    assert!(begin.elapsed() < 500 * MS + NODE_TIMEOUT + SLACK);
    assert!(guard.is_held());
}

/// The setting, what is wrong with it and what to do are there; the value where it is no secret.
fn assert_helpful(error: &ConfigError, setting: &str) {
    let text = error.to_string();
    assert_eq!(error.setting(), setting, "{text}");
    assert!(!error.problem().is_empty(), "{text}");
    assert!(!error.remedy().is_empty(), "{text}");
    for part in [setting, error.problem(), error.remedy()] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn bad_settings_are_errors_that_name_setting_value_and_remedy() {
    let good = || Config::new(["redis://a", "redis://b", "redis://c"]);
    let cases: [(Config, &str, &str); 15] = [
        (Config::new([""; 0]), "nodes", ""),
        (Config::new(["http://a"]), "nodes[0]", ""),
        (Config::new(["redis://a", "redis://"]), "nodes[1]", ""),
        (Config::new(["redis://a:0"]), "nodes[0]", ""),
        (Config::new(["redis://a:99999"]), "nodes[0]", ""),
        (good().ttl(Duration::ZERO), "ttl", "0s"),
        (good().ttl(Duration::MAX), "ttl", ""),
        (good().ttl(1500 * Duration::from_micros(1)), "ttl", "1500us"),
        // One percent and 2 ms leave nothing of 2 ms.
        (good().ttl(2 * MS), "ttl", "2ms"),
        (good().ttl(61_000 * MS), "ttl", "61s"),
        (good().node_timeout(Duration::ZERO), "node_timeout", "0s"),
        (good().node_timeout(20_000 * MS), "node_timeout", "20s"),
        (good().drift_factor(f64::NAN), "drift.factor", "NaN"),
        (good().drift_factor(-0.1), "drift.factor", "-0.1"),
        (good().retry_attempts(0), "retry.attempts", "0"),
    ];
    for (config, setting, value) in cases {
        let error = Client::with_config(config).expect_err(setting);
        assert_helpful(&error, setting);
        let text = error.to_string();
        assert!(text.contains(value), "{value:?} is not in {text:?}");
    }
}

#[tokio::test]
async fn bad_input_to_one_lock_is_told_before_anything_is_sent() {
    let nodes = StandIn::some(3);
    let config = config(&nodes).restart_guard(RestartGuard::Strict);
    let client = client(config);
    let name = "job".to_owned();
    let long = "x".repeat(64 * 1024 + 1);
    let locks = [
        (client.lock(""), "resource"),
        (client.lock(&long), "resource"),
        (client.lock(&name).ttl(Duration::ZERO), "ttl"),
        (client.lock(&name).ttl(Duration::MAX), "ttl"),
        (client.lock(&name).ttl(2 * MS), "ttl"),
        (client.lock(&name).ttl(3_600_000 * MS), "ttl"),
    ];
    for (lock, setting) in &locks {
        for outcome in [lock.acquire().await, lock.try_acquire().await] {
            match outcome {
                Err(AcquireError::Invalid(error)) => assert_helpful(&error, setting),
                other => panic!("{setting}: {other:?}"),
            }
        }
    }
    assert_eq!(nodes.iter().map(|n| n.stub.connections()).sum::<usize>(), 0);

    let guard = client.lock(&name).auto_extend(false).acquire().await;
    let guard = guard.expect("a free lock");
    let scripts = nodes[0].count("EVAL");
    match guard.extend_to(Duration::ZERO).await {
        Err(ExtendError::Invalid(error)) => assert_helpful(&error, "ttl"),
        other => panic!("{other:?}"),
    }
    assert_eq!(nodes[0].count("EVAL"), scripts);
    assert!(guard.is_held());
}
