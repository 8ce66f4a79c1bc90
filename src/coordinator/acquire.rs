//! Rounds: begin, count, grant or roll back (P1, P3).

use std::sync::Arc;
use std::time::Duration;

use super::{Attempt, AttemptId, Coordinator, Held, LeaseId, Outcome, Pending, Secret, SeenVote};
use crate::clock::Instant;
use crate::error::NodeVote;
use crate::node::{Ask, AskId, Fault, FaultKind, Order, Reply};
use crate::quorum::{
    Fence, FencingToken, NodeSet, Presence, Round, Shortfall, Standing, Timing, Verdict, Vote,
};

impl Coordinator {
    /// A node that is the same server as an earlier one has no vote, and is not asked (P11).
    pub(super) fn duplicate(&self, node: usize, now: Instant) -> Option<Fault> {
        match self.roster.standing(node, now) {
            Standing::Twin { of } => {
                let detail = format!("the same server as {}", self.names[of]);
                Some(Fault::new(FaultKind::Duplicate, detail))
            }
            _ => None,
        }
    }

    pub(super) fn begin_round(
        &mut self,
        now: Instant,
        attempt: AttemptId,
        key: &Arc<[u8]>,
        secret: Secret,
        (ask, fence): (Ask, Option<Fence>),
        timing: &Timing,
    ) {
        let id = self.new_id();
        let order = Arc::new(Order {
            key: Arc::clone(key),
            token: secret.owner,
        });
        let mut pending = Attempt {
            id: attempt,
            order,
            timing: *timing,
            round: Round::begin(now, self.quorum, *timing),
            seen: vec![None; self.nodes.len()],
            adopts: matches!(ask, Ask::Extend { .. }),
            fence,
            token: secret.fence,
        };
        for node in self.quorum.all().iter() {
            let submitted = match self.duplicate(node, now) {
                Some(fault) => Err(fault),
                None => self.nodes[node].submit(id, &pending.order, ask, now),
            };
            match submitted {
                Ok(()) => pending.round.hand(node),
                Err(fault) => pending.see(node, Reply::Failed(fault)),
            }
        }
        self.timers.set(pending.round.expires(), id);
        self.attempts.insert(attempt, id);
        self.asks.insert(id, Pending::Round(Box::new(pending)));
        self.judge(id, now);
    }

    pub(super) fn voted(&mut self, id: AskId, node: usize, reply: Reply, now: Instant) {
        if let Some(Pending::Round(attempt)) = self.asks.get_mut(&id) {
            attempt.see(node, reply);
            // Past its end the round is left to its timer, which is due in this very turn: by
            // then every answer that is here has been counted. Else the first of the answers that
            // a stalled process finds would condemn those behind it.
            if now < attempt.round.expires() {
                self.judge(id, now);
            }
        }
    }

    /// Whose vote counts has changed: every open round is looked at again. One past its end is
    /// left to its timer.
    pub(super) fn judge_all(&mut self, now: Instant) {
        let open = |id: &&AskId| match self.asks.get(id) {
            Some(Pending::Round(attempt)) => now < attempt.round.expires(),
            _ => false,
        };
        let mut rounds: Vec<AskId> = self.attempts.values().filter(open).copied().collect();
        rounds.sort_unstable();
        for id in rounds {
            self.judge(id, now);
        }
    }

    pub(super) fn judge(&mut self, id: AskId, now: Instant) {
        let counted = self.roster.counted(now);
        let Some(Pending::Round(attempt)) = self.asks.get(&id) else {
            return;
        };
        match attempt.round.verdict(now, counted) {
            Verdict::Open => {}
            Verdict::Granted { deadline } => self.agree(id, deadline, counted, now),
            Verdict::Failed(why) => self.failed(id, why, now),
        }
    }

