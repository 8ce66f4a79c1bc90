//! Where the key of a held lease is known to be, and where it may be set again (P7).
//!
//! A node that acknowledged the key in its present life and has none now was told to delete it,
//! or evicted it. On a few nodes that is damage, which the next extension mends; on so many that
//! the others are no quorum, somebody took the lock away, and it must not be set again.
//!
//! Those votes need not come in one extension. So a missing key is mended only when the nodes
//! that miss it, and those that were asked and have not said a word yet, are too few for a
//! deletion.

use super::nodes::{NodeSet, Quorum};

/// What is known of the key of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Presence {
    /// Had it, in the node's present life.
    acknowledged: NodeSet,
    /// Had it, and has it no more.
    missing: NodeSet,
    /// Asked, and not heard of since.
    silent: NodeSet,
}

impl Presence {
    /// A lease that the nodes in `acknowledged` have granted.
    pub(crate) fn granted(acknowledged: NodeSet) -> Self {
        Presence {
            acknowledged,
            missing: NodeSet::EMPTY,
            silent: NodeSet::EMPTY,
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

    /// The key was on `node`, and is gone.
    pub(crate) fn missed(&mut self, node: usize) {
        if self.acknowledged.contains(node) {
            self.missing.insert(node);
        }
    }

    /// Whether the key was on `node`, and was gone when it was last heard of.
    pub(crate) fn is_missing(&self, node: usize) -> bool {
        self.missing.contains(node)
    }

    /// What `node` said before means nothing: it has lost its data, or somebody else's key is
    /// there.
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

    fn set(nodes: &[usize]) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        nodes.iter().for_each(|&node| set.insert(node));
        set
    }

    #[test]
    fn a_key_is_set_only_where_it_was_never_known_to_be() {
        let presence = Presence::granted(set(&[0, 1, 2]));
        assert_eq!(presence.known(five()), set(&[0, 1, 2]));
    }

    #[test]
    fn two_missing_keys_of_five_are_mended() {
        let mut presence = Presence::granted(five().all());
        presence.missed(1);
        presence.missed(3);
        assert_eq!(presence.known(five()), set(&[0, 2, 4]));
        presence.found(1);
        assert_eq!(presence.known(five()), set(&[0, 1, 2, 4]));
    }

    #[test]
    fn a_key_is_missing_where_it_was() {
        let mut presence = Presence::granted(set(&[0, 1, 2]));
        assert!(!presence.is_missing(1));
        presence.missed(1);
        presence.missed(4);
        assert!(presence.is_missing(1));
        assert!(!presence.is_missing(4), "it never was there");
        presence.found(1);
        assert!(!presence.is_missing(1));
    }

    #[test]
    fn nothing_is_mended_while_a_silent_node_may_cast_the_third_vote() {
        let mut presence = Presence::granted(five().all());
        presence.asked(4);
        presence.missed(1);
        assert_eq!(
            presence.known(five()),
            set(&[0, 2, 3, 4]),
            "two of five at most"
        );
        presence.missed(3);
        assert_eq!(presence.known(five()), five().all());
        presence.heard(4);
        assert_eq!(presence.known(five()), set(&[0, 2, 4]));
    }

    #[test]
    fn a_silent_node_that_never_had_the_key_is_no_doubt() {
        let mut presence = Presence::granted(set(&[0, 1, 2, 3]));
        presence.asked(4);
        presence.missed(1);
        presence.missed(3);
        assert_eq!(presence.known(five()), set(&[0, 2]));
    }

    #[test]
    fn a_node_that_lost_its_data_has_deleted_nothing() {
        let mut presence = Presence::granted(five().all());
        for node in 0..3 {
            presence.missed(node);
            presence.forget(node);
        }
        assert_eq!(presence.known(five()), set(&[3, 4]));
        presence.missed(0);
        assert_eq!(presence.known(five()), set(&[3, 4]), "it had none since");
    }
}
