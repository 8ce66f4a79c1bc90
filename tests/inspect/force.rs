//! Freeing a lock, and what its holder hears of that.

use std::time::{Duration, Instant};

use quorumlock::{Client, ForceReleaseError, KeyState, Loss};

use crate::helpers::*;
use crate::support::*;

const TTL: Duration = Duration::from_millis(1_500);

/// Frees a held lock while `down` nodes are down, and follows both holders.
async fn freed_with(down: usize) {
    let cluster = Cluster::start(5);
    let (holder, operator) = (client(&cluster, TTL), client(&cluster, TTL));
    let guard = take(&holder, "job").await;
    let probe = cluster.probe();
    assert!(eventually_async(SLACK * 5, || copies(&probe, &key("job")) == 5).await);
    let token = probe.holder_by_quorum(key("job")).expect("a holder");
    for node in 0..down {
        cluster[node].kill();
    }

    let freed = operator.force_release("job").await.expect("a quorum");
    let begin = Instant::now();
    let (owner, count) = freed.owners()[0];
    assert_eq!(owner.to_string().as_bytes(), &token[..8]);
    assert_eq!((count, freed.deleted()), (5 - down, 5 - down));
    assert!(freed.was_held(), "{freed}");
    assert!(operator.status("job").await.expect("a name").is_free());

    // F19: within T/3 + p, and the machine's slack.
    let heard = tokio::time::timeout(TTL * 2, guard.lost()).await;
    let took = begin.elapsed();
    assert_eq!(heard, Ok(Loss::Deleted));
    assert!(took < TTL / 3 + node_timeout(TTL) + SLACK, "{took:?}");
    assert!(!guard.is_held());
    // Never again, though the holder's client lives on.
    tokio::time::sleep(TTL).await;
    assert_eq!(lock_keys(&probe), []);
    let next = take(&operator, "job").await;
    assert!(next.fencing_token() > guard.fencing_token());
}

#[tokio::test]
async fn the_holder_hears_of_it_at_its_next_extension_and_sets_nothing_again() {
    freed_with(0).await;
}

#[tokio::test]
async fn the_holder_hears_of_it_with_a_node_down() {
    freed_with(1).await;
}

#[tokio::test]
async fn foreign_data_is_left_alone_and_told() {
    let cluster = Cluster::start(3);
    let client = client(&cluster, TTL);
    let foreign = ["AB".repeat(20), "ab".repeat(21)];
    for (node, data) in foreign.iter().enumerate() {
        cluster[node].probe().set_raw(key("job"), data, None);
    }
    cluster[2].probe().command(&["HSET", &key("job"), "f", "v"]);
    let freed = client.force_release("job").await.expect("all answered");
    assert_eq!((freed.deleted(), freed.was_held()), (0, false), "{freed}");
    let foreign_on = |node: &quorumlock::NodeKey| *node.state() == KeyState::Foreign;
    assert!(freed.nodes().iter().all(foreign_on), "{freed}");
    for (node, data) in foreign.iter().enumerate() {
        let kept = cluster[node].probe().get(key("job"));
        assert_eq!(kept.as_deref(), Some(data.as_bytes()));
    }
    let hash = cluster[2].probe().command(&["HGET", &key("job"), "f"]);
    assert_eq!(hash, Reply::Bulk(b"v".to_vec()));
}

#[tokio::test]
async fn keys_and_counter_of_a_lock_are_told_apart() {
    let cluster = Cluster::start(1);
    let client = client(&cluster, TTL);
    let mut probe = cluster[0].probe();
    probe.set_raw(key("job"), "ab".repeat(20), Some(TTL));
    probe.set_raw(key("job") + ":fence", "77", None);
    probe.set_raw(key("job") + ":label", "host", None);
    probe.set_raw(key("other"), "ab".repeat(20), Some(TTL));
    let monitor = Monitor::on(cluster[0].port());
    let freed = client.force_release("job").await.expect("an answer");
    assert!(freed.was_held(), "{freed}");
    let note = || monitor.of("PUBLISH").len() == 1;
    assert!(eventually(SLACK, note), "the note goes out");
    assert_eq!(monitor.of("PUBLISH")[0].args[1], key("job").into_bytes());
    assert_eq!(probe.get(key("job")), None);
    assert_eq!(probe.get(key("job") + ":fence"), Some(b"77".to_vec()));
    assert!(probe.get(key("job") + ":label").is_some());
    assert!(probe.get(key("other")).is_some());
}

#[tokio::test]
async fn a_node_out_of_memory_lets_it_pass() {
    let cluster = Cluster::start(1);
    let client = client(&cluster, TTL);
    let mut probe = cluster[0].probe();
    probe.set_raw(key("job"), "ab".repeat(20), Some(TTL * 10));
    probe.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(probe.command(&["SET", "x", "y"]).error().is_some());
    let freed = client.force_release("job").await.expect("deleted");
    assert!(freed.was_held(), "{freed}");
    assert_eq!(probe.get(key("job")), None);
}

#[tokio::test]
async fn without_enough_answers_it_is_unconfirmed_and_says_why() {
    let cluster = Cluster::start(5);
    let client = client(&cluster, TTL);
    for node in 0..4 {
        let mut probe = cluster[node].probe();
        probe.set_raw(key("job"), "ab".repeat(20), Some(TTL * 10));
    }
    cluster[0].kill();
    cluster[1].kill();
    // Two more keys of the holder may be on the nodes that are down: it could heal these two.
    let error = client.force_release("job").await.expect_err("two of four");
    let text = error.to_string();
    assert!(matches!(error, ForceReleaseError::Unconfirmed(_)), "{text}");
    assert_eq!(error.partial().expect("its part").deleted(), 2, "{text}");
    let down = format!("127.0.0.1:{}: connection refused", cluster[0].port());
    assert!(
        text.contains("may still be held") && text.contains(&down),
        "{text}"
    );
    assert!(!text.contains("ababababa"), "{text}");
}

/// A drop before the first poll sends nothing; one behind it may have freed all, some or none.
#[tokio::test]
async fn a_dropped_call_can_be_made_again() {
    let cluster = Cluster::start(3);
    let client = client(&cluster, TTL);
    let put = || {
        for server in cluster.iter() {
            let mut probe = server.probe();
            probe.set_raw(key("job"), "ab".repeat(20), Some(TTL * 10));
        }
    };
    let probe = cluster.probe();
    put();
    drop(client.force_release("job"));
    assert_eq!(copies(&probe, &key("job")), 3);
    for micros in (0..3_000).step_by(300) {
        put();
        let limit = Duration::from_micros(micros);
        let _ = tokio::time::timeout(limit, client.force_release("job")).await;
        let again = client.force_release("job").await;
        assert!(again.is_ok(), "{micros} µs: {again:?}");
        assert_eq!(copies(&probe, &key("job")), 0, "{micros} µs");
    }
    let server = cluster.iter().next().expect("a server");
    // No connection stays behind, be it of a whole call or of a dropped one.
    let ours = || server.probe().client_list().len() <= 1 + 1;
    assert!(eventually_async(SLACK * 5, ours).await);
}

#[tokio::test]
async fn a_closed_client_can_still_look_and_free() {
    let cluster = Cluster::start(3);
    let client: Client = client(&cluster, TTL);
    let guard = take(&client, "job").await;
    std::mem::forget(guard);
    client.close().await.expect("closed");
    assert!(client.status("job").await.expect("a name").is_free());
    let freed = client.force_release("job").await;
    assert_eq!(freed.expect("nothing there").deleted(), 0);
}
