//! F15: on a server that checks slots, the lock and its counter lie in one, whatever the name.

use std::time::Duration;

use quorumlock::{Client, Config};

use crate::support::{Server, eventually};

const NAMES: [&str; 7] = ["job", "job{a}", "a}b{c", "{}", "{x}{y}", "é{", "y{a}"];

/// A cluster of one node that owns all slots.
fn slotted() -> Server {
    let server = Server::builder().args(["--cluster-enabled", "yes"]).start();
    let mut probe = server.probe();
    probe.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let ready = eventually(Duration::from_secs(10), || {
        let info = probe.command(&["CLUSTER", "INFO"]).text();
        info.is_some_and(|text| text.contains("cluster_state:ok"))
    });
    assert!(ready, "{}", server.log());
    server
}

#[tokio::test]
async fn lock_and_counter_share_a_slot_whatever_braces_the_name_has() {
    let servers: Vec<Server> = (0..3).map(|_| slotted()).collect();
    for prefix in ["", "p:", "{p}", "}{"] {
        let config = Config::new(servers.iter().map(Server::url)).prefix(prefix);
        let client = Client::with_config(config).unwrap();
        for name in NAMES {
            let guard = client.lock(name).acquire().await;
            let guard = guard.unwrap_or_else(|error| panic!("{prefix} {name}: {error}"));
            assert!(!guard.fencing_token().is_none());
            guard.extend().await.unwrap();
            guard.release().await.unwrap();
        }
        let mut held = Vec::new();
        for name in NAMES {
            held.push(
                client
                    .lock(name)
                    .try_acquire()
                    .await
                    .expect("all names are free"),
            );
        }
        // All at once, so no two names share a key.
        assert_eq!(held.len(), NAMES.len());
    }
    let mut probe = servers[0].probe();
    for counter in probe.keys("*:fence") {
        let lock = counter.strip_suffix(b":fence").unwrap();
        let slot = |probe: &mut crate::support::Probe, key: &[u8]| {
            probe
                .command(&[b"CLUSTER".as_slice(), b"KEYSLOT", key])
                .int()
                .unwrap()
        };
        assert_eq!(slot(&mut probe, &counter), slot(&mut probe, lock));
    }
}
