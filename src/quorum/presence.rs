//! Where the key of a held lease is known to be, and where it may be set again (P7).
//!
//! A node that acknowledged the key in its present life and has none now was told to delete it,
//! or evicted it. On a few nodes that is damage, which the next extension mends; on so many that
//! the others are no quorum, somebody took the lock away, and it must not be set again.
//!
//! Those votes need not come in one extension. So a missing key is mended only when the nodes
//! that miss it, and those that were asked and have not said a word yet, are too few for a
//! deletion.
//!
//! A key that is set again on a node that lost its data counts for an extension only if it was
//! ours there before, without a gap. Else somebody else may have been granted it in the node's
//! former life: that vote stands in a round that is still open, and takes the lock as soon as one
//! of our other keys runs out.

use smallvec::SmallVec;

use super::nodes::{NodeSet, Quorum};
use crate::clock::Instant;

/// What is known of the key of one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Presence {
    /// Had it, in the node's present life.
    acknowledged: NodeSet,
    /// Had it, and has it no more.
    missing: NodeSet,
    /// Asked, and not heard of since.
    silent: NodeSet,
    /// Until when the key stands on each node, without a gap since its vote counted.
    ours_until: SmallVec<[Instant; 5]>,
}

/// Before all times: the key is not known to stand there.
const NEVER: Instant = Instant::from_nanos(0);

impl Presence {
    /// A lease that the nodes in `acknowledged` have granted, until `deadline`; of those the ones
    /// in `counted` have a vote.
    pub(crate) fn granted(
        quorum: Quorum,
        acknowledged: NodeSet,
        counted: NodeSet,
        deadline: Instant,
    ) -> Self {
        let stands = acknowledged.and(counted);
        let until = |node| {
            if stands.contains(node) {
                deadline
            } else {
                NEVER
            }
        };
        Presence {
            acknowledged,
            missing: NodeSet::EMPTY,
            silent: NodeSet::EMPTY,
            ours_until: (0..quorum.nodes()).map(until).collect(),
        }
    }

    /// `node` is asked for an extension.
    pub(crate) fn asked(&mut self, node: usize) {
        self.silent.insert(node);
    }

    /// `node` has answered, whatever it said; or it is down, and will not. The end of its
    /// connection is neither.
    pub(crate) fn heard(&mut self, node: usize) {
        self.silent.remove(node);
    }

    /// The key is on `node`.
    pub(crate) fn found(&mut self, node: usize) {
        self.acknowledged.insert(node);
        self.missing.remove(node);
    }

    /// The key was found on `node`, or set again there, as `now` is known, and stands until
    /// `until`. Whether it counts: the node has a vote, or the key was ours there all the time.
    pub(crate) fn stands(
        &mut self,
        node: usize,
        until: Instant,
        votes: bool,
        now: Instant,
    ) -> bool {
        let Some(ours) = self.ours_until.get_mut(node) else {
            return false;
        };
        let counts = votes || now < *ours;
        if counts {
            *ours = until.max(*ours);
        }
        counts
    }

    /// The key was on `node`, and is gone: alone where the node still has its vote, so that others
    /// may have been granted it since; else with all that was there, and nobody can have.
    pub(crate) fn missed(&mut self, node: usize, votes: bool) {
        if self.acknowledged.contains(node) {
            self.missing.insert(node);
        }
        if votes {
            self.interrupted(node);
        }
    }

    /// Somebody else's key is on `node`.
    pub(crate) fn taken(&mut self, node: usize) {
        self.forget(node);
        self.interrupted(node);
    }

    fn interrupted(&mut self, node: usize) {
        if let Some(ours) = self.ours_until.get_mut(node) {
            *ours = NEVER;
        }
    }

    /// Whether the key was on `node`, and was gone when it was last heard of.
    pub(crate) fn is_missing(&self, node: usize) -> bool {
        self.missing.contains(node)
    }

    /// What `node` said before means nothing: it has lost its data. That the key was ours until
    /// then stays true.
    pub(crate) fn forget(&mut self, node: usize) {
        self.acknowledged.remove(node);
        self.missing.remove(node);
    }

