//! The fencing token of one round (P9): counter values in, a token out.
//!
//! ```text
//!   granted(node, counter)* ─┐                        ┌─► Token(T)
//!   raised(node, T, done)*  ─┴─► decide(counted, …) ──┼─► Raise { to: T, nodes }, then on
//!                                                     ├─► Open
//!                                                     └─► Impossible
//! ```
//!
//! Every grant moves the node's counter forward and brings its new value. The token is a T for
//! which there is a quorum W of granting nodes such that T is at least every reply of W, and every
//! node of W stores at least T while the key there is still ours. One value from a quorum is such
//! a T after one round trip. Else the lowest replies are raised, by a script that does so only
//! where the key is ours, while late grants are still read; whatever completes first decides.
//!
//! **Theorem.** As long as counters do not go back, and whatever clocks and messages do: for two
//! grants A and B, let k be a node of both quorums, and let A be the one that owned k first. A
//! stored at least T(A) there while it owned k. So B's reply from k was larger than T(A), and T(B)
//! is at least that reply. Hence tokens never repeat, and a holder that was overtaken has the
//! smaller one.
//!
//! Where a grant reserves a block of B numbers, the reply, T and all raises are the block's last
//! number. B's reply is then at least T(A) + B, so T(B) − B + 1 … T(B) begins above T(A).

use smallvec::SmallVec;

use super::nodes::{NodeSet, Quorum};

mod spread;
mod token;

pub(crate) use spread::Spread;
pub use token::FencingToken;

/// A second of a counter: a reply is at least the node's TIME in whole seconds.
const SECOND: u64 = 1 << 20;

/// What is known of one node's counter, as of a time when the key there was ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Known {
    /// What the grant brought.
    reply: u64,
    /// The counter is at least this.
    stored: u64,
    /// The largest raise that was asked for.
    asked: u64,
}

/// What the replies amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// A quorum stores it: the grant has its token.
    Token(FencingToken),
    /// These nodes must be raised to `to`, and were not asked to before.
    Raise { to: u64, nodes: NodeSet },
    /// Not decided.
    Open,
    /// No answer that may still come can make it a token.
    Impossible,
}

/// The counters of one round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fence {
    quorum: Quorum,
    /// By how much a counter may be ahead of another and still be believed.
    reach: u64,
    known: SmallVec<[Option<Known>; 5]>,
    /// The key there is not ours any more.
    gone: NodeSet,
    /// A raise there had no answer of use: what it stores stays what we know.
    deaf: NodeSet,
    /// What raises are sent for; zero before the first.
    target: u64,
}

impl Fence {
    /// `reach` is how far beyond its own clock a node lets its counter be raised (`max_ttl`).
    pub(crate) fn new(quorum: Quorum, reach: u64) -> Self {
        Fence {
            quorum,
            reach,
            known: SmallVec::from_elem(None, quorum.nodes()),
            gone: NodeSet::EMPTY,
            deaf: NodeSet::EMPTY,
            target: 0,
        }
    }

    /// `node` has granted, and its counter is now `counter`. Its first grant stands.
    pub(crate) fn granted(&mut self, node: usize, counter: u64) {
        if let Some(slot @ None) = self.known.get_mut(node) {
            *slot = Some(Known {
                reply: counter,
                stored: counter,
                asked: counter,
            });
        }
    }

    /// `node` has answered a raise to `to`: done, or refused since the key is not ours there.
    pub(crate) fn raised(&mut self, node: usize, to: u64, done: bool) {
        match self.known.get_mut(node) {
            Some(Some(known)) if done => known.stored = known.stored.max(to),
            Some(Some(_)) => self.gone.insert(node),
            _ => {}
        }
    }

    /// A raise of `node` was not sent, or has no answer of use. The grant there stands for what
    /// it stored.
    pub(crate) fn unraised(&mut self, node: usize) {
        self.deaf.insert(node);
    }

