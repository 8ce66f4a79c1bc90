//! Names of locks, and what else may stand under them.
//!
//! F36, quick.

use quorumlock::{AcquireError, Client, FaultKind};

use crate::common::{MS, SLACK, Said, client, client_of, settings};
use crate::support::{Cluster, Probe, Reply, eventually};

/// Puts foreign data under `key` on every node: a string, then a hash.
fn put_foreign(cluster: &Cluster, key: &str, hash: bool) {
    for server in cluster.iter() {
        let mut probe = server.probe();
        if hash {
            let reply = probe.command(&["HSET", key, "field", "data"]);
            assert_eq!(reply, Reply::Int(1));
        } else {
            probe.set_raw(key, "data", None);
        }
    }
}

fn is_unharmed(probe: &mut Probe, key: &str, hash: bool) -> bool {
    let data = match hash {
        true => probe.command(&["HGET", key, "field"]),
        false => probe.command(&["GET", key]),
    };
    data == Reply::Bulk(b"data".to_vec()) && probe.pttl(key) == -1
}

#[tokio::test]
async fn foreign_data_under_the_key_is_told_and_left_alone() {
    for hash in [false, true] {
        let cluster = Cluster::start(5);
        put_foreign(&cluster, "{app}", hash);
        let bare = client(settings(cluster.urls()).prefix("").wait(60_000 * MS));
        let begin = std::time::Instant::now();
        for outcome in [
            bare.lock("app").acquire().await,
            bare.lock("app").try_acquire().await,
        ] {
            let error = outcome.expect_err("the key is taken");
            assert!(matches!(error, AcquireError::Rejected(_)), "{error}");
            let votes = crate::common::said(&error);
            let foreign = Said::Failed(FaultKind::NotALock);
            assert!(crate::common::count(&votes, foreign) >= 3, "{error}");
            assert!(error.to_string().contains("not a lock"), "{error}");
        }
        assert!(begin.elapsed() < 10_000 * MS, "the wait was burnt");
        drop(bare);
        for server in cluster.iter() {
            assert!(is_unharmed(&mut server.probe(), "{app}", hash));
        }
    }
}

#[tokio::test]
async fn foreign_data_on_a_minority_of_nodes_is_left_alone_and_costs_only_their_votes() {
    let cluster = Cluster::start(5);
    for node in [0, 1] {
        cluster[node].probe().set_raw("{app}", "data", None);
    }
    let bare = client(settings(cluster.urls()).prefix(""));
    let guard = bare.lock("app").acquire().await.expect("three are free");
    guard.extend().await.expect("three extend");
    assert!(guard.release().await.expect("three release").in_time());
    for node in [0, 1] {
        assert!(is_unharmed(&mut cluster[node].probe(), "{app}", false));
    }
}

#[tokio::test]
async fn the_default_prefix_keeps_clear_of_data_under_the_same_name() {
    let cluster = Cluster::start(5);
    put_foreign(&cluster, "app", true);
    let guard = client_of(&cluster).lock("app").acquire().await;
    let guard = guard.expect("the lock has a key of its own");
    assert!(guard.release().await.expect("a quorum").in_time());
    assert!(is_unharmed(&mut cluster[0].probe(), "app", true));
}

/// Holds the lock on each name at the same time: none is another's.
async fn all_differ(client: &Client, names: &[&[u8]]) {
    let mut guards = Vec::new();
    for name in names {
        let guard = client.lock(name).try_acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("{}: {error}", name.escape_ascii()));
        assert_eq!(guard.resource(), *name);
        let again = client.lock(name).try_acquire().await;
        let error = again.expect_err("held by us");
        assert!(matches!(error, AcquireError::Contended(_)), "{error}");
        guards.push(guard);
    }
    for guard in guards {
        assert!(guard.release().await.expect("a quorum").in_time());
    }
}

const ODD_NAMES: [&[u8]; 16] = [
    b"A",
    b"a",
    b"a b",
    b" a",
    b"a\n",
    // The same letter composed, and as a letter with an accent behind it.
    "\u{e9}".as_bytes(),
    "e\u{301}".as_bytes(),
    b"a\0",
    b"a\0\0",
    b"\xff",
    b"\xff\xfe",
    b"*",
    b"a:fence",
    b"{a}",
    b"%7Ba%7D",
    &[b'x'; 10_000],
];

#[tokio::test]
async fn odd_names_are_locks_of_their_own() {
    let cluster = Cluster::start(3);
    for prefix in ["quorumlock:", ""] {
        let client = client(settings(cluster.urls()).prefix(prefix));
        all_differ(&client, &ODD_NAMES).await;
    }
    let probe = cluster.probe();
    // The marker and the fencing counters outlive their locks.
    let stays = |key: &[u8]| key.ends_with(b"since") || key.ends_with(b"}:fence");
    let mut left = probe.all_keys();
    left.retain(|(_, key)| !stays(key));
    assert_eq!(left, [], "left behind");
}

#[tokio::test]
async fn a_name_stands_in_its_key_byte_for_byte() {
    let cluster = Cluster::start(3);
    let client = client_of(&cluster);
    for name in ODD_NAMES.iter().filter(|name| !name.contains(&b'%')) {
        let guard = client.lock(name).acquire().await.expect("a free lock");
        let text = name.iter().flat_map(|byte| match byte {
            b'{' => b"%7B".to_vec(),
            b'}' => b"%7D".to_vec(),
            other => vec![*other],
        });
        let key: Vec<u8> = [&b"quorumlock:{"[..], &text.collect::<Vec<_>>(), b"}"].concat();
        let stored = || cluster.probe().owners(&key).iter().flatten().count() >= 2;
        assert!(eventually(SLACK, stored), "{}", key.escape_ascii());
        drop(guard);
    }
}

#[tokio::test]
async fn prefixes_and_names_do_not_run_together() {
    let cluster = Cluster::start(3);
    let mut guards = Vec::new();
    // Each pair reads alike once prefix and name are put together.
    for (prefix, name) in [("x", ":y"), ("x:", "y"), ("", "x:y"), ("x:{", "}y")] {
        let client = client(settings(cluster.urls()).prefix(prefix));
        let guard = client.lock(name).try_acquire().await;
        guards.push(guard.unwrap_or_else(|error| panic!("{prefix:?} {name:?}: {error}")));
    }
    assert!(guards.iter().all(quorumlock::Guard::is_held));
}

#[tokio::test]
async fn two_environments_are_kept_apart_by_their_prefixes() {
    let cluster = Cluster::start(3);
    let of = |prefix: &str| client(settings(cluster.urls()).prefix(prefix));
    let guard = of("live:").lock("job").acquire().await.expect("free");
    let other = of("test:").lock("job").try_acquire().await;
    assert!(other.is_ok_and(|other| other.is_held()));
    let same = of("live:").lock("job").try_acquire().await;
    assert!(matches!(same, Err(AcquireError::Contended(_))));
    assert!(guard.is_held());
}
