//! Contention, outage and set-up stay apart in errors.
//!
//! F05 (a to e), quick.

use std::time::Instant;

use quorumlock::{AcquireError, FaultKind, Vote};

use crate::common::{
    MS, SLACK, Said, TTL, client, client_of, count, key, last_round, let_rival_hold, said,
    settings, stored,
};
use crate::support::{Cluster, eventually};

/// The text alone must do: it names the lock, and no token.
fn assert_readable(error: &AcquireError, begins: &str, tokens: &[String]) {
    let text = error.to_string();
    assert!(text.starts_with(begins), "{text}");
    assert!(text.contains("\"job\""), "{text}");
    for token in tokens {
        let told = [text.as_str(), &format!("{error:?}")]
            .iter()
            .any(|text| text.contains(token.as_str()));
        assert!(!told, "an owner token in {text}");
    }
    assert_eq!(last_round(error).resource(), b"job");
    assert_eq!(last_round(error).needed(), 3);
    assert_eq!(last_round(error).votes().len(), 5);
}

/// Every value under the lock's key on any node.
fn tokens(cluster: &Cluster) -> Vec<String> {
    let owners = cluster.probe().owners(key("job")).into_iter().flatten();
    owners
        .map(|(value, _)| String::from_utf8(value).expect("a token is text"))
        .collect()
}

#[tokio::test]
async fn a_lock_that_a_rival_holds_is_contended() {
    let cluster = Cluster::start(5);
    let held = client_of(&cluster).lock("job").acquire().await;
    let held = held.expect("a free lock");
    let tokens = tokens(&cluster);
    assert!(tokens.len() >= 3);

    let error = client_of(&cluster).lock("job").try_acquire().await;
    let error = error.expect_err("somebody holds it");
    assert!(matches!(error, AcquireError::Contended(_)), "{error}");
    assert!(error.is_retryable());
    assert_readable(&error, "lock \"job\" is held or contended", &tokens);
    assert!(count(&said(&error), Said::Held) >= 3, "{error}");
    for vote in last_round(&error).votes() {
        if let Vote::Held { left } = vote.vote {
            assert!(left.is_some_and(|left| left <= TTL), "{vote:?}");
        }
    }
    assert!(held.is_held());
}

#[tokio::test]
async fn a_wait_that_passes_is_contended_and_says_how_long_it_was() {
    let cluster = Cluster::start(5);
    let_rival_hold(&cluster, &[0, 1, 2, 3, 4], "job");
    let lock = client_of(&cluster).lock("job").wait(300 * MS);
    let error = lock.acquire().await.expect_err("somebody holds it");
    assert!(matches!(error, AcquireError::Contended(_)), "{error}");
    let round = last_round(&error);
    assert!(round.waited() >= 300 * MS, "{error}");
    assert!(round.rounds() >= 2, "{error}");
    let rounds = format!("{} rounds in ", round.rounds());
    assert!(error.to_string().contains(&rounds), "{error}");
}

#[tokio::test]
async fn without_a_quorum_of_nodes_a_lock_is_unavailable() {
    let cluster = Cluster::start(5);
    (0..3).for_each(|node| cluster[node].kill());
    let error = client_of(&cluster).lock("job").try_acquire().await;
    let error = error.expect_err("no quorum");
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    assert!(error.is_retryable());
    assert_readable(&error, "no quorum for lock \"job\"", &tokens(&cluster));
    let refused = Said::Failed(FaultKind::ConnectionRefused);
    assert_eq!(said(&error)[..3], [refused; 3]);
    let first = cluster[0].url().replace("redis://", "");
    let named = format!("{first}: connection refused");
    assert!(error.to_string().contains(&named), "{error}");
    let probe = cluster.probe();
    assert!(eventually(SLACK, || stored(&probe, "job") == 0));
}

#[tokio::test]
async fn two_grants_two_refusals_and_a_dead_node_are_told_as_such() {
    let cluster = Cluster::start(5);
    let_rival_hold(&cluster, &[0, 1], "job");
    cluster[2].kill();
    let client = client_of(&cluster);
    let mut exact = false;
    for _ in 0..50 {
        let error = client.lock("job").try_acquire().await;
        let error = error.expect_err("no quorum is free");
        assert!(matches!(error, AcquireError::Contended(_)), "{error}");
        assert!(error.is_retryable());
        assert_readable(&error, "lock \"job\" is held or contended", &[]);
        let said = said(&error);
        let dead = Said::Failed(FaultKind::ConnectionRefused);
        assert_eq!(said[..3], [Said::Held, Said::Held, dead], "{error}");
        let granted = count(&said, Said::Granted);
        assert_eq!(granted + count(&said, Said::Nothing), 2, "{error}");
        // The decision may fall before the grants are in.
        if granted == 2 {
            exact = true;
            break;
        }
    }
    assert!(exact, "both grants were never waited for in 50 rounds");
}

#[tokio::test]
async fn missing_credentials_reject_the_lock_at_once() {
    let closed = |node, server: crate::support::ServerBuilder| match node {
        0..3 => server.args(["--requirepass", "a-servers-secret"]),
        _ => server,
    };
    let cluster = Cluster::with(5, closed);
    // Without a password, and with one that is wrong.
    for user in ["", ":not-the-one@"] {
        let urls = cluster.urls().into_iter().enumerate().map(|(node, url)| {
            let url = url.replace("redis://", &format!("redis://{user}"));
            if node < 3 { url } else { url.replace(user, "") }
        });
        let lock = client(settings(urls)).lock("job").wait(60_000 * MS);
        let begin = Instant::now();
        let error = lock.acquire().await.expect_err("no way in");
        assert!(begin.elapsed() < 10_000 * MS, "the wait was burnt: {error}");
        assert!(matches!(error, AcquireError::Rejected(_)), "{error}");
        assert!(!error.is_retryable());
        assert_eq!(said(&error)[..3], [Said::Failed(FaultKind::Auth); 3]);
        assert_readable(&error, "the nodes reject lock \"job\"", &[]);
        let text = format!("{error} {error:?}");
        assert!(text.contains("authentication failed"), "{text}");
        assert!(!text.contains("not-the-one"), "{text}");
    }
}
