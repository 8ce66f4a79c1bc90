//! Several independent servers.

use std::ops::Index;

use super::cluster_probe::ClusterProbe;
use super::servers::{Server, ServerBuilder};

/// Several independent servers.
pub struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    /// `n` servers, started at the same time.
    pub fn start(n: usize) -> Cluster {
        Cluster::with(n, |_, builder| builder)
    }

    /// `n` servers, each with the options that `options` gives to its index.
    pub fn with(n: usize, options: impl Fn(usize, ServerBuilder) -> ServerBuilder) -> Cluster {
        let builders: Vec<_> = (0..n).map(|i| options(i, Server::builder())).collect();
        let servers = std::thread::scope(|scope| {
            let starting: Vec<_> = builders
                .into_iter()
                .map(|builder| scope.spawn(|| builder.start()))
                .collect();
            starting
                .into_iter()
                .map(|s| s.join().expect("a server of the cluster"))
                .collect()
        });
        Cluster { servers }
    }

    pub fn urls(&self) -> Vec<String> {
        self.iter().map(Server::url).collect()
    }

    pub fn ports(&self) -> Vec<u16> {
        self.iter().map(Server::port).collect()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Server> {
        self.servers.iter()
    }

    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// The plain client to all of them.
    pub fn probe(&self) -> ClusterProbe {
        ClusterProbe::new(self.ports())
    }
}

impl Index<usize> for Cluster {
    type Output = Server;

    fn index(&self, index: usize) -> &Server {
        &self.servers[index]
    }
}
