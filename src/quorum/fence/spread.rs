//! What is left of a round's counters once it is over: who is told what.

use crate::quorum::NodeSet;

/// The value that all counters should have, and the nodes that are known to have it. To raise a
/// counter is always harmless, and it is what lets the next grants agree at once; so releases,
/// rollbacks and extensions carry the value wherever it is not known to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    value: u64,
    /// What a node says that is above this is none of the others' business.
    limit: u64,
    stored: NodeSet,
}

impl Spread {
    /// Of a value that no node is known to store; the others may follow a node up to `limit`.
    pub(crate) fn of(value: u64, limit: u64) -> Self {
        Spread {
            value,
            limit,
            stored: NodeSet::EMPTY,
        }
    }

    /// The value, if there is one.
    pub(crate) fn value(self) -> u64 {
        self.value
    }

    /// What `node` should be told: `None` where it is known to store as much.
    pub(crate) fn hint(self, node: usize) -> Option<u64> {
        (self.value > 0 && !self.stored.contains(node)).then_some(self.value)
    }

    /// `node` stores at least `counter`.
    pub(crate) fn stores(&mut self, node: usize, counter: u64) {
        if counter > self.value && counter <= self.limit {
            self.value = counter;
            self.stored = NodeSet::EMPTY;
        }
        if counter >= self.value {
            self.stored.insert(node);
        }
    }

    /// `node` has lost its data, or may have.
    pub(crate) fn forget(&mut self, node: usize) {
        self.stored.remove(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_may_not_know_are_told() {
        let mut spread = Spread::of(8, 20);
        spread.stores(0, 8);
        spread.stores(1, 900);
        spread.stores(2, 7);
        let hints: Vec<_> = (0..4).map(|node| spread.hint(node)).collect();
        assert_eq!(hints, [None, None, Some(8), Some(8)]);
        spread.forget(0);
        assert_eq!(spread.hint(0), Some(8));
    }

    #[test]
    fn a_larger_counter_is_followed_within_the_limit() {
        let mut spread = Spread::of(8, 20);
        spread.stores(0, 8);
        spread.stores(1, 12);
        assert_eq!(spread.hint(0), Some(12));
        assert_eq!(spread.hint(1), None);
    }

    #[test]
    fn without_a_value_there_is_nothing_to_tell() {
        assert_eq!(Spread::default().hint(0), None);
    }
}
