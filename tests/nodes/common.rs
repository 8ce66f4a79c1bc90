//! What these tests share: settings, and errors in short.

use std::time::{Duration, Instant};

use quorumlock::{AcquireError, Attempt, Client, Config, FaultKind, Guard, RestartGuard, Vote};

use crate::support::{Cluster, ClusterProbe, eventually_async};

pub const MS: Duration = Duration::from_millis(1);

/// The TTL of most tests here.
pub const TTL: Duration = Duration::from_secs(10);

/// One node's budget in most tests here: long enough for a machine with much else to do.
pub const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a busy machine may add to any limit.
pub const SLACK: Duration = Duration::from_secs(3);

/// How soon a brisk holder extends.
pub const EXTEND_EVERY: Duration = Duration::from_millis(300);

/// An owner token as the product writes them, of nobody.
pub const RIVAL: &str = "00112233445566778899aabbccddeeff00112233";

/// Patient, so that what should work does on a busy machine.
///
/// The restart guard is off: these tests start their servers a moment before they use them, and
/// with one of them missing a young set has no quorum. `restarts.rs` is about the guard.
pub fn settings<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Config {
    Config::new(urls)
        .ttl(TTL)
        .node_timeout(NODE_TIMEOUT)
        .wait(20_000 * MS)
        .restart_guard(RestartGuard::Off)
}

/// [`settings`] whose guards extend often: what an extension brings shows soon, and much may be
/// late before a lease is lost.
pub fn brisk<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Config {
    settings(urls).extend_every(EXTEND_EVERY)
}

/// Whether a quorum has extended the lease since this was called.
pub async fn renewed(guard: &Guard) -> bool {
    let end = |guard: &Guard| Instant::now() + guard.remaining();
    let before = end(guard);
    eventually_async(TTL, || end(guard) > before + EXTEND_EVERY / 2).await
}

pub fn client(config: Config) -> Client {
    Client::with_config(config).expect("usable settings")
}

/// A client of the whole cluster.
pub fn client_of(cluster: &Cluster) -> Client {
    client(settings(cluster.urls()))
}

/// Where the lock on `name` stands under the default prefix.
pub fn key(name: &str) -> String {
    format!("quorumlock:{{{name}}}")
}

/// Puts a rival's lock on the nodes in `at`.
pub fn let_rival_hold(cluster: &Cluster, at: &[usize], name: &str) {
    for &index in at {
        let mut probe = cluster[index].probe();
        probe.set_raw(key(name), RIVAL, Some(60_000 * MS));
    }
}

/// What one node said, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Granted,
    Held,
    Nothing,
    Failed(FaultKind),
}

/// What each node said in the last round.
pub fn said(error: &AcquireError) -> Vec<Said> {
    let votes = last_round(error).votes().iter();
    votes
        .map(|vote| match &vote.vote {
            Vote::Granted => Said::Granted,
            Vote::Held { .. } => Said::Held,
            Vote::NotWaitedFor => Said::Nothing,
            other => Said::Failed(other.fault().expect("the one vote that is left")),
        })
        .collect()
}

pub fn last_round(error: &AcquireError) -> &Attempt {
    let round = error.attempt();
    round.unwrap_or_else(|| panic!("no round was made: {error}"))
}

/// How many nodes said so.
pub fn count(said: &[Said], what: Said) -> usize {
    said.iter().filter(|one| **one == what).count()
}

/// How many nodes store something under the key.
pub fn stored(probe: &ClusterProbe, name: &str) -> usize {
    probe.owners(key(name)).iter().flatten().count()
}
