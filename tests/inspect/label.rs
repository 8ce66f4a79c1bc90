//! Labels beside locks, and locks that are left to run out.

use std::time::Duration;

use quorumlock::{ExtendError, Released};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_secs(10);

fn label_keys(cluster: &Cluster) -> usize {
    let keys = cluster.probe().all_keys().into_iter();
    keys.filter(|(_, key)| key.ends_with(b"}:label")).count()
}

#[tokio::test]
async fn a_label_is_shown_while_its_hold_lasts_and_never_for_another() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    let guard = take(&client, "job").await;
    let label = client.label(&guard).await.expect("it is held");
    assert!(label.write("web-3\u{1b}[2J").await >= 3);
    let status = client.status("job").await.expect("a name");
    assert_eq!(status.label(), Some("web-3\u{1b}[2J"));
    assert!(
        !status.to_string().contains('\u{1b}'),
        "it steers no terminal"
    );
    let listing = client.list("").await;
    assert_eq!(listing.locks()[0].label(), Some("web-3\u{1b}[2J"));
    let left = cluster[0].probe().pttl(format!("{}:label", key("job")));
    assert!(left > 0, "a label expires by itself");

    // The label stays behind, and the next holder is not taken for the first.
    assert_eq!(guard.release().await.expect("released"), Released::InTime);
    let other = take(&client, "job").await;
    assert!(label_keys(&cluster) >= 3);
    let status = client.status("job").await.expect("a name");
    assert!(status.is_held() && status.label().is_none(), "{status}");
    // Nor can the first write beside the second's lock.
    assert_eq!(label.write("still me").await, 0);
    assert!(label.remove().await >= 3);
    assert_eq!(label_keys(&cluster), 0);

    // Somebody else's label is not taken away.
    let theirs = client.label(&other).await.expect("it is held");
    assert!(theirs.write("web-4").await >= 3);
    assert_eq!(label.remove().await, 0);
    assert!(format!("{theirs:?}").ends_with("{ .. }"));
}

#[tokio::test]
async fn a_lock_that_is_left_stays_for_so_long_and_no_longer() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    for (name, left) in [
        ("longer", TTL - Duration::from_nanos(1)),
        ("shorter", TTL / 3),
    ] {
        let guard = take(&client, name).await;
        tokio::time::sleep(50 * MS).await;
        let nodes = client.leave(guard, left, "done").await.expect("held");
        assert!(nodes >= 3, "{nodes}");
        let status = client.status(name).await.expect("a name");
        assert_eq!(status.label(), Some("done"));
        let told = status.left().expect("it is held");
        assert!(told <= left && told > left - 1000 * MS, "{name}: {told:?}");
    }
}

#[tokio::test]
async fn a_lock_cannot_be_left_for_longer_than_max_ttl() {
    let cluster = Cluster::start(3);
    let client = client(&cluster, TTL);
    let guard = take(&client, "job").await;
    let error = client.leave(guard, TTL * 2, "").await.expect_err("a bound");
    assert!(matches!(error, ExtendError::Invalid(_)), "{error}");
}
