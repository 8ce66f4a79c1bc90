//! What goes wrong with a node, in classes that callers can match on.

use std::fmt;
use std::sync::Arc;

/// The kind of a node's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No answer within the node's budget, connecting included.
    Timeout,
    /// Nothing listens at the address.
    ConnectionRefused,
    /// The connection ended or was reset, with the outcome unknown.
    ConnectionLost,
    /// The host name has no address.
    Unresolved,
    /// The network says that there is no way to the address, or the socket could not be opened.
    Unreachable,
    /// No secure connection: not a TLS port, or a certificate that is not trusted.
    Tls,
    /// Credentials are missing, wrong, or could not be read.
    Auth,
    /// The user lacks a permission that a lock needs (`NOPERM`).
    Permission,
    /// The node is a read-only replica (`READONLY`).
    ReadOnly,
    /// The node loads its data set (`LOADING`), or follows a master that is down (`MASTERDOWN`).
    Loading,
    /// A script keeps the node busy (`BUSY`).
    Busy,
    /// The node is out of memory (`OOM`).
    OutOfMemory,
    /// The node refuses writes because it cannot persist them (`MISCONF`), or has too few
    /// replicas (`NOREPLICAS`).
    Misconfigured,
    /// The key holds something that is not a lock of this library. It is left alone.
    NotALock,
    /// The node is part of a Redis Cluster and does not own the key's slot.
    WrongSlot,
    /// The answer is not of the Redis protocol, or not of the expected shape.
    Protocol,
    /// Another error reply of the server.
    ServerError,
    /// The node granted, but its fencing counter could not be raised: the key was gone by then,
    /// or the node's clock is behind the others' by more than `max_ttl`.
    Counter,
    /// More requests wait for the node than its queue holds.
    Overloaded,
    /// The node came back, or lost its data, so recently that its vote does not count yet.
    Restarting,
    /// The node is the same server as an earlier one of the list.
    Duplicate,
    /// The operating system gave no random bytes for an owner token; no node was asked.
    Randomness,
}

impl FaultKind {
    /// Whether the next try will fare no better: somebody must change a setting first.
    ///
    /// ```
    /// use quorumlock::FaultKind;
    /// assert!(FaultKind::Auth.is_permanent());
    /// assert!(!FaultKind::Timeout.is_permanent());
    /// ```
    #[must_use]
    pub fn is_permanent(self) -> bool {
        matches!(
            self,
            FaultKind::Auth
                | FaultKind::Permission
                | FaultKind::ReadOnly
                | FaultKind::NotALock
                | FaultKind::WrongSlot
                | FaultKind::Duplicate
        )
    }

    fn text(self) -> &'static str {
        match self {
            FaultKind::Timeout => "timed out",
            FaultKind::ConnectionRefused => "connection refused",
            FaultKind::ConnectionLost => "connection lost",
            FaultKind::Unresolved => "host name not resolved",
            FaultKind::Unreachable => "not reachable",
            FaultKind::Tls => "no TLS",
            FaultKind::Auth => "authentication failed",
            FaultKind::Permission => "permission denied",
            FaultKind::ReadOnly => "read-only replica",
            FaultKind::Loading => "loading its data",
            FaultKind::Busy => "busy with a script",
            FaultKind::OutOfMemory => "out of memory",
            FaultKind::Misconfigured => "refuses writes",
            FaultKind::NotALock => "the key holds something that is not a lock",
            FaultKind::WrongSlot => "cluster node without the key's slot",
            FaultKind::Protocol => "unintelligible answer",
            FaultKind::ServerError => "server error",
            FaultKind::Counter => "fencing counter not raised",
            FaultKind::Overloaded => "queue full",
            FaultKind::Restarting => "restarting",
            FaultKind::Duplicate => "duplicate",
            FaultKind::Randomness => "no random bytes from the operating system",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// One node's failure: its kind, and what the server or the system said.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{AcquireError, FaultKind, Vote};
/// use quorumlock::testing::Cluster;
///
/// let cluster = Cluster::new(3);
/// cluster.nodes().iter().for_each(|node| node.fail_with(FaultKind::Auth));
/// let error = cluster.client().lock("job").acquire().await.unwrap_err();
/// assert!(matches!(error, AcquireError::Rejected(_)));
/// let mut votes = error.attempt().unwrap().votes().iter();
/// let fault = votes.find_map(|vote| match &vote.vote {
///     Vote::Failed(fault) => Some(fault),
///     _ => None,
/// });
/// let fault = fault.unwrap();
/// assert_eq!((fault.kind(), fault.detail()), (FaultKind::Auth, Some("as the test says")));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    detail: Option<Arc<str>>,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        let detail: String = detail.into();
        // An answer may be of any length; a sentence of it is enough to know what is wrong.
        let short: String = detail.chars().take(200).collect();
        Fault {
            kind,
            detail: (!short.is_empty()).then(|| short.into()),
        }
    }

    /// What class of failure it is.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        self.kind
    }

    /// Whether the node has not said a word: the request may have reached it all the same.
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self.kind, FaultKind::ConnectionLost | FaultKind::Timeout)
    }

    /// What the server or the system said, if it said anything. Never a secret.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Fault { kind, detail: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.text();
        match &self.detail {
            // What the system says may be the kind once more: "Connection refused (os error 111)".
            Some(detail) => match detail.split_at_checked(kind.len()) {
                Some((start, rest)) if start.eq_ignore_ascii_case(kind) => {
                    write!(f, "{kind}{rest}")
                }
                _ => write!(f, "{kind} ({detail})"),
            },
            None => f.write_str(kind),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_nothing_twice() {
        let text = |kind, detail: &str| Fault::new(kind, detail).to_string();
        let refused = text(
            FaultKind::ConnectionRefused,
            "Connection refused (os error 111)",
        );
        assert_eq!(refused, "connection refused (os error 111)");
        let lost = text(
            FaultKind::ConnectionLost,
            "Connection reset by peer (os error 104)",
        );
        assert_eq!(
            lost,
            "connection lost (Connection reset by peer (os error 104))"
        );
        assert_eq!(text(FaultKind::Tls, "é"), "no TLS (é)");
        assert_eq!(text(FaultKind::Tls, ""), "no TLS");
    }
}
