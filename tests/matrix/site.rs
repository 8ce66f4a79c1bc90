//! Five servers, each behind a proxy, and faults that come and go.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use quorumlock::{Client, Config, RestartGuard};

use crate::clock::Clock;
use crate::fault::Fault;
use crate::support::{Cluster, ClusterProbe, Probe, Proxy, Reply, eventually};

pub const NODES: usize = 5;

/// One node's budget: long enough for a machine with much else to do.
pub const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// Of leases that are to end, or that stand under the restart guard.
pub const SHORT: Duration = Duration::from_secs(3);

/// Of the others: a key that goes sooner was deleted.
pub const LONG: Duration = Duration::from_secs(20);

/// ⌈3 s × 1.01⌉ + 1 s.
pub const RESTART_DELAY: Duration = Duration::from_secs(5);

/// What a busy machine may add to any limit.
pub const SLACK: Duration = Duration::from_secs(3);

/// Uptimes are in whole seconds.
const OF_AGE: Duration = RESTART_DELAY.saturating_add(Duration::from_millis(1200));

pub struct Site {
    cluster: Cluster,
    proxies: Vec<Proxy>,
    clocks: Option<Vec<Clock>>,
    /// Connections from before a password changed.
    admins: Mutex<Vec<Probe>>,
    /// When every node has its vote.
    of_age: Instant,
}

impl Site {
    /// `None` where clocks are asked for and cannot be had.
    pub fn start(with_clocks: bool) -> Option<Site> {
        let clocks: Option<Vec<_>> = (0..NODES).map(|_| Clock::new()).collect();
        let clocks = match with_clocks {
            true => Some(clocks?),
            false => None,
        };
        let cluster = Cluster::with(NODES, |node, server| {
            let server = server.aof(true);
            match &clocks {
                Some(clocks) => clocks[node].of(server),
                None => server,
            }
        });
        let proxies = Proxy::in_front_of_all(cluster.ports());
        let admins = cluster.iter().map(|server| server.probe()).collect();
        Some(Site {
            cluster,
            proxies,
            clocks,
            admins: Mutex::new(admins),
            of_age: Instant::now() + OF_AGE,
        })
    }

    pub fn config(&self, ttl: Duration, guard: RestartGuard) -> Config {
        Config::new(self.proxies.iter().map(Proxy::url))
            .ttl(ttl)
            .max_ttl(ttl)
            .node_timeout(NODE_TIMEOUT)
            .restart_guard(guard)
    }

    /// Waits until the restart guard lets every node vote. A client must have been there.
    pub async fn come_of_age(&self) {
        tokio::time::sleep(self.of_age.saturating_duration_since(Instant::now())).await;
    }

    /// Writes the marker, from which the age of the data counts.
    pub async fn is_used(&mut self) {
        let first = Client::with_config(self.config(SHORT, RestartGuard::Off)).expect("settings");
        self.meets_all(&first, "first").await;
        self.of_age = Instant::now() + OF_AGE;
    }

    /// Lets `client` meet every node.
    pub async fn meets_all(&self, client: &Client, name: &str) {
        let lock = client.lock(name).wait(NODE_TIMEOUT + SLACK);
        let guard = lock.acquire().await.expect("five good nodes");
        let probe = self.probe();
        assert!(eventually(SLACK, || stored(&probe, name).len() == NODES));
        guard.release().await.expect("five good nodes");
    }

    pub fn probe(&self) -> ClusterProbe {
        self.cluster.probe()
    }

    /// Makes the first `bad` nodes bad. Where they restart, and `back` is asked for, returns when
    /// the client has met them again.
    pub fn inflict(&self, fault: Fault, bad: usize, back: bool) {
        std::thread::scope(|scope| {
            for node in 0..bad {
                scope.spawn(move || self.inflict_on(node, fault, back));
            }
        });
    }

    fn inflict_on(&self, node: usize, fault: Fault, back: bool) {
        let (server, proxy) = (&self.cluster[node], &self.proxies[node]);
        match fault {
            Fault::Refused => proxy.refuse(),
            Fault::Stopped => server.pause(),
            Fault::RestartedEmpty => server.restart_empty(),
            Fault::RestartedWithAof => server.restart_with_data(),
            Fault::Blackholed => proxy.blackhole(),
            Fault::Delayed20 | Fault::Delayed200 => {
                proxy.delay(fault.delay().unwrap_or_default() / 2)
            }
            Fault::ResetLost => proxy.reset_before_request(""),
            Fault::ResetRun => proxy.reset_after_request(""),
            Fault::WrongPassword => {
                self.tell(node, &["CONFIG", "SET", "requirepass", "changed"]);
                self.tell(node, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            }
            Fault::Replica => self.tell(node, &["REPLICAOF", "127.0.0.1", "1"]),
            Fault::Evicts => {
                self.tell(node, &["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
                self.tell(node, &["CONFIG", "SET", "maxmemory", "100kb"]);
                // The marker has no expiry, and stays.
                let keys = || server.probe().keys("*}").len();
                assert!(eventually(SLACK, || keys() == 0), "nothing was evicted");
            }
            Fault::Forward | Fault::Back => self.set_clock(node, fault.step().unwrap_or(0)),
        }
        if fault.restarts() && back {
            let met = |line: &String| line.contains("cmd=eval");
            let back = eventually(SLACK, || server.probe().client_list().iter().any(met));
            assert!(back, "no client came back to the restarted node");
        }
    }

    pub fn set_clock(&self, node: usize, seconds: i64) {
        let clocks = self.clocks.as_ref().expect("a site with clocks");
        clocks[node].set(seconds);
    }

    fn tell(&self, node: usize, command: &[&str]) {
        let mut admins = self.admins.lock().expect("no panic in here");
        let reply = admins[node].command(command);
        assert!(!matches!(reply, Reply::Error(_)), "{command:?}: {reply:?}");
    }

    /// Ends the fault, and whatever else there is.
    pub fn heal(&mut self, fault: Fault, bad: usize) {
        for node in 0..bad {
            match fault {
                Fault::Stopped => self.cluster[node].resume(),
                Fault::WrongPassword => self.tell(node, &["CONFIG", "SET", "requirepass", ""]),
                Fault::Replica => self.tell(node, &["REPLICAOF", "NO", "ONE"]),
                Fault::Evicts => self.tell(node, &["CONFIG", "SET", "maxmemory", "0"]),
                Fault::Forward | Fault::Back => self.set_clock(node, 0),
                _ => self.proxies[node].heal(),
            }
        }
        if fault.restarts() {
            let probes = self.cluster.iter().map(|server| server.probe());
            *self.admins.lock().expect("no panic in here") = probes.collect();
        }
    }

    /// Nodes were restarted, and clients have met them since.
    pub fn is_young(&mut self) {
        self.of_age = Instant::now() + OF_AGE;
    }
}

/// The nodes that store something for the lock on `name`.
pub fn stored(probe: &ClusterProbe, name: &str) -> Vec<usize> {
    let owners = probe.owners(format!("quorumlock:{{{name}}}"));
    (0..owners.len())
        .filter(|&node| owners[node].is_some())
        .collect()
}
