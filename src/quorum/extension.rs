//! One extension of a held lease (P7): votes → outcome, inside the present validity.

use super::nodes::{NodeSet, Quorum};
use super::timing::Timing;
use crate::clock::Instant;

/// What one node says to an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The key is ours and has the new expiry; or it was absent and is set again.
    Renewed,
    /// It was gone when the node was last asked, and is set again: a renewal, and beside others
    /// that are gone now, a vote for a deletion.
    Mended,
    /// The key is set, on a node that has no vote and on which it was not ours all the time
    /// (P10): somebody else may hold that node's vote from before it lost its data.
    Uncounted,
    /// Another owner's token is there.
    Taken,
    /// The node had acknowledged our token in its present life, and has no key now.
    Deleted,
    /// No answer of use.
    Failed,
}

/// What an extension amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Not decided; the lease is held until its present deadline.
    Held,
    /// A quorum extended it inside the present validity.
    Renewed { deadline: Instant },
    /// No quorum answered in time. The present deadline stands.
    Unknown,
    /// Somebody deleted the key on so many nodes that no quorum holds it.
    Deleted,
    /// Another owner's token is on so many nodes that no quorum can be ours.
    Taken,
}

/// The votes of one extension.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Extension {
    quorum: Quorum,
    timing: Timing,
    started: Instant,
    renewed: NodeSet,
    /// Those of `renewed` that had lost the key before.
    mended: NodeSet,
    taken: NodeSet,
    deleted: NodeSet,
    failed: NodeSet,
}

impl Extension {
    /// An extension whose clock starts at `now`, read before its first request is queued.
    pub(crate) fn begin(now: Instant, quorum: Quorum, timing: Timing) -> Self {
        Extension {
            quorum,
            timing,
            started: now,
            renewed: NodeSet::EMPTY,
            mended: NodeSet::EMPTY,
            taken: NodeSet::EMPTY,
            deleted: NodeSet::EMPTY,
            failed: NodeSet::EMPTY,
        }
    }

    /// The moment from which a silent node counts as failed.
    pub(crate) fn expires(&self) -> Instant {
        self.started.after(self.timing.node_timeout())
    }

    /// When its clock started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// `node` has answered. Its first answer stands.
    pub(crate) fn vote(&mut self, node: usize, renewal: Renewal) {
        if self.answered().contains(node) || node >= self.quorum.nodes() {
            return;
        }
        match renewal {
            Renewal::Renewed => self.renewed.insert(node),
            Renewal::Mended => {
                self.renewed.insert(node);
                self.mended.insert(node);
            }
            Renewal::Taken => self.taken.insert(node),
            Renewal::Deleted => self.deleted.insert(node),
            Renewal::Uncounted | Renewal::Failed => self.failed.insert(node),
        }
    }

    /// The nodes that have the key, with its new expiry.
    pub(crate) fn renewed(&self) -> NodeSet {
        self.renewed
    }

    /// The nodes that have answered.
    pub(crate) fn answered(&self) -> NodeSet {
        let present = self.renewed.or(self.taken);
        present.or(self.deleted).or(self.failed)
    }

