//! The token of a round, and what the nodes' counters are told (P9).

use smallvec::SmallVec;
use tracing::debug;

use super::pending::Raising;
use super::{Coordinator, Pending, SeenVote};
use crate::clock::Instant;
use crate::node::{Ask, AskId, Fault, FaultKind, Fencing, Reply};
use crate::quorum::{Agreement, Fence, FencingToken, NodeSet, Shortfall, Spread};

impl Coordinator {
    /// What a node is told of a counter of which `hint` is known; `None` without fencing.
    pub(super) fn fencing(&self, hint: u64) -> Option<Fencing> {
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.counters.map(|counters| Fencing {
            hint,
            retention_millis: millis(counters.retention),
            max_ttl_millis: millis(counters.max_ttl),
        })
    }

    /// How many numbers a grant reserves.
    pub(super) fn block(&self) -> u64 {
        self.counters.map_or(1, |counters| counters.block)
    }

    /// What each node is told along with an extension or a release: nothing where the counter is
    /// known to be as high as any.
    pub(super) fn hints(&self, spread: Spread) -> SmallVec<[Option<Fencing>; 5]> {
        let hint = |node| self.fencing(spread.hint(node)?);
        (0..self.nodes.len()).map(hint).collect()
    }

    /// What the nodes' counters should be after a round. A lease that was adopted knows its token,
    /// and nothing else of them.
    pub(super) fn spread(&self, fence: Option<&Fence>, token: FencingToken) -> Spread {
        match fence {
            Some(fence) => fence.spread(token),
            None => Spread::of(token.into(), token.into()),
        }
    }

    /// A quorum of counted nodes has granted: is there a token that a quorum stores?
    pub(super) fn agree(&mut self, id: AskId, deadline: Instant, counted: NodeSet, now: Instant) {
        loop {
            let Some(Pending::Round(attempt)) = self.asks.get_mut(&id) else {
                return;
            };
            let Some(fence) = &mut attempt.fence else {
                let token = attempt.token;
                return self.granted(id, (deadline, counted), token, now);
            };
            let round = &attempt.round;
            let silent = self.quorum.all().minus(round.answered());
            let awaited = silent.or(round.granted().minus(counted));
            match fence.decide(counted, awaited) {
                Agreement::Token(token) => {
                    return self.granted(id, (deadline, counted), token, now);
                }
                Agreement::Raise { to, nodes } => self.send_raises(id, to, nodes, now),
                Agreement::Open if now < round.expires() => return,
                Agreement::Open | Agreement::Impossible => {
                    return self.failed(id, Shortfall::Unavailable, now);
                }
            }
        }
    }

    /// The second trip, inside the time of the round.
    fn send_raises(&mut self, of: AskId, to: u64, nodes: NodeSet, now: Instant) {
        let id = self.new_id();
        let Some(fence) = self.fencing(0) else {
            return;
        };
        let Some(Pending::Round(attempt)) = self.asks.get_mut(&of) else {
            return;
        };
        self.meters.rounds.second_trip();
        debug!(?nodes, to, "fencing counters differ: raising the lowest");
        let mut waiting = NodeSet::EMPTY;
        for node in nodes.iter() {
            let ask = Ask::Raise { to, fence };
            match self.nodes[node].submit(id, &attempt.order, ask, now) {
                Ok(()) => waiting.insert(node),
                Err(fault) => attempt.unraised(node, fault),
            }
        }
        if !waiting.is_empty() {
            let raising = Raising { of, to, waiting };
            self.asks.insert(id, Pending::Raise(raising));
        }
    }

    /// A raise has been answered.
    pub(super) fn raised(&mut self, id: AskId, node: usize, reply: &Reply, now: Instant) {
        let Some(Pending::Raise(raising)) = self.asks.get_mut(&id) else {
            return;
        };
        raising.waiting.remove(node);
        let (of, to, last) = (raising.of, raising.to, raising.waiting.is_empty());
        if last {
            self.asks.remove(&id);
        }
        if let Some(Pending::Round(attempt)) = self.asks.get_mut(&of) {
            match reply {
                Reply::Raised(done) => attempt.raised(node, to, *done),
                Reply::Failed(fault) => attempt.unraised(node, fault.clone()),
                other => {
                    let detail = format!("{other:?} to a raise");
                    attempt.unraised(node, Fault::new(FaultKind::Protocol, detail));
                }
            }
            self.judge(of, now);
        } else if let (Reply::Raised(true), Some(held)) = (reply, self.held.get_mut(&of)) {
            held.spread.stores(node, to);
        }
    }
}

impl super::Attempt {
    fn raised(&mut self, node: usize, to: u64, done: bool) {
        if let Some(fence) = &mut self.fence {
            fence.raised(node, to, done);
        }
        if !done {
            // Expired, deleted or taken since it was granted; or the node's clock is far behind.
            let detail =
                "its key was gone, or its clock too far behind, when its counter was raised";
            let fault = Fault::new(FaultKind::Counter, detail);
            self.round.revoke(node);
            self.seen[node] = Some(SeenVote::Failed(fault));
        }
    }

    /// The grant stands, but cannot be raised.
    fn unraised(&mut self, node: usize, fault: Fault) {
        if let Some(fence) = &mut self.fence {
            fence.unraised(node);
        }
        self.seen[node] = Some(SeenVote::Failed(fault));
    }
}
