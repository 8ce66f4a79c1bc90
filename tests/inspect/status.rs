//! Who holds a lock.

use std::time::Instant;

use quorumlock::{Client, Config, FaultKind, KeyState, LockState, NodeKey, OwnerId};

use crate::helpers::*;
use crate::support::*;

const TTL: std::time::Duration = std::time::Duration::from_secs(10);

fn owner_on(node: &NodeKey) -> Option<OwnerId> {
    match node.state() {
        KeyState::Lock { owner, left } => {
            let left = left.expect("a lock expires");
            assert!(left <= TTL && left > TTL / 2, "{left:?}");
            Some(*owner)
        }
        _ => None,
    }
}

fn fault_on(node: &NodeKey) -> Option<FaultKind> {
    match node.state() {
        KeyState::Failed(fault) => Some(fault.kind()),
        _ => None,
    }
}

#[test]
fn a_look_at_new_nodes_says_free_and_leaves_nothing_behind() {
    let cluster = Cluster::start(3);
    let client = client(&cluster, TTL);
    let look = async {
        let status = client.status("job").await.expect("a name");
        (status, client.list("").await)
    };
    // No runtime of tokio's.
    let (status, listing) = futures::executor::block_on(look);
    assert!(status.is_free() && !status.is_held(), "{status}");
    assert_eq!((status.fencing_counter(), status.left()), (None, None));
    assert_eq!(status.needed(), 2);
    assert!(listing.locks().is_empty() && listing.is_complete());
    for server in cluster.iter() {
        // Not even the marker, without which this would count as a new set.
        assert_eq!(server.probe().keys("*"), Vec::<Vec<u8>>::new());
        assert_eq!(server.probe().commandstats("eval"), 0);
    }
}

#[tokio::test]
async fn a_held_lock_shows_its_owner_on_each_node_and_a_node_that_is_down() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    let guard = take(&client, "job").await;
    let probe = cluster.probe();
    assert!(eventually_async(SLACK * 5, || copies(&probe, &key("job")) == 5).await);
    let token = probe.holder_by_quorum(key("job")).expect("a holder");
    let token = String::from_utf8(token).expect("digits");
    cluster[1].kill();

    let status = client.status("job").await.expect("a name");
    let owner = status.owner().expect("an owner");
    assert_eq!(owner.to_string(), token[..8]);
    let left = status.left().expect("it expires");
    assert!(left <= TTL && left > TTL / 2, "{left:?}");
    assert!(matches!(status.state(), LockState::Held { nodes: 4, .. }));
    // The last number that the grant reserved, of 65.
    let counter = u64::from(status.fencing_counter().expect("a counter"));
    assert_eq!(counter, u64::from(guard.fencing_token()) + 64);
    let owners: Vec<_> = status.nodes().iter().map(owner_on).collect();
    let here = Some(owner);
    assert_eq!(owners, [here, None, here, here, here], "{status}");
    let fault = fault_on(&status.nodes()[1]);
    assert_eq!(fault, Some(FaultKind::ConnectionRefused), "{status}");
    assert!(
        status.nodes()[1]
            .node()
            .ends_with(&cluster[1].port().to_string())
    );
    // The secret is nowhere, whole or nearly so.
    for text in [
        format!("{status}"),
        format!("{status:?}"),
        format!("{status:#?}"),
    ] {
        assert!(text.contains(&token[..8]) && !text.contains(&token[..9]));
    }
}

#[tokio::test]
async fn without_a_quorum_of_answers_it_is_unknown_and_not_free() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    for node in 0..3 {
        cluster[node].pause();
    }
    let begin = Instant::now();
    let status = client.status("job").await.expect("a name");
    let took = begin.elapsed();
    assert_eq!(*status.state(), LockState::Unknown, "{status}");
    assert!(!status.is_free() && !status.is_held());
    for node in 0..3 {
        assert_eq!(fault_on(&status.nodes()[node]), Some(FaultKind::Timeout));
    }
    assert_eq!(*status.nodes()[3].state(), KeyState::Absent);
    // All at once, and connecting counts.
    let limit = node_timeout(TTL);
    assert!(took >= limit && took < limit + SLACK * 2, "{took:?}");
    for node in 0..3 {
        cluster[node].resume();
    }
}

#[tokio::test]
async fn contenders_without_a_quorum_and_foreign_data_are_a_split() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    for (node, owner) in ["ab", "ab", "cd"].into_iter().enumerate() {
        let mut probe = cluster[node].probe();
        probe.set_raw(key("job"), owner.repeat(20), Some(TTL));
    }
    cluster[3].probe().command(&["RPUSH", &key("job"), "list"]);
    cluster[4].probe().set_raw(key("job"), "text", None);
    let status = client.status("job").await.expect("a name");
    assert_eq!(*status.state(), LockState::Split, "{status}");
    let owners: Vec<_> = status.nodes().iter().filter_map(owner_on).collect();
    assert_eq!(owners[0], owners[1]);
    assert_ne!(owners[0], owners[2]);
    for node in 3..5 {
        assert_eq!(*status.nodes()[node].state(), KeyState::Foreign, "{status}");
    }
    let text = status.to_string();
    assert!(
        text.contains("abababab…") && text.contains("foreign"),
        "{text}"
    );
}

#[tokio::test]
async fn the_fingerprint_tells_lists_apart_and_not_their_order() {
    let of = async |urls: &[&str]| {
        let config = Config::new(urls.iter().copied()).node_timeout(60 * MS);
        let status = open(config).status("job").await.expect("a name");
        status.fingerprint().to_owned()
    };
    let one = of(&["redis://127.0.0.1:1", "redis://u:secret@127.0.0.1:2"]).await;
    let turned = of(&["redis://127.0.0.1:2", "redis://127.0.0.1:1"]).await;
    let other = of(&["redis://127.0.0.1:1", "redis://127.0.0.1:3"]).await;
    assert_eq!((one.len(), &one), (8, &turned));
    assert_ne!(one, other);
    // printf '127.0.0.1:1\n127.0.0.1:2\n' | sha1sum
    assert_eq!(one, FINGERPRINT);
}

const FINGERPRINT: &str = "196c367d";

#[tokio::test]
async fn a_name_that_no_lock_can_have_is_an_error() {
    let client = Client::open(["redis://127.0.0.1:1"]).expect("a client");
    assert!(client.status("").await.is_err());
    assert!(client.status([b'x'; 70_000]).await.is_err());
    assert!(client.force_release("").await.is_err());
}
