//! One thing that an operator should know.

use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Severity {
    /// Good to know; nothing has to be done.
    Note,
    /// It works, with less in reserve than there should be.
    Warning,
    /// Locks cannot be had, or cannot be trusted, before something is done.
    Critical,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "CRITICAL",
        })
    }
}

/// A finding of a check: what was measured, and what to do about it.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{Finding, Severity, testing::Cluster};
///
/// let cluster = Cluster::new(3);
/// cluster.node(2).kill();
/// let report = cluster.client().check().await;
/// let of_node = |finding: &&Finding| finding.node() == Some("memory-3:6379");
/// let finding = report.findings().iter().find(of_node).unwrap();
/// assert!(finding.severity() >= Severity::Warning && finding.setting().is_none());
/// println!("{}: {}", finding.measured(), finding.remedy());
/// assert_eq!(finding.proposals().count(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Finding {
    pub(super) severity: Severity,
    pub(super) node: Option<String>,
    pub(super) setting: Option<&'static str>,
    pub(super) measured: String,
    pub(super) remedy: String,
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::proposals"))]
    pub(super) proposals: Vec<(&'static str, String)>,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        measured: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Finding {
            severity,
            node: None,
            setting: None,
            measured: measured.into(),
            remedy: remedy.into(),
            proposals: Vec::new(),
        }
    }

    /// It is about one node.
    pub(super) fn at(mut self, node: &str) -> Self {
        self.node = Some(node.to_owned());
        self
    }

    /// It is about one setting.
    pub(super) fn about(mut self, setting: &'static str) -> Self {
        self.setting = Some(setting);
        self
    }

    /// What the settings should be instead.
    pub(super) fn propose(mut self, proposals: Vec<(&'static str, String)>) -> Self {
        self.proposals = proposals;
        self
    }

    /// How much it matters.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The node that it is about; `None` where it is about the set.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// The setting that does not fit, if it is about one: its name in the README's table.
    #[must_use]
    pub fn setting(&self) -> Option<&str> {
        self.setting
    }

    /// What was seen.
    #[must_use]
    pub fn measured(&self) -> &str {
        &self.measured
    }

    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// Settings that fit, by name and by value as in a TOML file or a variable. Together they are
    /// settings that a client can be made of; nothing is proposed where there are none.
    pub fn proposals(&self) -> impl Iterator<Item = (&str, &str)> {
        self.proposals
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
    }
}
