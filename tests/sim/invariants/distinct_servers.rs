//! A quorum counts distinct servers only (P11): who holds the lock has been granted it, or an
//! extension, by a quorum of them within the longest TTL. Two addresses of one server are one.

use quorumlock::testing::world::ProcessId;

use super::Seen;

pub fn check(seen: &Seen, process: ProcessId) -> Result<(), String> {
    let needed = seen.world.nodes() / 2 + 1;
    let behind = seen.world.servers_behind(process, seen.longest);
    match behind < needed {
        true => Err(format!("c{process} holds by {behind} servers of {needed}")),
        false => Ok(()),
    }
}
