//! Five servers, each behind a proxy, and faults that come and go.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use quorumlock::{Client, Config, RestartGuard};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::clock::Clock;
use crate::fault::Fault;
use crate::support::{Cluster, ClusterProbe, Probe, Proxy, Reply, Server, eventually};

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
    /// What the clocks show when nothing is wrong with them, in seconds from now.
    base: i64,
    /// Connections from before a password changed.
    admins: Mutex<Vec<Probe>>,
    /// When the last node, or its data, came into being.
    born: Option<Instant>,
}

impl Site {
    /// Servers that have been used: the age of their data has begun.
    pub async fn start() -> Site {
        let start = || {
            let clocks: Option<Vec<_>> = (0..NODES).map(|_| Clock::new()).collect();
            let cluster = Cluster::with(NODES, |node, server| {
                let server = server.aof(true);
                match &clocks {
                    Some(clocks) => clocks[node].of(server),
                    None => server,
                }
            });
            (clocks, cluster)
        };
        let (clocks, cluster) = spawn_blocking(start).await.expect("servers");
        let site = Site {
            proxies: Proxy::in_front_of_all(cluster.ports()),
            admins: Mutex::new(cluster.iter().map(Server::probe).collect()),
            cluster,
            clocks,
            base: 0,
            born: Some(Instant::now()),
        };
        let first = Client::with_config(site.config(SHORT, RestartGuard::Off)).expect("settings");
        site.meets_all(&first, "first").await;
        site
    }

    /// Whether the clocks can be set.
    pub fn has_clocks(&self) -> bool {
        self.clocks.is_some()
    }

    /// Where clients find the node.
    pub fn port(&self, node: usize) -> u16 {
        self.proxies[node].port()
    }

    pub fn config(&self, ttl: Duration, guard: RestartGuard) -> Config {
        Config::new(self.proxies.iter().map(Proxy::url))
            .ttl(ttl)
            .max_ttl(ttl)
            .node_timeout(NODE_TIMEOUT)
            .restart_guard(guard)
    }

    /// Lets so much time pass that the restart guard lets every node vote: on the nodes' own clocks,
    /// where these can be set.
    pub async fn come_of_age(&mut self) {
        let Some(born) = self.born.take() else { return };
        if self.has_clocks() {
            self.base += 2 * OF_AGE.as_secs().cast_signed();
            (0..NODES).for_each(|node| self.step(node, 0));
        } else {
            sleep(OF_AGE.saturating_sub(born.elapsed())).await;
        }
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

    pub fn inflict_on(&self, node: usize, fault: Fault, back: bool) {
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
            Fault::Forward | Fault::Back => self.step(node, fault.step().unwrap_or(0)),
        }
        if fault.restarts() && back {
            let met = |line: &String| line.contains("cmd=eval");
            let back = eventually(SLACK, || server.probe().client_list().iter().any(met));
            assert!(back, "no client came back to the restarted node");
        }
    }

    /// Sets the node's clock so many seconds off the right time.
    pub fn step(&self, node: usize, seconds: i64) {
        let clocks = self.clocks.as_ref().expect("a site with clocks");
        clocks[node].set(self.base + seconds);
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
                Fault::Forward | Fault::Back => self.step(node, 0),
                _ => self.proxies[node].heal(),
            }
        }
        if fault.restarts() {
            let probes = self.cluster.iter().map(Server::probe);
            *self.admins.lock().expect("no panic in here") = probes.collect();
            for server in self.cluster.iter() {
                let used = || server.probe().get("quorumlock:since").is_some();
                assert!(eventually(SLACK, used), "no client came back");
            }
            self.born = Some(Instant::now());
        }
    }
}

/// The nodes that store something for the lock on `name`.
pub fn stored(probe: &ClusterProbe, name: &str) -> Vec<usize> {
    let owners = probe.owners(format!("quorumlock:{{{name}}}"));
    (0..owners.len())
        .filter(|&node| owners[node].is_some())
        .collect()
}
