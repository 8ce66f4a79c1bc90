//! One round: a question to all nodes at once, and the verdict (P1, P3, P4).
//!
//! ```text
//!  begin ─► hand(node)* ─► vote(node, …)* ─► verdict ─► Open
//!                                               ├─────► Granted { deadline }
//!                                               └─────► Failed(Shortfall), then owed() is released
//! ```
//!
//! The verdict falls as soon as it is certain: at the quorum-th counted grant, or when the grants
//! can no longer reach the quorum; in a round that some nodes reject, when it is certain whether
//! too many do. Nobody else waits for a slow or dead node.

use super::nodes::{NodeSet, Quorum};
use super::timing::Timing;
use crate::clock::Instant;

/// What one node says in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// The key is set, with our owner token.
    Granted,
    /// Somebody else's owner token is there. The only vote that means "held".
    Refused,
    /// No answer of use, and the next round may fare better: hung, down, loading, restarting.
    Failed,
    /// An answer that will be the same next time: wrong credentials, no permission, no lock.
    Rejected,
}

/// Why a round has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortfall {
    /// Enough nodes answered, and somebody else holds the key on at least one of them.
    Contended,
    /// So many nodes failed that no quorum can have answered.
    Unavailable,
    /// So many nodes refuse to serve us at all that trying again is of no use.
    Rejected,
    /// A quorum granted, but too late for the grant to be worth having.
    TooSlow,
}

/// What is known of a round by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not decided.
    Open,
    /// A quorum of counted nodes granted, and validity is left until `deadline`.
    Granted { deadline: Instant },
    /// It cannot succeed any more.
    Failed(Shortfall),
}

/// The votes of one round.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Round {
    quorum: Quorum,
    timing: Timing,
    started: Instant,
    handed: NodeSet,
    granted: NodeSet,
    refused: NodeSet,
    failed: NodeSet,
    rejected: NodeSet,
}

impl Round {
    /// A round whose clock starts at `now`, which must be read before the first request is
    /// queued: all that happens after it, connects included, comes off the validity.
    pub(crate) fn begin(now: Instant, quorum: Quorum, timing: Timing) -> Self {
        Round {
            quorum,
            timing,
            started: now,
            handed: NodeSet::EMPTY,
            granted: NodeSet::EMPTY,
            refused: NodeSet::EMPTY,
            failed: NodeSet::EMPTY,
            rejected: NodeSet::EMPTY,
        }
    }

    /// When the round's clock started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The moment from which a silent node counts as failed.
    pub(crate) fn expires(&self) -> Instant {
        self.started.after(self.timing.node_timeout())
    }

    /// The request is in `node`'s hands: it may set the key from now on, whatever it says later.
    pub(crate) fn hand(&mut self, node: usize) {
        self.handed.insert(node);
    }

    /// `node` has answered. Its first answer stands; later ones change nothing.
    pub(crate) fn vote(&mut self, node: usize, vote: Vote) {
        if self.answered().contains(node) || node >= self.quorum.nodes() {
            return;
        }
        match vote {
            Vote::Granted => self.granted.insert(node),
            Vote::Refused => self.refused.insert(node),
            Vote::Failed => self.failed.insert(node),
            Vote::Rejected => self.rejected.insert(node),
        }
    }

    /// `node` has refused, and is asked once more.
    pub(crate) fn ask_again(&mut self, node: usize) {
        self.refused.remove(node);
        self.handed.insert(node);
    }

    /// The nodes that have somebody else's key.
    pub(crate) fn refused(&self) -> NodeSet {
        self.refused
    }

    /// The grant of `node` turned out not to be one any more.
    pub(crate) fn revoke(&mut self, node: usize) {
        if self.granted.contains(node) {
            self.granted.remove(node);
            self.failed.insert(node);
        }
    }

    /// The nodes that have answered.
    pub(crate) fn answered(&self) -> NodeSet {
        let grants = self.granted.or(self.refused);
        grants.or(self.failed).or(self.rejected)
    }

    /// The nodes on which the key was set.
    pub(crate) fn granted(&self) -> NodeSet {
        self.granted
    }

    /// The nodes to which a rollback must go (P3): all that were handed the request, but for
    /// those that said the key is somebody else's. An unknown outcome is not a refusal.
    pub(crate) fn owed(&self) -> NodeSet {
        self.handed.minus(self.refused)
    }

    /// What the votes amount to at `now`, when only the nodes in `counted` have a vote (P10,
    /// P11). A grant of another node is kept: its node may gain its vote while the round runs.
    pub(crate) fn verdict(&self, now: Instant, counted: NodeSet) -> Verdict {
        let grants = self.granted.and(counted);
        if self.quorum.reached_by(grants) {
            return match self.timing.validity(self.started, now) {
                Some(_) => Verdict::Granted {
                    deadline: self.timing.deadline(self.started),
                },
                None => Verdict::Failed(Shortfall::TooSlow),
            };
        }
        let waiting = self.quorum.all().minus(self.answered());
        let reachable = self.quorum.reached_by(self.granted.or(waiting));
        let open = reachable || self.may_be_rejected(waiting);
        if open && !waiting.is_empty() && now < self.expires() {
            return Verdict::Open;
        }
        let silent = if now < self.expires() {
            NodeSet::EMPTY
        } else {
            waiting
        };
        Verdict::Failed(self.shortfall(silent))
    }

    /// Whether some reject us, and with those that have yet to answer they may be too many. A
    /// rejection must not be taken for contention, which is worth another try: a cold client may
    /// hear of a rival first.
    fn may_be_rejected(&self, waiting: NodeSet) -> bool {
        let spare = self.quorum.spare();
        let certain = self.rejected.len() > spare;
        !self.rejected.is_empty() && !certain && self.rejected.or(waiting).len() > spare
    }

    /// Why the grants do not suffice, with `silent` counted as failed.
    fn shortfall(&self, silent: NodeSet) -> Shortfall {
        let spare = self.quorum.spare();
        let failed = self.failed.or(silent);
        if self.rejected.len() > spare {
            Shortfall::Rejected
        } else if self.rejected.len() + failed.len() > spare || self.refused.is_empty() {
            Shortfall::Unavailable
        } else {
            Shortfall::Contended
        }
    }
}

#[cfg(test)]
mod tests;
