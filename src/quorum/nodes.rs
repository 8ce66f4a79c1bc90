//! Sets of nodes, and how many of them decide.

use std::fmt;

/// The most nodes one client may be given.
pub(crate) const MOST_NODES: usize = 32;

/// A set of nodes by their place in the list of the configuration.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct NodeSet(u32);

impl NodeSet {
    pub(crate) const EMPTY: NodeSet = NodeSet(0);

    /// The first `count` nodes.
    pub(crate) fn first(count: usize) -> Self {
        debug_assert!(count <= MOST_NODES);
        NodeSet(u32::MAX.checked_shr(32 - count.min(32) as u32).unwrap_or(0))
    }

    pub(crate) fn insert(&mut self, node: usize) {
        self.0 |= 1 << node;
    }

    pub(crate) fn remove(&mut self, node: usize) {
        self.0 &= !(1 << node);
    }

    pub(crate) fn contains(self, node: usize) -> bool {
        self.0 & (1 << node) != 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In both.
    pub(crate) fn and(self, other: NodeSet) -> Self {
        NodeSet(self.0 & other.0)
    }

    /// In either.
    pub(crate) fn or(self, other: NodeSet) -> Self {
        NodeSet(self.0 | other.0)
    }

    /// In `self`, not in `other`.
    pub(crate) fn minus(self, other: NodeSet) -> Self {
        NodeSet(self.0 & !other.0)
    }

    /// The nodes in it, lowest first.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MOST_NODES).filter(move |&node| self.contains(node))
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// N configured nodes, of which ⌊N/2⌋ + 1 decide. Never counted from the reachable ones: two
/// halves of a parted network would each find their own majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Quorum {
    nodes: usize,
}

impl Quorum {
    /// The quorum rule for `nodes` configured nodes.
    pub(crate) fn of(nodes: usize) -> Self {
        debug_assert!((1..=MOST_NODES).contains(&nodes));
        Quorum { nodes }
    }

    /// N.
    pub(crate) fn nodes(self) -> usize {
        self.nodes
    }

    /// How many must agree.
    pub(crate) fn needed(self) -> usize {
        self.nodes / 2 + 1
    }

    /// How many may be missing.
    pub(crate) fn spare(self) -> usize {
        self.nodes - self.needed()
    }

    /// Every configured node.
    pub(crate) fn all(self) -> NodeSet {
        NodeSet::first(self.nodes)
    }

    /// Whether `set` is enough.
    pub(crate) fn reached_by(self, set: NodeSet) -> bool {
        set.len() >= self.needed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_is_more_than_half_of_the_configured_nodes() {
        let needed: Vec<_> = (1..=9).map(|n| Quorum::of(n).needed()).collect();
        assert_eq!(needed, [1, 2, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!(Quorum::of(5).spare(), 2);
        assert_eq!(Quorum::of(4).spare(), 1);
    }

    #[test]
    fn two_quorums_always_share_a_node() {
        for nodes in 1..=MOST_NODES {
            let quorum = Quorum::of(nodes);
            assert!(2 * quorum.needed() > nodes);
        }
    }

    /// Whether any quorum of the one list shares a node with any of the other.
    fn always_meet(one: NodeSet, other: NodeSet) -> bool {
        let quorums = |list: NodeSet| {
            let within = move |set: &NodeSet| set.minus(list).is_empty();
            let all = (0..1 << 8).map(NodeSet).filter(within);
            all.filter(move |set| Quorum::of(list.len()).reached_by(*set))
        };
        quorums(one).all(|a| quorums(other).all(|b| !a.and(b).is_empty()))
    }

    /// What docs/operations.md says about clients with two lists: one node more or less.
    #[test]
    fn lists_that_differ_by_one_node_share_a_node_in_every_two_quorums() {
        for nodes in 1..8 {
            assert!(always_meet(
                NodeSet::first(nodes),
                NodeSet::first(nodes + 1)
            ));
        }
    }

    #[test]
    fn an_exchange_and_two_nodes_more_let_quorums_miss_each_other() {
        let mut exchanged = NodeSet::first(4);
        exchanged.insert(5);
        assert!(!always_meet(NodeSet::first(5), exchanged));
        assert!(!always_meet(NodeSet::first(3), NodeSet::first(5)));
    }

    #[test]
    fn sets_do_what_sets_do() {
        let mut set = NodeSet::EMPTY;
        set.insert(0);
        set.insert(31);
        set.insert(31);
        assert_eq!(set.len(), 2);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 31]);
        assert_eq!(NodeSet::first(32).len(), 32);
        assert_eq!(NodeSet::first(0), NodeSet::EMPTY);
        assert_eq!(NodeSet::first(3).minus(NodeSet::first(1)).len(), 2);
        assert_eq!(format!("{:?}", NodeSet::first(2)), "{0, 1}");
    }
}