    /// What the answers amount to at `now`, for a lease that is valid until `present`. After
    /// that nothing counts any more: a node under the restart guard may have set the key again,
    /// and another holder may stand on the others.
    pub(crate) fn outcome(&self, now: Instant, present: Instant) -> Outcome {
        let spare = self.quorum.spare();
        if now >= present {
            return Outcome::Unknown;
        }
        if self.quorum.reached_by(self.renewed) {
            let deadline = self.timing.deadline(self.started).max(present);
            return Outcome::Renewed { deadline };
        }
        let waiting = self.quorum.all().minus(self.answered());
        let reachable = self.quorum.reached_by(self.renewed.or(waiting));
        // A deletion that met the last extension half way: some keys were gone then, and the
        // others are now.
        let gone = self.deleted.or(self.mended);
        if gone.len() > spare && !reachable {
            return Outcome::Deleted;
        }
        if self.taken.len() > spare {
            return Outcome::Taken;
        }
        // A loss must not be taken for an outage: while enough nodes may still report one, it is
        // waited for, although a quorum is out of reach.
        let deletable = gone.or(waiting).len() > spare;
        let takable = self.taken.or(waiting).len() > spare;
        let open = !waiting.is_empty() && now < self.expires();
        if open && (reachable || deletable || takable) {
            Outcome::Held
        } else {
            Outcome::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quorum::Drift;
    use Renewal::{Deleted, Failed, Renewed, Taken};
    use std::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn timing(ttl: u64) -> Timing {
        let ms = Duration::from_millis;
        Timing::new(ms(ttl), Drift::new(0.0, ms(0)).unwrap(), ms(50), ms(0)).unwrap()
    }

    /// Begun at 300, for a lease that is valid until 900.
    fn outcome(votes: &[Renewal], now: u64) -> Outcome {
        let mut extension = Extension::begin(at(300), Quorum::of(5), timing(900));
        for (node, &vote) in votes.iter().enumerate() {
            extension.vote(node, vote);
        }
        extension.outcome(at(now), at(900))
    }

    #[test]
    fn a_quorum_renews_from_the_start_of_the_extension() {
        assert_eq!(outcome(&[Renewed; 2], 310), Outcome::Held);
        let deadline = at(1200);
        assert_eq!(outcome(&[Renewed; 3], 320), Outcome::Renewed { deadline });
    }

    #[test]
    fn an_extension_never_shortens() {
        let mut extension = Extension::begin(at(100), Quorum::of(1), timing(200));
        extension.vote(0, Renewed);
        let deadline = at(900);
        let renewed = Outcome::Renewed { deadline };
        assert_eq!(extension.outcome(at(101), at(900)), renewed);
    }

    #[test]
    fn nothing_counts_after_the_present_deadline() {
        assert_eq!(outcome(&[Renewed; 5], 900), Outcome::Unknown);
        assert_eq!(outcome(&[Deleted; 5], 900), Outcome::Unknown);
    }

    #[test]
    fn silence_ends_it_at_the_nodes_budget() {
        assert_eq!(outcome(&[], 349), Outcome::Held);
        assert_eq!(outcome(&[], 350), Outcome::Unknown);
    }

    #[test]
    fn three_failures_of_five_are_unknown_once_no_loss_can_show() {
        assert_eq!(outcome(&[Failed, Failed], 301), Outcome::Held);
        assert_eq!(outcome(&[Failed, Failed, Failed], 301), Outcome::Unknown);
    }

    #[test]
    fn three_deletions_of_five_are_a_loss_and_two_are_not() {
        assert_eq!(outcome(&[Deleted, Deleted, Renewed], 301), Outcome::Held);
        let votes = [Deleted, Deleted, Renewed, Renewed, Failed];
        assert_eq!(outcome(&votes, 301), Outcome::Unknown);
        let votes = [Deleted, Renewed, Renewed, Deleted, Deleted];
        assert_eq!(outcome(&votes, 301), Outcome::Deleted);
    }

    #[test]
    fn a_loss_is_waited_for_although_a_quorum_is_out_of_reach() {
        assert_eq!(outcome(&[Failed, Deleted, Deleted], 301), Outcome::Held);
        let votes = [Failed, Deleted, Deleted, Deleted];
        assert_eq!(outcome(&votes, 301), Outcome::Deleted);
    }

    #[test]
    fn another_owner_on_three_of_five_is_a_loss() {
        assert_eq!(outcome(&[Taken; 3], 301), Outcome::Taken);
        let votes = [Taken, Taken, Renewed, Renewed, Renewed];
        assert!(matches!(outcome(&votes, 301), Outcome::Renewed { .. }));
    }

    #[test]
    fn another_owner_on_two_of_five_is_none_and_a_third_is_waited_for() {
        assert_eq!(outcome(&[Taken; 2], 301), Outcome::Held);
        // A quorum is out of reach, and so is a deletion.
        assert_eq!(outcome(&[Taken, Failed, Failed], 301), Outcome::Held);
        let votes = [Taken, Failed, Failed, Failed];
        assert_eq!(outcome(&votes, 301), Outcome::Unknown);
    }

    #[test]
    fn the_first_answer_of_a_node_stands() {
        let mut extension = Extension::begin(at(300), Quorum::of(3), timing(900));
        for _ in 0..3 {
            extension.vote(1, Renewed);
        }
        extension.vote(7, Renewed);
        assert_eq!(extension.outcome(at(301), at(900)), Outcome::Held);
    }
}
