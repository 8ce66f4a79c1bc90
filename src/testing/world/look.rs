//! What the servers of a world have noticed: for invariants. Nothing here changes anything.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Clock, ProcessId, World};
use crate::node::memory::audit::Offence;
use crate::node::memory::server::{ClientId, Shared};

impl World {
    /// A lock's key without an expiry, which some server has seen.
    #[must_use]
    pub fn everlasting(&self) -> Option<String> {
        self.0.offences.of(Offence::Everlasting)
    }

    /// A request for a token after its release, on its way to some server.
    #[must_use]
    pub fn asked_after_release(&self) -> Option<String> {
        self.0.offences.of(Offence::AfterRelease)
    }

    /// The most servers that have each written one and the same token of `process` within the
    /// last `span`: two addresses of one server are one.
    #[must_use]
    pub fn servers_behind(&self, process: ProcessId, span: Duration) -> usize {
        let since = self.now().before(span);
        let mut votes = BTreeMap::new();
        for server in self.servers() {
            let written = server.lock().audit.written_since(client(process), since);
            for token in written {
                *votes.entry(token).or_insert(0) += 1;
            }
        }
        votes.into_values().max().unwrap_or(0)
    }

    /// When a server last told `process` that a key is somebody else's.
    #[must_use]
    pub fn last_refusal(&self, process: ProcessId) -> Option<Duration> {
        let servers = self.servers().into_iter();
        let refused = servers.filter_map(|server| server.lock().audit.refused(client(process)));
        refused.max().map(|at| at.since(Clock::start()))
    }

    /// The most requests that were ever under way on one connection.
    #[must_use]
    pub fn longest_queue(&self) -> usize {
        let servers = self.servers().into_iter();
        let longest = servers.map(|server| server.lock().audit.longest());
        longest.max().unwrap_or(0)
    }

    /// How many tasks there are, in all processes and outside of them.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.0.executor.tasks()
    }

    /// Each server once, however many addresses it has.
    fn servers(&self) -> Vec<Shared> {
        let mut servers: Vec<Shared> = Vec::new();
        for node in self.0.cluster.nodes.iter() {
            if !servers.iter().any(|server| server.is(&node.server)) {
                servers.push(node.server.clone());
            }
        }
        servers
    }
}

fn client(process: ProcessId) -> ClientId {
    ClientId::try_from(process).unwrap_or(ClientId::MAX)
}
