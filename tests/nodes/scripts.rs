//! A script cache that goes away costs one more round trip, and nothing else.
//!
//! F21: quick with 5 runs, `--full` with 100.

use crate::common::{
    MS, NODE_TIMEOUT, SLACK, TTL, brisk, client, client_of, renewed, settings, stored,
};
use crate::stand_in::{StandIn, urls};
use crate::support::{Cluster, Reply, StubReply, eventually_async, pick};
use quorumlock::{Config, Guard};

fn flush(cluster: &Cluster) {
    for server in cluster.iter() {
        let reply = server.probe().command(&["SCRIPT", "FLUSH"]);
        assert_eq!(reply, Reply::Simple("OK".into()));
    }
}

/// Extends by hand until the nodes confirm it, as a keeper would.
async fn extended(guard: &Guard) -> bool {
    for _ in 0..20 {
        if guard.extend().await.is_ok() {
            return true;
        }
        tokio::time::sleep(20 * MS).await;
    }
    false
}

#[tokio::test]
async fn scripts_flushed_at_any_step_are_not_noticed() {
    let cluster = Cluster::start(5);
    let client = client_of(&cluster);
    let probe = cluster.probe();
    for run in 0..pick(5, 100) {
        for step in 0..4 {
            let flush_at = |at| (step == at || step == 3).then(|| flush(&cluster));
            flush_at(0);
            let guard = client.lock("job").acquire().await.expect("a free lock");
            flush_at(1);
            guard.extend().await.expect("an extension");
            flush_at(2);
            let released = guard.release().await.expect("a release");
            assert!(released.in_time(), "run {run}, step {step}");
            let gone = eventually_async(SLACK, || stored(&probe, "job") == 0);
            assert!(gone.await, "left behind in run {run}, step {step}");
        }
    }
}

#[tokio::test]
async fn a_node_restarted_at_any_step_is_not_noticed() {
    let cluster = Cluster::start(5);
    let client = client_of(&cluster);
    let probe = cluster.probe();
    for run in 0..pick(2, 100) {
        for step in 0..3 {
            let restart_at = |at| (step == at).then(|| cluster[0].restart_empty());
            restart_at(0);
            let guard = client.lock("job").acquire().await.expect("a free lock");
            restart_at(1);
            assert!(extended(&guard).await, "run {run}, step {step}");
            restart_at(2);
            let released = guard.release().await.expect("a release");
            assert!(released.in_time(), "run {run}, step {step}");
            let gone = eventually_async(SLACK, || stored(&probe, "job") == 0);
            assert!(gone.await, "left behind in run {run}, step {step}");
        }
    }
}

#[tokio::test]
async fn noscript_costs_one_round_trip_and_no_vote() {
    let nodes = StandIn::some(3);
    for node in &nodes {
        // A cache that holds nothing for a moment.
        let noscript = StubReply::error("NOSCRIPT No matching script. Please use EVAL.");
        node.redis.answer("EVALSHA", noscript);
    }
    let config = Config::new(urls(&nodes)).ttl(TTL).auto_extend(false);
    let client = client(config.node_timeout(NODE_TIMEOUT));
    // The first script of each kind is spelled out anyway.
    let warmed = || nodes.iter().all(|node| node.count("EVALSHA") >= 3);
    for _ in 0..50 {
        let warm = client.lock("other").acquire().await.expect("a free lock");
        warm.extend().await.expect("an extension");
        warm.release().await.expect("a release");
        if eventually_async(20 * MS, warmed).await {
            break;
        }
    }
    assert!(warmed());
    let quiet = || nodes.iter().all(|node| !node.holds("other"));
    assert!(eventually_async(SLACK, quiet).await);

    nodes.iter().for_each(|node| node.stub.forget_received());
    let guard = client.lock("job").acquire().await.expect("a free lock");
    guard.extend().await.expect("NOSCRIPT is no refusal");
    assert!(guard.is_held());
    assert!(guard.release().await.expect("a release").in_time());
    // A quorum granted, extended and released, each by the digest in vain and then by the text. What was
    // overtaken by the release is not sent again.
    let scripts = |node: &StandIn| (node.count("EVALSHA"), node.count("EVAL"));
    let whole = || nodes.iter().filter(|node| scripts(node) == (3, 3)).count() >= 2;
    assert!(eventually_async(SLACK, whole).await);
    let gone = || nodes.iter().all(|node| !node.holds("job"));
    assert!(eventually_async(SLACK, gone).await);
    for node in &nodes {
        let (digests, texts) = scripts(node);
        assert!(digests <= 3 && texts <= 3, "{digests} and {texts}");
        assert_eq!(node.stub.connections(), 1);
    }
}

#[tokio::test]
async fn noscript_under_a_held_lock_is_no_loss() {
    let nodes = StandIn::some(3);
    let client = client(brisk(urls(&nodes)));
    let guard = client.lock("job").acquire().await.expect("a free lock");
    for _ in 0..3 {
        nodes.iter().for_each(|node| node.redis.forget_scripts());
        for _ in 0..2 {
            assert!(renewed(&guard).await, "{:?}", guard.loss());
        }
    }
    assert!(nodes[0].count("EVALSHA") > 0, "it was never extended");
    assert!(guard.release().await.expect("a release").in_time());
}

/// `settings` as they are: nothing here stands on the guard being off but the restarts.
#[tokio::test]
async fn a_warmed_client_sends_digests_not_texts() {
    let nodes = StandIn::some(3);
    let client = client(settings(urls(&nodes)).auto_extend(false));
    for _ in 0..3 {
        let guard = client.lock("job").acquire().await.expect("a free lock");
        guard.extend().await.expect("an extension");
        guard.release().await.expect("a release");
    }
    // Two of each script by their digests, at a quorum at least.
    let warmed = |node: &&StandIn| node.count("EVALSHA") == 6;
    let released = || nodes.iter().filter(warmed).count() >= 2;
    assert!(eventually_async(SLACK, released).await);
    // The marker, and the first of each of the three other scripts.
    assert!(nodes.iter().all(|node| node.count("EVAL") <= 4));
}

/// Redis 6.2 is served by the same scripts: what came with 7.0 and later is not in them. Where an
/// extension must not shorten, it compares instead of saying `GT`.
#[test]
fn no_script_uses_what_servers_before_7_lack() {
    let newer = [
        "'GT'",
        "'LT'",
        "EXPIRETIME",
        "FCALL",
        "EVAL_RO",
        "acl_check",
        "IFEQ",
        "DELIFEQ",
        "SINTERCARD",
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/node");
    let mut scripts = 0;
    for entry in std::fs::read_dir(folder)
        .expect("the scripts' folder")
        .flatten()
    {
        if entry.path().extension().is_some_and(|end| end == "lua") {
            let text = std::fs::read_to_string(entry.path()).expect("a script");
            let code = text.lines().filter(|line| !line.starts_with("--"));
            let code: Vec<&str> = code.collect();
            for word in newer {
                let found = code.iter().find(|line| line.contains(word));
                assert_eq!(found, None, "{}", entry.path().display());
            }
            // SET with NX and GET at once is refused before 7.0.
            let both = |line: &&&str| line.contains("'NX'") && line.contains("'GET',");
            assert_eq!(code.iter().find(both), None, "{}", entry.path().display());
            scripts += 1;
        }
    }
    assert!(scripts >= 5, "{scripts} scripts in {folder}");
}
