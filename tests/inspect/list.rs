//! Which locks there are.

use quorumlock::{Client, FaultKind, Listing, LockState, Node};

use crate::helpers::*;
use crate::support::*;

const TTL: std::time::Duration = std::time::Duration::from_secs(10);

fn names(listing: &Listing) -> Vec<Vec<u8>> {
    let locks = listing.locks().iter();
    locks.map(|lock| lock.resource().to_vec()).collect()
}

/// Puts a lock of this owner on these nodes.
fn put(cluster: &Cluster, nodes: &[usize], key: &str, owner: &str) {
    for &node in nodes {
        let mut probe = cluster[node].probe();
        probe.set_raw(key, owner.repeat(20), Some(TTL));
    }
}

/// F15, and whatever else may stand in a name.
const NAMES: [&[u8]; 14] = [
    b"job",
    b"job{a}",
    b"a}b{c",
    b"{}",
    b"{x}{y}",
    "é{".as_bytes(),
    b"%7B",
    b"100%",
    b"*",
    b"[a-z]?\\",
    b"a:fence",
    b"a\n\0",
    b"\xff\xfe",
    b" ",
];

/// Holds every name at once, and finds each in the list and by itself.
async fn names_come_back(urls: &[String], prefix: &str) {
    let client = open(settings(urls.to_vec(), TTL).prefix(prefix));
    let mut guards = Vec::new();
    for name in NAMES {
        guards.push(client.lock(name).acquire().await.expect("free"));
    }
    let mut expected = NAMES.map(<[u8]>::to_vec);
    expected.sort();
    let listing = client.list("").await;
    assert_eq!(names(&listing), expected, "{prefix:?}\n{listing}");
    assert!(listing.held().count() == NAMES.len() && listing.is_complete());
    for name in NAMES {
        let status = client.status(name).await.expect("a name");
        assert_eq!(status.resource(), name);
        assert!(status.is_held(), "{status}");
        let token = guards.iter().find(|guard| guard.resource() == name);
        let token = token.map(quorumlock::Guard::fencing_token);
        assert!(status.fencing_counter() >= token, "{status}");
        let under = names(&client.list(name).await);
        let starts = |other: &&Vec<u8>| other.starts_with(name);
        let expected: Vec<_> = expected.iter().filter(starts).cloned().collect();
        assert_eq!(under, expected, "{}", name.escape_ascii());
    }
    // The printed form has the names, too: text as it stands, anything else escaped.
    let text = listing.to_string();
    assert!(
        text.contains("\n\"job{a}\" ") && text.contains("\n\"é{\" "),
        "{text}"
    );
    assert!(text.contains("\n\"\\xff\\xfe\" "), "{text}");
    for guard in guards {
        let _ = guard.release().await;
    }
}

#[tokio::test]
async fn names_come_back_byte_for_byte() {
    let cluster = Cluster::start(3);
    for prefix in ["quorumlock:", "", "{p}*:[x]\\"] {
        names_come_back(&cluster.urls(), prefix).await;
    }
}

#[tokio::test]
async fn names_come_back_from_servers_that_check_slots() {
    let cluster = Cluster::with(1, |_, server| server.args(["--cluster-enabled", "yes"]));
    for server in cluster.iter() {
        let mut probe = server.probe();
        probe.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        let ready = eventually_async(std::time::Duration::from_secs(10), || {
            let info = probe.command(&["CLUSTER", "INFO"]).text();
            info.is_some_and(|text| text.contains("cluster_state:ok"))
        });
        assert!(ready.await, "{}", server.log());
    }
    names_come_back(&cluster.urls(), "{p}").await;
    let client = open(settings(cluster.urls(), TTL).prefix("{p}"));
    let guard = client.lock("}x{").acquire().await.expect("free");
    let freed = client.force_release("}x{").await.expect("no cross-slot");
    assert!(freed.was_held() && guard.is_held(), "{freed}");
}

