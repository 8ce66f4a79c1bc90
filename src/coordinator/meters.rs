//! What is counted of rounds and nodes, for people to look at. Nothing decides by it.

use super::{Coordinator, Pending};
use crate::clock::Instant;
use crate::metrics::{self, Ended, Margin};
use crate::node::{AskId, Fault, FaultKind, Node, Reply};
use crate::quorum::{NodeSet, Quorum, Shortfall};
use crate::status::NodeState;

/// The counters of one coordinator.
pub(super) struct Meters {
    pub(super) rounds: metrics::Rounds,
    nodes: Vec<metrics::Node<FaultKind>>,
    /// A node may stand elsewhere than at the last look.
    pub(super) stale: bool,
    /// When one will, though nothing happens.
    pub(super) due: Option<Instant>,
    /// Not ready: an answer may change that, and nothing may follow it.
    troubled: NodeSet,
}

impl Meters {
    pub(super) fn new(quorum: Quorum, nodes: &[Box<dyn Node>]) -> Self {
        let names = nodes.iter().map(|node| node.name());
        let node = |name| metrics::Node::new(name, NodeState::WORDS);
        Meters {
            rounds: metrics::Rounds::new(quorum.spare()),
            nodes: names.map(node).collect(),
            stale: true,
            due: None,
            troubled: NodeSet::EMPTY,
        }
    }

    /// A request was not taken by `node`, or came to nothing there.
    pub(super) fn failed(&mut self, node: usize, fault: &Fault) {
        self.nodes[node].failed(fault.kind());
    }
}

impl Coordinator {
    /// An answer of `node`, before it is judged.
    pub(super) fn count(&mut self, node: usize, id: AskId, reply: &Reply, now: Instant) {
        if !metrics::ON {
            return;
        }
        self.meters.stale |= self.meters.troubled.contains(node);
        let started = match self.asks.get(&id) {
            Some(Pending::Round(attempt)) => Some(attempt.round.started()),
            Some(Pending::Granted { started, .. }) => Some(*started),
            Some(Pending::Extension(extending)) => Some(extending.extension.started()),
            Some(Pending::Release(_) | Pending::Raise(_)) => None,
            None => {
                if let Reply::Granted { .. } = reply {
                    self.meters.rounds.late_grant();
                }
                None
            }
        };
        match (reply, started) {
            (Reply::Failed(fault), _) => self.meters.failed(node, fault),
            (_, Some(started)) => self.meters.nodes[node].answered(now.since(started)),
            _ => {}
        }
    }

    /// A round was granted, and all nodes have had their say on it.
    pub(super) fn count_margin(&mut self, granted: NodeSet, now: Instant) {
        let votes = granted.and(self.roster.counted(now)).len();
        let margin = votes.saturating_sub(self.quorum.needed());
        self.meters.rounds.complete(Margin(margin));
    }

    /// Where each node stands, if that may have changed.
    pub(super) fn count_states(&mut self, now: Instant) {
        let due = self.meters.due.is_some_and(|due| due <= now);
        if !(metrics::ON && (due || self.meters.stale)) {
            return;
        }
        self.meters.stale = false;
        let (mut next, mut troubled) = (None, NodeSet::EMPTY);
        for node in self.quorum.all().iter() {
            self.sights[node].look(self.nodes[node].hangs(now), now);
            let state = self.status(node, now).state;
            self.meters.nodes[node].stands(state.word());
            if state != NodeState::Ready {
                troubled.insert(node);
            }
            if let NodeState::Restarting { left } = state {
                let until = now.after(left);
                next = Some(next.map_or(until, |next: Instant| next.min(until)));
            }
        }
        self.meters.due = next.filter(|next| *next > now);
        self.meters.troubled = troubled;
    }
}

impl From<Shortfall> for Ended {
    fn from(why: Shortfall) -> Self {
        match why {
            Shortfall::Contended => Ended::Contended,
            Shortfall::Unavailable => Ended::Unavailable,
            Shortfall::Rejected => Ended::Rejected,
            Shortfall::TooSlow => Ended::TooSlow,
        }
    }
}
