//! The life of a node, seen from outside: F09 (what a silent node costs once it is suspect).
//!
//! Quick with a few cycles, `--full` with more.

use std::time::{Duration, Instant};

use quorumlock::{Client, FaultKind, NodeState};

use crate::common::{MS, SLACK, client, settings};
use crate::support::{Cluster, Proxy, Server, eventually_async, median, pick};

/// Long enough for a busy machine to answer in, short enough to wait for.
const NODE_TIMEOUT: Duration = Duration::from_millis(300);

/// How soon a node that answers again must have its place back.
const BACK: Duration = Duration::from_secs(1);

fn brief(cluster: &Cluster) -> Client {
    client(settings(cluster.urls()).node_timeout(NODE_TIMEOUT))
}

async fn cycle(client: &Client) -> Duration {
    let begin = Instant::now();
    let guard = client.lock("job").acquire().await.expect("a quorum");
    let took = begin.elapsed();
    guard.release().await.expect("a quorum");
    took
}

/// Asks the client until `fits` is true of what it knows of the node.
async fn becomes(
    client: &Client,
    node: usize,
    within: Duration,
    fits: impl Fn(&NodeState) -> bool,
) -> Duration {
    let begin = Instant::now();
    loop {
        let nodes = client.nodes().await;
        if fits(nodes[node].state()) {
            return begin.elapsed();
        }
        assert!(begin.elapsed() < within, "still {}", nodes[node]);
        tokio::time::sleep(2 * MS).await;
    }
}

fn is_ready(state: &NodeState) -> bool {
    *state == NodeState::Ready
}

fn is_suspect(state: &NodeState) -> bool {
    matches!(state, NodeState::Suspect { .. })
}

#[tokio::test]
async fn a_stopped_node_is_suspect_costs_nothing_and_is_back_within_a_second() {
    let cluster = Cluster::start(5);
    let client = brief(&cluster);
    cycle(&client).await;
    for node in 0..5 {
        becomes(&client, node, SLACK, is_ready).await;
    }
    for _ in 0..pick(2, 10) {
        cluster[0].pause();
        // What it is asked now is the probe that waits in its socket.
        cycle(&client).await;
        becomes(&client, 0, NODE_TIMEOUT + SLACK, is_suspect).await;
        let nodes = client.nodes().await;
        assert!(!nodes[0].votes() && nodes[1..].iter().all(|node| node.votes()));
        let mut costs = Vec::new();
        for _ in 0..20 {
            costs.push(cycle(&client).await);
        }
        // Whoever waited for it would need all of its node timeout, each time.
        assert!(median(&costs) < NODE_TIMEOUT / 3, "{costs:?}");

        cluster[0].resume();
        let back = becomes(&client, 0, BACK + SLACK, is_ready).await;
        assert!(back < BACK, "{back:?}");
    }
}

/// Past the end of its connection, too, and with the moment at which it fell silent.
#[tokio::test]
async fn a_node_that_was_stopped_for_long_is_back_within_a_second() {
    let cluster = Cluster::start(3);
    let client = brief(&cluster);
    cycle(&client).await;
    becomes(&client, 0, SLACK, is_ready).await;
    cluster[0].pause();
    cycle(&client).await;
    becomes(&client, 0, NODE_TIMEOUT + SLACK, is_suspect).await;
    let given_up = |state: &NodeState| matches!(state, NodeState::Down { .. });
    becomes(&client, 0, 5000 * MS + SLACK, given_up).await;
    cluster[0].resume();
    let back = becomes(&client, 0, BACK + SLACK, is_ready).await;
    assert!(back < BACK, "{back:?}");
    // Where it answers again it is asked again.
    let asked = || cluster[0].probe().keys("*fence*").len() == 1;
    cycle(&client).await;
    assert!(eventually_async(SLACK, asked).await);
}

#[tokio::test]
async fn a_node_that_dies_is_down_and_one_that_comes_back_empty_waits_for_its_vote() {
    let cluster = Cluster::start(3);
    let second = 1000 * MS;
    let config = quorumlock::Config::new(cluster.urls());
    let config = config
        .ttl(second)
        .max_ttl(second)
        .node_timeout(NODE_TIMEOUT);
    let client = client(config);
    cycle(&client).await;
    becomes(&client, 2, SLACK, is_ready).await;
    cluster[2].kill();
    let down = |state: &NodeState| matches!(state, NodeState::Down { .. });
    becomes(&client, 2, SLACK, down).await;
    let why = client.nodes().await[2].state().why().map(|why| why.kind());
    assert_eq!(why, Some(FaultKind::ConnectionRefused));
    cluster[2].restart_empty();
    let begin = Instant::now();
    let waits = |state: &NodeState| matches!(state, NodeState::Restarting { .. });
    becomes(&client, 2, BACK + SLACK, waits).await;
    assert!(!client.nodes().await[2].votes());
    becomes(&client, 2, 3 * second + SLACK, is_ready).await;
    assert!(begin.elapsed() > 2 * second, "restart_delay is 3 s");
}

#[tokio::test]
async fn nodes_that_serve_no_locks_are_excluded_each_for_its_reason() {
    let cluster = Cluster::with(4, |index, server| match index {
        3 => server.args(["--requirepass", "right"]),
        _ => server,
    });
    let port = cluster[0].port().to_string();
    let replicaof = ["--replicaof", "127.0.0.1", port.as_str()];
    let replica = Server::builder().args(replicaof).start();
    let again = Proxy::in_front_of(cluster[1].port());
    let mut urls = cluster.urls();
    urls[3] = format!("redis://:wrong@127.0.0.1:{}", cluster[3].port());
    urls.extend([replica.url(), again.url()]);
    let client = client(settings(urls));
    // Four of six are needed, and three have a vote.
    let refused = client.lock("job").try_acquire().await;
    assert!(refused.is_err());
    let reasons = [
        (3, FaultKind::Auth),
        (4, FaultKind::ReadOnly),
        (5, FaultKind::Duplicate),
    ];
    for (node, kind) in reasons {
        let excluded = |state: &NodeState| {
            let why = state.why().map(|why| why.kind());
            matches!(state, NodeState::Excluded { .. }) && why == Some(kind)
        };
        becomes(&client, node, SLACK, excluded).await;
    }
    let votes = client.nodes().await;
    let votes: Vec<_> = votes.iter().map(|node| node.votes()).collect();
    assert_eq!(votes, [true, true, true, false, false, false]);
    let text = format!("{:?}", client.nodes().await);
    assert!(!text.contains("wrong"), "{text}");
}