#[tokio::test]
async fn what_is_no_lock_is_left_out_and_servers_are_asked_in_small_steps() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    for server in cluster.iter() {
        let fill = "for n = 1, 20000 do redis.call('SET', 'other:' .. n, n) end";
        server.probe().command(&["EVAL", fill, "0"]);
        for foreign in ["quorumlock:{}", "quorumlock:{a{b}", "quorumlock:{text}"] {
            server.probe().set_raw(foreign, "data", None);
        }
        let label = "quorumlock:{job}:label";
        server.probe().set_raw(label, "ab".repeat(20), None);
    }
    let _guard = take(&client, "job").await;
    put(&cluster, &[0, 1, 2], &key("held"), "ab");
    put(&cluster, &[0, 1], &key("split"), "ab");
    put(&cluster, &[2, 3], &key("split"), "cd");
    put(&cluster, &[4], &key("left over"), "ab");

    let listing = client.list("").await;
    assert!(listing.is_complete(), "{listing}");
    let state = |name: &str| {
        let mut locks = listing.locks().iter();
        let lock = locks.find(|lock| lock.resource() == name.as_bytes())?;
        Some((lock.state().clone(), lock.copies()))
    };
    assert_eq!(
        names(&listing),
        [&b"held"[..], b"job", b"split"],
        "{listing}"
    );
    assert!(matches!(
        state("held"),
        Some((LockState::Held { nodes: 3, left: Some(left), .. }, 3)) if left <= TTL
    ));
    assert_eq!(state("split"), Some((LockState::Split, 4)));
    let mut probe = cluster[0].probe();
    assert_eq!(probe.commandstats("keys"), 0);
    // The probe has not scanned this server.
    assert!(probe.commandstats("scan") >= 20);
}

#[tokio::test]
async fn a_list_is_complete_as_long_as_every_quorum_has_a_node_in_it() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    put(&cluster, &[0, 1, 2, 3, 4], &key("job"), "ab");
    cluster[0].kill();
    cluster[1].pause();
    let listing = client.list("jo").await;
    assert!(listing.is_complete(), "{listing}");
    assert_eq!(listing.held().count(), 1, "{listing}");
    let faults: Vec<_> = listing.faults().map(|(_, fault)| fault.kind()).collect();
    let expected = [FaultKind::ConnectionRefused, FaultKind::Timeout];
    assert_eq!(faults, expected, "{listing}");

    cluster[2].kill();
    let listing = client.list("jo").await;
    assert!(!listing.is_complete(), "{listing}");
    assert_eq!(*listing.locks()[0].state(), LockState::Unknown, "{listing}");
    assert!(listing.to_string().contains("INCOMPLETE"), "{listing}");
    cluster[1].resume();
}

#[tokio::test]
async fn more_locks_than_fit_are_told() {
    let cluster = Cluster::start(1);
    let client = open(patient(cluster.urls(), TTL));
    let fill = "for n = 1, 12000 do \
                redis.call('SET', 'quorumlock:{' .. n .. '}', string.rep('ab', 20), 'PX', 60000) end";
    cluster[0].probe().command(&["EVAL", fill, "0"]);
    let listing = client.list("").await;
    assert_eq!(listing.locks().len(), 10_000);
    assert!(!listing.is_complete() && listing.held().count() == 10_000);
    let few = client.list("11").await;
    assert_eq!(
        few.locks().len(),
        1 + 10 + 100 + 1_000,
        "11, 11x, 11xx, 11xxx"
    );
    assert!(few.is_complete());
}

#[tokio::test]
async fn only_a_list_needs_more_permissions_than_a_lock() {
    let cluster = Cluster::start(1);
    let rules = "~quorumlock:* -@all +eval +evalsha +set +get +del +pttl +pexpire +time";
    let mut user = vec!["ACL", "SETUSER", "locker", "on", ">pw"];
    user.extend(rules.split(' '));
    cluster[0].probe().command(&user);
    let node = Node::url(cluster[0].url())
        .username("locker")
        .password("pw");
    let client: Client = open(settings([], TTL).node(node));
    let _guard = take(&client, "job").await;
    assert!(client.status("job").await.expect("a name").is_held());
    let listing = client.list("").await;
    let (_, fault) = listing.faults().next().expect("a fault");
    assert_eq!(fault.kind(), FaultKind::Permission, "{listing}");
    assert!(fault.to_string().contains("+scan"), "{listing}");
    assert!(!listing.is_complete());
    let freed = client.force_release("job").await.expect("no more needed");
    assert!(freed.was_held(), "{freed}");
}
