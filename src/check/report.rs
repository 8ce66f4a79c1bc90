//! What a check has found.

use std::time::Duration;

use super::finding::{Finding, Severity};
use super::node::NodeReport;

/// The outcome of [`Client::check`](crate::Client::check): each node, the set as a whole, and what
/// an operator should know.
///
/// `Display` prints tables of at most 100 columns. With the feature `serde` it can be serialised.
/// No secret is in it.
///
/// # JSON
/// The form is stable: `format` is 1, fields are added, and none is changed or taken away; texts
/// are for people, and may be worded anew. Durations are numbers whose field names end in `_us`
/// (microseconds) or `_ms`, and what is not known is `null`.
///
/// ```json
/// {
///   "format": 1, "good": false, "quorum": 2, "votes": 2, "may_fail": 0, "clock_spread_us": 0,
///   "settings": { "ttl": "10s", "node_timeout": "500ms" },
///   "nodes": [{
///     "name": "a:6379", "fault": null, "state": "ready", "votes": true, "votes_in_ms": null,
///     "product": "Redis", "version": "7.0.15", "role": "master", "follows": null,
///     "run_id": "a285e7b0deb63750", "uptime_ms": 86400000, "aof": true, "rdb": false,
///     "max_memory": 0, "eviction_policy": "noeviction", "missing_permissions": [],
///     "permissions_known": true, "round_trips": 50, "p50_us": 210, "p99_us": 540,
///     "clock": { "offset_ms": -0.1, "offset_doubt_ms": 0.1, "rate_ppm": 3.0,
///                "rate_doubt_ppm": 203.0, "stepped_us": 0 }
///   }],
///   "findings": [{
///     "severity": "warning", "node": "c:6379", "setting": null,
///     "measured": "connection refused", "remedy": "start the server", "proposals": {}
///   }]
/// }
/// ```
///
/// A fault is `{ "kind": "Timeout", "text": "…" }`, its kind as in
/// [`FaultKind`](crate::FaultKind); a severity is `note`, `warning` or `critical`; proposals are
/// settings by name and value.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::Client;
///
/// let report = Client::in_memory(5).check().await;
/// assert!(report.is_good() && report.worst().is_none() && report.findings().is_empty());
/// assert_eq!((report.votes(), report.quorum(), report.may_fail()), (5, 3, 2));
/// assert_eq!(report.nodes().len(), 5);
/// assert!(report.settings().any(|setting| setting == ("ttl", "10s")));
/// println!("{:?}", report.clock_spread());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Report {
    /// The version of the JSON form.
    pub(super) format: u32,
    pub(super) good: bool,
    pub(super) quorum: usize,
    pub(super) votes: usize,
    pub(super) may_fail: usize,
    #[cfg_attr(feature = "serde", serde(rename = "clock_spread_us"))]
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::micros"))]
    pub(super) clock_spread: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::settings"))]
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) nodes: Vec<NodeReport>,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    /// Whether there is nothing to do: no finding is more than a note.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.good
    }

    /// How many nodes must agree to a grant, of all that are configured.
    #[must_use]
    pub fn quorum(&self) -> usize {
        self.quorum
    }

    /// How many nodes have a vote now.
    #[must_use]
    pub fn votes(&self) -> usize {
        self.votes
    }

    /// How many more of them may fail before there is no quorum.
    #[must_use]
    pub fn may_fail(&self) -> usize {
        self.may_fail
    }

    /// How far the clocks of the nodes are apart, at least: of the two that are furthest apart.
    /// `None` where fewer than two told their time.
    #[must_use]
    pub fn clock_spread(&self) -> Option<Duration> {
        self.clock_spread
    }

    /// The settings that were judged, by name and by value.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let settings = self.settings.iter();
        settings.map(|(name, value)| (*name, value.as_str()))
    }

    /// The nodes, in the order of the configuration.
    #[must_use]
    pub fn nodes(&self) -> &[NodeReport] {
        &self.nodes
    }

    /// What an operator should know, the worst first.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The worst finding's severity.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(Finding::severity).max()
    }
}