    /// The round cannot succeed: it is taken back and reported.
    pub(super) fn failed(&mut self, id: AskId, why: Shortfall, now: Instant) {
        let counted = self.roster.counted(now);
        let Some(Pending::Round(attempt)) = self.asks.get(&id) else {
            return;
        };
        let votes = self.votes(attempt, counted, now);
        let attempt = attempt.id;
        self.attempts.remove(&attempt);
        self.roll_back(id, now);
        self.outcomes.push_back(Outcome::Failed {
            attempt,
            why,
            votes,
        });
    }

    /// There is no owner token to be had, and so no round.
    pub(super) fn without_owner(&mut self, attempt: AttemptId) {
        let fault = Fault::from(FaultKind::Randomness);
        let votes = self.names.iter().map(|node| NodeVote {
            node: Arc::clone(node),
            vote: SeenVote::Failed(fault.clone()),
        });
        self.outcomes.push_back(Outcome::Failed {
            attempt,
            why: Shortfall::Rejected,
            votes: votes.collect(),
        });
    }

    pub(super) fn granted(&mut self, id: AskId, deadline: Instant, token: FencingToken) {
        let Some(Pending::Round(attempt)) = self.asks.remove(&id) else {
            return;
        };
        let lease: LeaseId = id;
        self.attempts.remove(&attempt.id);
        let waiting = self.quorum.all().minus(attempt.round.answered());
        if !waiting.is_empty() {
            let started = attempt.round.started();
            let granted = Pending::Granted {
                lease,
                waiting,
                started,
            };
            self.asks.insert(id, granted);
        }
        let spread = self.spread(attempt.fence.as_ref(), token);
        if self.held.is_empty() {
            self.pace.forget_before(attempt.round.started());
        }
        self.held.insert(
            lease,
            Held {
                touched: attempt.round.owed(),
                presence: Presence::granted(attempt.round.granted()),
                order: Arc::unwrap_or_clone(attempt.order),
                token,
                span: Duration::ZERO,
                spread,
            },
        );
        self.outcomes.push_back(Outcome::Acquired {
            attempt: attempt.id,
            lease,
            token,
            timing: attempt.timing,
            started: attempt.round.started(),
            deadline,
        });
    }

    /// An answer to a round that has its quorum already.
    pub(super) fn granted_late(&mut self, id: AskId, node: usize, reply: &Reply) {
        let Some(Pending::Granted { lease, waiting, .. }) = self.asks.get_mut(&id) else {
            return;
        };
        waiting.remove(node);
        let (lease, last) = (*lease, waiting.is_empty());
        if last {
            self.asks.remove(&id);
        }
        let Some(held) = self.held.get_mut(&lease) else {
            return;
        };
        if let Reply::Granted { .. } | Reply::Renewed = reply {
            held.presence.found(node);
        }
        if let Reply::Granted {
            counter: Some(counter),
        } = reply
        {
            held.spread.stores(node, *counter);
        }
    }

    /// Sends the release to every node that may have set the key (P3).
    pub(super) fn roll_back(&mut self, id: AskId, now: Instant) {
        let Some(Pending::Round(attempt)) = self.asks.remove(&id) else {
            return;
        };
        if attempt.adopts {
            return;
        }
        let until = attempt.timing.gone(now);
        let order = Arc::clone(&attempt.order);
        let spread = self.spread(attempt.fence.as_ref(), FencingToken::NONE);
        self.send_releases(order, attempt.round.owed(), (until, spread), None, now);
    }

    /// Every node's part, for the error.
    fn votes(&self, attempt: &Attempt, counted: NodeSet, now: Instant) -> Vec<NodeVote> {
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
    /// Notes a node's answer, as a vote and for the error's text.
    fn see(&mut self, node: usize, reply: Reply) {
        let (vote, seen) = match reply {
            Reply::Granted { counter } => {
                if let (Some(counter), Some(fence)) = (counter, &mut self.fence) {
                    fence.granted(node, counter);
                }
                (Vote::Granted, SeenVote::Granted)
            }
            Reply::Renewed => (Vote::Granted, SeenVote::Granted),
            Reply::Held { left } => (Vote::Refused, SeenVote::Held { left }),
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
