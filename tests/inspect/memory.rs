//! On nodes in memory, without a runtime.

use std::time::Duration;

use futures::executor::block_on;
use quorumlock::testing::Cluster;
use quorumlock::{Client, FaultKind, KeyState, LockState, Loss, OwnerId, Status};

fn status(client: &Client) -> Status {
    block_on(client.status("job")).expect("a name")
}

#[test]
fn an_in_memory_client_is_looked_at_like_any_other() {
    let client = Client::in_memory(3);
    assert!(status(&client).is_free());
    let guard = block_on(client.lock("job").acquire()).expect("free");
    let status = status(&client);
    assert!(status.is_held(), "{status}");
    assert!(status.fencing_counter() >= Some(guard.fencing_token()));
    assert!(
        status
            .left()
            .is_some_and(|left| left <= Duration::from_secs(10))
    );
    let listing = block_on(client.list(""));
    let names: Vec<_> = listing.locks().iter().map(|lock| lock.resource()).collect();
    assert_eq!(names, [b"job"], "neither marker nor counter");
    assert!(listing.is_complete() && listing.locks()[0].is_held());
    assert!(block_on(client.list("x")).locks().is_empty());
}

#[test]
fn nodes_that_fail_are_told_each_with_its_fault() {
    let cluster = Cluster::new(5);
    let client = cluster.client();
    cluster.node(0).hang();
    cluster.node(1).refuse();
    cluster.node(2).fail_with(FaultKind::Loading);
    let unknown = status(&client);
    assert_eq!(*unknown.state(), LockState::Unknown, "{unknown}");
    let kind = |node: usize| match unknown.nodes()[node].state() {
        KeyState::Failed(fault) => Some(fault.kind()),
        _ => None,
    };
    let kinds = [0, 1, 2, 3].map(kind);
    let [hung, refusing] = [FaultKind::Timeout, FaultKind::ConnectionRefused];
    assert_eq!(
        kinds,
        [Some(hung), Some(refusing), Some(FaultKind::Loading), None]
    );
    let listing = block_on(client.list(""));
    assert_eq!(
        (listing.is_complete(), listing.faults().count()),
        (false, 3)
    );
    (0..3).for_each(|node| cluster.node(node).heal());
    cluster.node(4).delay(Duration::from_secs(1));
    let status = status(&client);
    assert!(status.is_free(), "{status}");
    assert!(matches!(status.nodes()[4].state(), KeyState::Failed(_)));
}

#[test]
fn a_forced_release_is_heard_and_leaves_the_tokens_growing() {
    let cluster = Cluster::new(5);
    let config = cluster.config().ttl(Duration::from_millis(300));
    let holder = cluster.client_with(config).expect("settings");
    let operator = cluster.client();
    let guard = block_on(holder.lock("job").acquire()).expect("free");
    let before: Option<OwnerId> = status(&operator).owner();
    let freed = block_on(operator.force_release("job")).expect("a quorum");
    assert_eq!(freed.owners().first().map(|first| first.0), before);
    assert_eq!(block_on(guard.lost()), Loss::Deleted);
    let next = block_on(operator.lock("job").acquire()).expect("free");
    assert!(next.fencing_token() > guard.fencing_token());
    assert_ne!(status(&operator).owner(), before);
}
