//! What a check found out about one node.

use std::time::Duration;

use crate::node::Fault;
use crate::status::NodeState;

/// One node, as a check found it. What the node does not tell, or may not, is `None`.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{Client, NodeState};
///
/// let report = Client::in_memory(3).check().await;
/// let node = &report.nodes()[0];
/// assert_eq!((node.name(), node.votes(), node.votes_in()), ("memory-1:6379", true, None));
/// assert_eq!(node.state(), &NodeState::Idle);
/// assert!(node.fault().is_none() && node.follows().is_none());
/// println!("{:?} {:?}, {:?}, up {:?}", node.product(), node.version(), node.role(), node.uptime());
/// println!("{:?}: AOF {:?}, RDB {:?}", node.run_id(), node.aof(), node.rdb());
/// println!("{:?}, {:?}", node.max_memory(), node.eviction_policy());
/// assert!(!node.permissions_known() || node.missing_permissions().is_empty());
/// assert!(node.round_trips() > 0 && node.p50() <= node.p99());
/// assert!(node.clock().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct NodeReport {
    pub(super) name: String,
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::fault"))]
    pub(super) fault: Option<Fault>,
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::state"))]
    pub(super) state: NodeState,
    pub(super) votes: bool,
    #[cfg_attr(feature = "serde", serde(rename = "votes_in_ms"))]
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::millis"))]
    pub(super) votes_in: Option<Duration>,
    pub(super) product: Option<String>,
    pub(super) version: Option<String>,
    pub(super) role: Option<String>,
    pub(super) follows: Option<String>,
    pub(super) run_id: Option<String>,
    #[cfg_attr(feature = "serde", serde(rename = "uptime_ms"))]
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::millis"))]
    pub(super) uptime: Option<Duration>,
    pub(super) aof: Option<bool>,
    pub(super) rdb: Option<bool>,
    pub(super) max_memory: Option<u64>,
    #[cfg_attr(feature = "serde", serde(rename = "eviction_policy"))]
    pub(super) eviction: Option<String>,
    #[cfg_attr(feature = "serde", serde(rename = "missing_permissions"))]
    pub(super) missing: Vec<String>,
    pub(super) permissions_known: bool,
    pub(super) round_trips: usize,
    #[cfg_attr(feature = "serde", serde(rename = "p50_us"))]
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::micros"))]
    pub(super) p50: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(rename = "p99_us"))]
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::micros"))]
    pub(super) p99: Option<Duration>,
    pub(super) clock: Option<ClockReading>,
}

impl NodeReport {
    /// How errors and logs call the node: never with a secret.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why it could not be looked at, or serves no locks.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Where it stands by what the client itself knows of it, as
    /// [`Client::nodes`](crate::Client::nodes) has it.
    #[must_use]
    pub fn state(&self) -> &NodeState {
        &self.state
    }

    /// Whether its grants count: it answers, is a master and nobody's twin, and neither it nor its
    /// data is younger than `restart_delay`.
    #[must_use]
    pub fn votes(&self) -> bool {
        self.votes
    }

    /// How long the restart guard yet makes it wait, where that is all that it waits for.
    #[must_use]
    pub fn votes_in(&self) -> Option<Duration> {
        self.votes_in
    }

    /// `Redis` or `Valkey`; `in memory` for a test's double.
    #[must_use]
    pub fn product(&self) -> Option<&str> {
        self.product.as_deref()
    }

    /// Such as `7.0.15`.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// `master`, `replica`, or what it calls itself.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// The master that a replica follows: the name of that node where it is in the list, else its
    /// address as the replica has it.
    #[must_use]
    pub fn follows(&self) -> Option<&str> {
        self.follows.as_deref()
    }

    /// Random for each process of a server: two nodes with the same one are one server.
    #[must_use]
    pub fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// How long its process has run, in whole seconds.
    #[must_use]
    pub fn uptime(&self) -> Option<Duration> {
        self.uptime
    }

    /// Whether it keeps an append-only file.
    #[must_use]
    pub fn aof(&self) -> Option<bool> {
        self.aof
    }

    /// Whether it takes snapshots.
    #[must_use]
    pub fn rdb(&self) -> Option<bool> {
        self.rdb
    }

    /// Its memory limit in bytes; zero for none.
    #[must_use]
    pub fn max_memory(&self) -> Option<u64> {
        self.max_memory
    }

    /// What it drops when that is reached: `noeviction` for nothing.
    #[must_use]
    pub fn eviction_policy(&self) -> Option<&str> {
        self.eviction.as_deref()
    }

    /// The ACL rules that are missing for a lock, such as `+evalsha` or `~quorumlock:*`.
    #[must_use]
    pub fn missing_permissions(&self) -> &[String] {
        &self.missing
    }

    /// Whether those are all: `false` where the node does not let us look (`ACL DRYRUN`, Redis
    /// 7.0), and no more is known than what reading has shown.
    #[must_use]
    pub fn permissions_known(&self) -> bool {
        self.permissions_known
    }

    /// How many round trips were measured.
    #[must_use]
    pub fn round_trips(&self) -> usize {
        self.round_trips
    }

    /// The median round trip.
    #[must_use]
    pub fn p50(&self) -> Option<Duration> {
        self.p50
    }

    /// The round trip that 99 % do not exceed. Of 50, that is the longest.
    #[must_use]
    pub fn p99(&self) -> Option<Duration> {
        self.p99
    }

    /// How its clock runs.
    #[must_use]
    pub fn clock(&self) -> Option<&ClockReading> {
        self.clock.as_ref()
    }

    /// Whether it answered the probe.
    pub(super) fn answers(&self) -> bool {
        self.round_trips > 0
    }
}

/// A node's clock beside this machine's.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use std::time::Duration;
/// use quorumlock::Client;
///
/// let report = Client::in_memory(3).check().await;
/// let clock = report.nodes()[0].clock().unwrap();
/// println!("{} ± {} ms", clock.offset_ms(), clock.offset_doubt_ms());
/// println!("{:?} ± {:?} ppm", clock.rate_ppm(), clock.rate_doubt_ppm());
/// assert_eq!(clock.stepped(), Duration::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ClockReading {
    pub(super) offset_ms: f64,
    pub(super) offset_doubt_ms: f64,
    pub(super) rate_ppm: Option<f64>,
    pub(super) rate_doubt_ppm: Option<f64>,
    #[cfg_attr(feature = "serde", serde(rename = "stepped_us"))]
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::whole_micros"))]
    pub(super) stepped: Duration,
}

impl ClockReading {
    /// By how many milliseconds it is ahead of this machine's wall clock. Nothing in the protocol
    /// depends on this machine's wall clock; how far the nodes are apart does matter. Where this
    /// machine has no wall clock (nodes in memory) it is ahead of the first node.
    #[must_use]
    pub fn offset_ms(&self) -> f64 {
        self.offset_ms
    }

    /// How far the offset may be off, either way: half of the shortest round trip.
    #[must_use]
    pub fn offset_doubt_ms(&self) -> f64 {
        self.offset_doubt_ms
    }

    /// By how many millionths it runs faster than this machine's boot-time clock, with which
    /// leases are measured.
    #[must_use]
    pub fn rate_ppm(&self) -> Option<f64> {
        self.rate_ppm
    }

    /// How far the rate may be off, either way: the round trips over the span of the probe.
    #[must_use]
    pub fn rate_doubt_ppm(&self) -> Option<f64> {
        self.rate_doubt_ppm
    }

    /// By how much it was set during the probe, at least.
    #[must_use]
    pub fn stepped(&self) -> Duration {
        self.stepped
    }
}
