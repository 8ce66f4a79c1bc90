//! The JSON forms: words for states, whole milliseconds for spans, and names that lose no byte.

use std::time::Duration;

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use super::force::ForcedRelease;
use super::list::{Listed, Listing};
use super::owner::OwnerId;
use super::status::Status;
use super::table::word;
use super::verdict::{KeyState, LockState, NodeKey};
use crate::node::Fault;

impl Serialize for OwnerId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// `{"resource": "é", "resource_hex": "c3a9"}`; the former is null where the bytes are no text.
fn name<M: SerializeMap>(map: &mut M, key: &str, bytes: &[u8]) -> Result<(), M::Error> {
    map.serialize_entry(key, &std::str::from_utf8(bytes).ok())?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    map.serialize_entry(&format!("{key}_hex"), &hex)
}

/// `"state": "held", "owner": "3f9a01bc", "owner_nodes": 5, "left_ms": 7200`
fn state<M: SerializeMap>(map: &mut M, state: &LockState) -> Result<(), M::Error> {
    map.serialize_entry("state", word(state))?;
    if let LockState::Held { owner, nodes, left } = state {
        map.serialize_entry("owner", owner)?;
        map.serialize_entry("owner_nodes", nodes)?;
        map.serialize_entry("left_ms", &left.map(whole))?;
    }
    Ok(())
}

fn whole(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `{"kind": "Timeout", "text": "timed out (…)"}`
struct Failed<'a>(&'a Fault);

impl Serialize for Failed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_struct("Fault", 2)?;
        out.serialize_field("kind", &format!("{:?}", self.0.kind()))?;
        out.serialize_field("text", &self.0.to_string())?;
        out.end()
    }
}

/// `{"node": "n1:6379", "key": "lock", "owner": "3f9a01bc", "left_ms": 7200}`
impl Serialize for NodeKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("node", &*self.node)?;
        match &self.state {
            KeyState::Lock { owner, left } => {
                map.serialize_entry("key", "lock")?;
                map.serialize_entry("owner", owner)?;
                map.serialize_entry("left_ms", &left.map(whole))?;
            }
            KeyState::Absent => map.serialize_entry("key", "absent")?,
            KeyState::Foreign => map.serialize_entry("key", "foreign")?,
            KeyState::Failed(fault) => {
                map.serialize_entry("key", "unknown")?;
                map.serialize_entry("fault", &Failed(fault))?;
            }
        }
        map.end()
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        name(&mut map, "resource", &self.resource)?;
        state(&mut map, &self.state)?;
        map.serialize_entry("label", &self.label)?;
        map.serialize_entry("needed", &self.needed())?;
        map.serialize_entry("fencing_counter", &self.token)?;
        map.serialize_entry("fingerprint", &self.fingerprint)?;
        map.serialize_entry("nodes", &self.nodes)?;
        map.end()
    }
}

impl Serialize for Listed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        name(&mut map, "resource", &self.resource)?;
        state(&mut map, &self.state)?;
        map.serialize_entry("label", &self.label)?;
        map.serialize_entry("copies", &self.copies)?;
        map.end()
    }
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        name(&mut map, "prefix", &self.prefix)?;
        map.serialize_entry("complete", &self.complete)?;
        map.serialize_entry("needed", &self.needed())?;
        map.serialize_entry("fingerprint", &self.fingerprint)?;
        let faults = self.faults();
        let faults: std::collections::BTreeMap<_, _> =
            faults.map(|(node, fault)| (node, Failed(fault))).collect();
        map.serialize_entry("faults", &faults)?;
        map.serialize_entry("locks", &self.locks)?;
        map.end()
    }
}

impl Serialize for ForcedRelease {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        name(&mut map, "resource", &self.resource)?;
        map.serialize_entry("was_held", &self.was_held())?;
        map.serialize_entry("deleted", &self.deleted())?;
        map.serialize_entry("needed", &self.needed())?;
        map.serialize_entry("owners", &self.owners)?;
        map.serialize_entry("nodes", &self.nodes)?;
        map.end()
    }
}
