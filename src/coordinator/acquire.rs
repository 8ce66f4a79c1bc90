//! Rounds: begin, count, grant or roll back (P1, P3).

use std::sync::Arc;

use super::{Attempt, AttemptId, Coordinator, Outcome, Pending, Secret, SeenVote};
use crate::clock::Instant;
use crate::error::NodeVote;
use crate::node::{Ask, AskId, Fault, FaultKind, Order, Reply};
use crate::quorum::{
    Contest, Contested, Failed, Fence, FencingToken, NodeSet, Round, Shortfall, Timing, Verdict,
};

/// How often the contender with most nodes asks for the others in one round.
const MOST_AGAIN: u32 = 3;

impl Coordinator {
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
            round: id,
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
            contest: Contest::new(self.quorum, secret.owner.head()),
            again: 0,
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
                Err(fault) => {
                    self.meters.failed(node, &fault);
                    pending.see(node, &Reply::Failed(fault));
                }
            }
        }
        self.timers.set(pending.round.expires(), id);
        self.attempts.insert(attempt, id);
        self.asks.insert(id, Pending::Round(Box::new(pending)));
        self.judge(id, now);
    }

    pub(super) fn voted(&mut self, id: AskId, node: usize, reply: Reply, now: Instant) {
        if let Some(Pending::Round(attempt)) = self.asks.get_mut(&id) {
            attempt.see(node, &reply);
            let key = Arc::clone(&attempt.order.key);
            if let Reply::Held { .. } = reply {
                self.refused_by(node, &key);
            }
            // Past its end the round is left to its timer, which is due in this very turn: by
            // then every answer that is here has been counted. Else the first of the answers that
            // a stalled process finds would condemn those behind it.
            if self.is_open(id, now) {
                self.judge(id, now);
            }
        }
    }

    fn is_open(&self, id: AskId, now: Instant) -> bool {
        match self.asks.get(&id) {
            Some(Pending::Round(attempt)) => now < attempt.round.expires(),
            _ => false,
        }
    }

    /// Whose vote counts has changed: every open round is looked at again. One past its end is
    /// left to its timer.
    pub(super) fn judge_all(&mut self, now: Instant) {
        let rounds = self.attempts.values().copied();
        let mut rounds: Vec<AskId> = rounds.filter(|&id| self.is_open(id, now)).collect();
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
            Verdict::Failed(Shortfall::Contended) if self.ask_again(id, now) => {}
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
        let (listening, freed) = self.heard(&attempt.order.key);
        let standing = attempt.contest.standing(attempt.round.granted());
        let contended = why == Shortfall::Contended;
        let took = attempt.took(now);
        if contended && attempt.again == 0 {
            self.trip.took(took);
        }
        let failed = Failed {
            why,
            contest: contended.then_some(standing),
            listening,
            freed,
            trip: self.trip.mean(),
        };
        let attempt = attempt.id;
        self.meters.rounds.decided(why.into());
        self.attempts.remove(&attempt);
        self.roll_back(id, now);
        self.outcomes.push_back(Outcome::Failed {
            attempt,
            failed,
            votes,
        });
    }

    /// After a split vote the contender with most nodes keeps them and asks the others once more,
    /// still in the same round, while the rest take theirs back (P12). `false` if that is not us,
    /// or if it has been tried often enough.
    fn ask_again(&mut self, id: AskId, now: Instant) -> bool {
        let Some(Pending::Round(attempt)) = self.asks.get_mut(&id) else {
            return false;
        };
        let first = match attempt.contest.standing(attempt.round.granted()) {
            Contested::Split { first, .. } => first,
            Contested::Held { .. } => false,
        };
        let over = attempt.again >= MOST_AGAIN || now >= attempt.round.expires();
        if !first || over || attempt.adopts {
            return false;
        }
        attempt.again += 1;
        let refused = attempt.round.refused();
        let order = Arc::clone(&attempt.order);
        let ttl_millis = attempt.timing.ttl_millis();
        let mut asked = NodeSet::EMPTY;
        let ask = Ask::Grant {
            ttl_millis,
            fence: self.fencing(0),
            block: self.block(),
            announced: true,
        };
        for node in refused.iter() {
            if self.nodes[node].submit(id, &order, ask, now).is_ok() {
                asked.insert(node);
            }
        }
        if let Some(Pending::Round(attempt)) = self.asks.get_mut(&id) {
            for node in asked.iter() {
                attempt.round.ask_again(node);
                attempt.seen[node] = None;
            }
        }
        !asked.is_empty()
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
            failed: Failed {
                why: Shortfall::Rejected,
                contest: None,
                listening: false,
                freed: false,
                trip: self.trip.mean(),
            },
            votes: votes.collect(),
        });
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
}
