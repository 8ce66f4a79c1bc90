//! What both services share: where the nodes are.

use quorumlock::{Client, ConfigError};

/// A client of the nodes that `QUORUMLOCK_NODES` names, or of those of `scripts/cluster up`. Does
/// no I/O: a service starts while its nodes are down.
pub fn client() -> Result<Client, ConfigError> {
    let nodes = std::env::var("QUORUMLOCK_NODES").unwrap_or_else(|_| {
        let node = |port| format!("redis://127.0.0.1:{port}");
        (7101..=7105).map(node).collect::<Vec<_>>().join(",")
    });
    Client::open(nodes.split(','))
}