    /// What the nodes should be told afterwards: the largest counter seen, but none that is more
    /// than the reach above the token, or above the lowest reply where there is no token. A node
    /// would not believe it, and one clock that is far ahead must not keep the others apart.
    pub(crate) fn spread(&self, token: FencingToken) -> Spread {
        let known = || self.known.iter().flatten();
        let lowest = known().map(|known| known.reply).min().unwrap_or(0);
        let base = match token.is_none() {
            true => lowest,
            false => token.into(),
        };
        let mut spread = Spread::of(token.into(), base.saturating_add(self.reach));
        for (node, known) in self.known.iter().enumerate() {
            if let Some(known) = known {
                spread.stores(node, known.stored);
            }
        }
        spread
    }

    /// The nodes that were asked for a raise and have not answered.
    pub(crate) fn raising(&self) -> NodeSet {
        self.select(self.granting(), |known| known.stored < known.asked)
            .minus(self.deaf)
    }

    /// What there is to do, when only the grants of `counted` have a vote, and those of `awaited`
    /// may come or gain their vote yet.
    pub(crate) fn decide(&mut self, counted: NodeSet, awaited: NodeSet) -> Agreement {
        let able = self.granting().and(counted);
        let targets = self.targets(able);
        let stored = |to: &&u64| self.quorum.reached_by(self.storing(able, **to));
        if let Some(&token) = targets.iter().find(stored) {
            return Agreement::Token(FencingToken::from_u64(token));
        }
        let usable = |to: u64| self.usable(able, to);
        let target = if self.target > 0 && self.quorum.reached_by(usable(self.target)) {
            // What is on its way counts.
            Some(self.target)
        } else {
            let enough = |to: &u64| self.quorum.reached_by(usable(*to));
            targets.iter().copied().find(enough)
        };
        let Some(to) = target else {
            let possible = |to: &u64| self.quorum.reached_by(usable(*to).or(awaited));
            let highest = u64::MAX;
            return match targets.iter().chain([&highest]).any(possible) {
                true => Agreement::Open,
                false => Agreement::Impossible,
            };
        };
        let nodes = self.select(usable(to), |known| known.stored < to && known.asked < to);
        self.target = to;
        for (node, known) in self.known.iter_mut().enumerate() {
            if let Some(known) = known.as_mut().filter(|_| nodes.contains(node)) {
                known.asked = to;
            }
        }
        match nodes.is_empty() {
            true => Agreement::Open,
            false => Agreement::Raise { to, nodes },
        }
    }

    /// The nodes whose grant stands.
    fn granting(&self) -> NodeSet {
        self.select(self.quorum.all(), |_| true).minus(self.gone)
    }

    /// Every value that can be a token of the nodes in `able`, lowest first. So the replies that
    /// are raised are the lowest ones.
    fn targets(&self, able: NodeSet) -> SmallVec<[u64; 10]> {
        let known = able.iter().filter_map(|node| self.known[node]);
        let mut values: SmallVec<[u64; 10]> = known
            .flat_map(|known| [known.reply, known.stored])
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Those of `able` that can be in W for the token `to`.
    fn storing(&self, able: NodeSet, to: u64) -> NodeSet {
        self.select(able, |known| known.reply <= to && to <= known.stored)
    }

    /// Those of `able` that can be, or can be raised to be, in W for the token `to`. A node whose
    /// clock is too far behind for `to` would refuse the raise, and its grant would be lost: one
    /// clock that is far ahead must not cost the others their votes.
    fn usable(&self, able: NodeSet, to: u64) -> NodeSet {
        let raisable = able.minus(self.deaf);
        let reach = self.reach.saturating_add(SECOND);
        let believed = |known: &Known| known.reply <= to && to - known.reply <= reach;
        self.select(raisable, believed).or(self.storing(able, to))
    }

    fn select(&self, among: NodeSet, rule: impl Fn(&Known) -> bool) -> NodeSet {
        let mut set = NodeSet::EMPTY;
        for node in among.iter() {
            if self.known[node].as_ref().is_some_and(&rule) {
                set.insert(node);
            }
        }
        set
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
