//! The plain client to several nodes at once.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::probe::Probe;
use super::resp::{Reply, encode};

/// What a node stores under a key: the value, and its PTTL in ms (-1: it never expires).
pub type Owner = (Vec<u8>, i64);

/// Looks at several nodes at once. A dead or silent node is taken as one that says nothing, after
/// half a second at most for all nodes together.
pub struct ClusterProbe {
    nodes: Vec<(u16, Mutex<Option<Probe>>)>,
}

impl ClusterProbe {
    const LIMIT: Duration = Duration::from_millis(500);

    pub fn new(ports: impl IntoIterator<Item = u16>) -> ClusterProbe {
        ClusterProbe {
            nodes: ports
                .into_iter()
                .map(|port| (port, Mutex::new(None)))
                .collect(),
        }
    }

    /// What each node stores under the key; `None` for no key and for a dead node. A value of
    /// another type than a string shows as the text of the WRONGTYPE error.
    pub fn owners(&self, key: impl AsRef<[u8]>) -> Vec<Option<Owner>> {
        // One write, so that no other client comes between the two commands.
        let mut request = encode(&[b"GET", key.as_ref()]);
        request.extend(encode(&[b"PTTL", key.as_ref()]));
        let replies = self.ask(&request, 2);
        replies
            .into_iter()
            .map(|replies| owner(&replies?))
            .collect()
    }

    /// The value that a majority of all nodes stores under the key.
    pub fn holder_by_quorum(&self, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let owners: Vec<_> = self.owners(key).into_iter().flatten().collect();
        let votes = |value: &[u8]| owners.iter().filter(|owner| owner.0 == value).count();
        let quorum = self.nodes.len() / 2 + 1;
        owners
            .iter()
            .find(|owner| votes(&owner.0) >= quorum)
            .map(|owner| owner.0.clone())
    }

    /// Every key on every node that answers, with the node's index.
    pub fn all_keys(&self) -> Vec<(usize, Vec<u8>)> {
        let alive = self.alive();
        let mut keys = Vec::new();
        for (index, (port, _)) in self.nodes.iter().enumerate().filter(|(i, _)| alive[*i]) {
            let probe = Probe::connect_within(*port, Self::LIMIT);
            let found = probe
                .and_then(|mut probe| probe.try_keys("*"))
                .unwrap_or_default();
            keys.extend(found.into_iter().map(|key| (index, key)));
        }
        keys
    }

    /// Which nodes answer PING.
    pub fn alive(&self) -> Vec<bool> {
        self.ask(&encode(&["PING"]), 1)
            .iter()
            .map(Option::is_some)
            .collect()
    }

    /// Sends the same bytes to every node, then reads `count` replies from each.
    fn ask(&self, request: &[u8], count: usize) -> Vec<Option<Vec<Reply>>> {
        let deadline = Instant::now() + Self::LIMIT;
        let sent: Vec<_> = self
            .nodes
            .iter()
            .map(|(port, slot)| {
                let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                // A connection kept from before may belong to a server that is gone.
                let kept = slot.take().filter(Probe::is_quiet);
                let probe = kept.map_or_else(|| Probe::connect_within(*port, Self::LIMIT), Ok);
                let probe = probe.and_then(|mut p| p.send(request).map(|()| p)).ok()?;
                Some((probe, slot))
            })
            .collect();
        sent.into_iter()
            .map(|sent| {
                let (mut probe, mut slot) = sent?;
                let replies = (0..count)
                    .map(|_| probe.receive(deadline))
                    .collect::<io::Result<_>>()
                    .ok()?;
                *slot = Some(probe);
                Some(replies)
            })
            .collect()
    }
}

fn owner(replies: &[Reply]) -> Option<Owner> {
    let [value, pttl] = replies else { return None };
    let value = match value {
        Reply::Bulk(value) => value.clone(),
        Reply::Error(text) if text.starts_with("WRONGTYPE") => text.clone().into_bytes(),
        _ => return None,
    };
    // It may have run out between the two commands.
    pttl.int()
        .filter(|pttl| *pttl != -2)
        .map(|pttl| (value, pttl))
}