    /// The nodes on which an absent key is not set again: there its absence is a vote for a
    /// deletion.
    pub(crate) fn known(&self, quorum: Quorum) -> NodeSet {
        let doubtful = self.missing.or(self.silent.and(self.acknowledged));
        if doubtful.len() > quorum.spare() {
            self.acknowledged
        } else {
            self.acknowledged.minus(self.missing)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn five() -> Quorum {
        Quorum::of(5)
    }

    fn granted(nodes: NodeSet) -> Presence {
        Presence::granted(five(), nodes, five().all(), at(900))
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn set(nodes: &[usize]) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        nodes.iter().for_each(|&node| set.insert(node));
        set
    }

    #[test]
    fn a_key_is_set_only_where_it_was_never_known_to_be() {
        let presence = granted(set(&[0, 1, 2]));
        assert_eq!(presence.known(five()), set(&[0, 1, 2]));
    }

    #[test]
    fn two_missing_keys_of_five_are_mended() {
        let mut presence = granted(five().all());
        presence.missed(1, true);
        presence.missed(3, true);
        assert_eq!(presence.known(five()), set(&[0, 2, 4]));
        presence.found(1);
        assert_eq!(presence.known(five()), set(&[0, 1, 2, 4]));
    }

    #[test]
    fn a_key_is_missing_where_it_was() {
        let mut presence = granted(set(&[0, 1, 2]));
        assert!(!presence.is_missing(1));
        presence.missed(1, true);
        presence.missed(4, true);
        assert!(presence.is_missing(1));
        assert!(!presence.is_missing(4), "it never was there");
        presence.found(1);
        assert!(!presence.is_missing(1));
    }

    #[test]
    fn nothing_is_mended_while_a_silent_node_may_cast_the_third_vote() {
        let mut presence = granted(five().all());
        presence.asked(4);
        presence.missed(1, true);
        assert_eq!(
            presence.known(five()),
            set(&[0, 2, 3, 4]),
            "two of five at most"
        );
        presence.missed(3, true);
        assert_eq!(presence.known(five()), five().all());
        presence.heard(4);
        assert_eq!(presence.known(five()), set(&[0, 2, 4]));
    }

    #[test]
    fn a_silent_node_that_never_had_the_key_is_no_doubt() {
        let mut presence = granted(set(&[0, 1, 2, 3]));
        presence.asked(4);
        presence.missed(1, true);
        presence.missed(3, true);
        assert_eq!(presence.known(five()), set(&[0, 2]));
    }

    #[test]
    fn a_node_that_lost_its_data_has_deleted_nothing() {
        let mut presence = granted(five().all());
        for node in 0..3 {
            presence.missed(node, true);
            presence.forget(node);
        }
        assert_eq!(presence.known(five()), set(&[3, 4]));
        presence.missed(0, true);
        assert_eq!(presence.known(five()), set(&[3, 4]), "it had none since");
    }

    #[test]
    fn a_node_without_a_vote_counts_where_the_key_was_ours_all_the_time() {
        let mut presence = granted(set(&[0, 1]));
        presence.forget(0);
        assert!(presence.stands(0, at(1_200), false, at(899)));
        assert!(presence.stands(0, at(1_500), false, at(1_199)), "and on");
        assert!(!presence.stands(1, at(1_200), false, at(900)), "it ran out");
        assert!(!presence.stands(2, at(1_200), false, at(10)), "never ours");
        assert!(!presence.stands(2, at(1_500), false, at(20)), "nor by that");
        assert!(presence.stands(2, at(1_500), true, at(30)));
        assert!(presence.stands(2, at(1_800), false, at(40)));
        assert!(!presence.stands(9, at(1_800), true, at(40)));
    }

    #[test]
    fn a_key_deleted_alone_and_somebody_elses_key_end_what_ours_stood_for() {
        let mut presence = granted(five().all());
        presence.missed(0, false);
        assert!(presence.stands(0, at(1_200), false, at(10)), "a flush");
        presence.missed(1, true);
        presence.taken(2);
        for node in 1..3 {
            assert!(!presence.stands(node, at(1_200), false, at(10)));
        }
    }

    #[test]
    fn a_grant_without_a_vote_vouches_for_nothing() {
        let mut presence = Presence::granted(five(), five().all(), set(&[0, 1, 2]), at(900));
        assert!(!presence.stands(3, at(1_200), false, at(10)));
        assert!(presence.stands(2, at(1_200), false, at(10)));
    }
}
