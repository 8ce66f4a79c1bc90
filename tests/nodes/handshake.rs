//! What servers and proxies may refuse without harm.
//!
//! F35 with stubs, quick. Real servers of other versions: run the suite with `QUORUMLOCK_SERVER`.

use std::collections::BTreeSet;

use quorumlock::{Client, Config, RestartGuard};

use crate::common::{brisk, client, renewed};
use crate::stand_in::{StandIn, urls};
use crate::support::StubReply;

const OPTIONAL: [&str; 5] = [
    "HELLO",
    "CLIENT SETINFO",
    "CLIENT SETNAME",
    "INFO",
    "CONFIG",
];

/// Nodes that answer these commands so.
fn refusing(commands: &[&str], reply: &StubReply) -> Vec<StandIn> {
    (0..3)
        .map(|_| StandIn::start().answers(commands, reply))
        .collect()
}

fn config(nodes: &[StandIn]) -> Config {
    brisk(urls(nodes)).restart_guard(RestartGuard::Auto)
}

fn client_of(nodes: &[StandIn]) -> Client {
    client(config(nodes))
}

/// Acquires, extends by hand and by itself, and releases, twice.
async fn use_all(client: &Client) {
    for _ in 0..2 {
        let guard = client.lock("job").acquire().await.expect("a free lock");
        guard.extend().await.expect("an extension");
        assert!(renewed(&guard).await, "{:?}", guard.loss());
        assert!(guard.release().await.expect("a release").in_time());
    }
}

#[tokio::test]
async fn servers_that_refuse_optional_commands_serve_all_the_same() {
    let unknown = StubReply::error("ERR unknown command");
    let denied = StubReply::error("NOPERM this user has no permissions to run the command");
    let mut refusals: Vec<Vec<&str>> = OPTIONAL.iter().map(|it| vec![*it]).collect();
    refusals.push(OPTIONAL.to_vec());
    let all = refusals
        .iter()
        .flat_map(|commands| [(commands, &unknown), (commands, &denied)]);
    // Side by side: each takes the time of two extensions.
    let runs = all.map(|(commands, reply)| async move {
        let nodes = refusing(commands, reply);
        use_all(&client_of(&nodes)).await;
        for node in &nodes {
            let connects = node.stub.connections();
            assert!(connects <= 3, "{connects} connects without {commands:?}");
        }
    });
    futures::future::join_all(runs).await;
}

#[tokio::test]
async fn servers_that_hang_up_on_hello_serve_all_the_same() {
    let nodes = refusing(&["HELLO"], &StubReply::Close);
    use_all(&client_of(&nodes)).await;
    assert!(nodes.iter().all(|node| node.stub.connections() <= 3));
}

/// The list that the documentation gives to whoever writes an ACL.
#[tokio::test]
async fn a_lock_needs_no_other_commands_than_those_that_are_documented() {
    // What scripts do inside a node is not seen here.
    let plain = &["EVAL", "EVALSHA", "GET", "HELLO", "INFO", "PTTL", "SET"][..];
    let fenced = &["EVAL", "EVALSHA", "GET", "HELLO", "INFO"][..];
    for (fencing, needed) in [(false, plain), (true, fenced)] {
        let nodes = StandIn::some(3);
        let client = client(config(&nodes).fencing(fencing));
        use_all(&client).await;
        nodes.iter().for_each(|node| node.let_rival_hold("other"));
        let refused = client.lock("other").try_acquire().await;
        refused.expect_err("a rival holds it");
        client.close().await.expect("all is released");
        let sent: BTreeSet<String> = nodes
            .iter()
            .flat_map(|node| node.stub.received())
            .map(|command| command.name())
            .collect();
        assert_eq!(sent.iter().collect::<Vec<_>>(), needed);
    }
}
