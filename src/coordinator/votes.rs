//! What the nodes say in a round: as votes, and as every node's part in the error.

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, Coordinator, SeenVote};
use crate::clock::Instant;
use crate::error::NodeVote;
use crate::node::{Fault, FaultKind, Reply};
use crate::quorum::{Fence, NodeSet, Standing, Vote};

impl Coordinator {
    /// Every node's part, for the error.
    pub(super) fn votes(&self, attempt: &Attempt, counted: NodeSet, now: Instant) -> Vec<NodeVote> {
        let fence = attempt.fence.as_ref();
        let raising = fence.map_or(NodeSet::EMPTY, Fence::raising);
        let seen = attempt.seen.iter().enumerate().map(|(node, seen)| {
            let vote = match seen {
                Some(SeenVote::Granted) if !counted.contains(node) => {
                    SeenVote::Failed(self.without_vote(node, now))
                }
                Some(SeenVote::Granted) if raising.contains(node) => {
                    let detail = "no answer to the raise of its fencing counter";
                    SeenVote::Failed(Fault::new(FaultKind::Timeout, detail))
                }
                Some(vote) => vote.clone(),
                None if now >= attempt.round.expires() => {
                    let limit = attempt.timing.node_timeout().as_millis();
                    let detail = format!("no answer within {limit} ms");
                    SeenVote::Failed(Fault::new(FaultKind::Timeout, detail))
                }
                None => SeenVote::NotWaitedFor,
            };
            NodeVote {
                node: Arc::clone(&self.names[node]),
                vote,
            }
        });
        seen.collect()
    }

    /// Why the grant of a node does not count (P10, P11).
    fn without_vote(&self, node: usize, now: Instant) -> Fault {
        if let Some(fault) = self.duplicate(node, now) {
            return fault;
        }
        let detail = match self.roster.standing(node, now) {
            Standing::Young { until } => {
                format!("has a vote again in {:.1?}", until.since(now))
            }
            _ => String::from("has no vote yet"),
        };
        Fault::new(FaultKind::Restarting, detail)
    }
}

impl Attempt {
    /// How long the round has taken. Beyond its end it was not the nodes that took so long: this
    /// process stood still.
    pub(super) fn took(&self, now: Instant) -> Duration {
        let took = now.since(self.round.started());
        took.min(self.timing.node_timeout())
    }

    /// Notes a node's answer, as a vote and for the error's text.
    pub(super) fn see(&mut self, node: usize, reply: &Reply) {
        let (vote, seen) = match reply.clone() {
            Reply::Granted { counter } => {
                if let (Some(counter), Some(fence)) = (counter, &mut self.fence) {
                    fence.granted(node, counter);
                }
                (Vote::Granted, SeenVote::Granted)
            }
            Reply::Renewed => (Vote::Granted, SeenVote::Granted),
            Reply::Held { left, rival } => {
                if let Some(rival) = rival {
                    self.contest.refused(node, rival, left);
                }
                (Vote::Refused, SeenVote::Held { left })
            }
            Reply::Absent => (Vote::Refused, SeenVote::Absent),
            Reply::Failed(fault) if fault.kind().is_permanent() => {
                (Vote::Rejected, SeenVote::Failed(fault))
            }
            Reply::Failed(fault) => (Vote::Failed, SeenVote::Failed(fault)),
            other => {
                let detail = format!("{other:?} to a grant");
                let fault = Fault::new(FaultKind::Protocol, detail);
                (Vote::Failed, SeenVote::Failed(fault))
            }
        };
        self.round.vote(node, vote);
        self.seen[node].get_or_insert(seen);
    }
}
