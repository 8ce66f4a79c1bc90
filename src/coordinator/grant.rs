//! A round that was granted becomes a lease.

use std::sync::Arc;
use std::time::Duration;

use super::{Coordinator, Held, LeaseId, Outcome, Pending};
use crate::clock::Instant;
use crate::metrics::Ended;
use crate::node::{AskId, Reply};
use crate::quorum::{FencingToken, NodeSet, Presence};

impl Coordinator {
    /// A quorum has granted, and there is a token.
    pub(super) fn granted(
        &mut self,
        id: AskId,
        (deadline, counted): (Instant, NodeSet),
        token: FencingToken,
        now: Instant,
    ) {
        let Some(Pending::Round(attempt)) = self.asks.remove(&id) else {
            return;
        };
        let lease: LeaseId = id;
        self.attempts.remove(&attempt.id);
        let waiting = self.quorum.all().minus(attempt.round.answered());
        if attempt.again == 0 {
            self.trip.took(attempt.took(now));
        }
        self.meters.rounds.decided(Ended::Granted);
        let grants = attempt.round.granted();
        if waiting.is_empty() {
            self.count_margin(grants, now);
        } else {
            let started = attempt.round.started();
            let granted = Pending::Granted {
                lease,
                waiting,
                grants,
                started,
                deadline,
            };
            self.asks.insert(id, granted);
        }
        let first = match attempt.adopts {
            true => token,
            false => token.first_of(self.block()),
        };
        let spread = self.spread(attempt.fence.as_ref(), token);
        let granted = attempt.round.granted();
        if self.held.is_empty() {
            self.pace.forget_before(attempt.round.started());
        }
        self.listeners.hold(&attempt.order.key);
        self.held.insert(
            lease,
            Held {
                touched: attempt.round.owed(),
                presence: Presence::granted(self.quorum, granted, counted, deadline),
                order: Arc::unwrap_or_clone(attempt.order),
                token,
                span: Duration::ZERO,
                spread,
            },
        );
        self.outcomes.push_back(Outcome::Acquired {
            attempt: attempt.id,
            lease,
            token: first,
            timing: attempt.timing,
            votes: grants.len(),
            started: attempt.round.started(),
            deadline,
        });
    }

    /// An answer to a round that has its quorum already.
    pub(super) fn granted_late(&mut self, id: AskId, node: usize, reply: &Reply, now: Instant) {
        let votes = self.roster.counted(now).contains(node);
        let Some(Pending::Granted {
            lease,
            waiting,
            grants,
            deadline,
            ..
        }) = self.asks.get_mut(&id)
        else {
            return;
        };
        let deadline = *deadline;
        let granted = matches!(reply, Reply::Granted { .. } | Reply::Renewed);
        waiting.remove(node);
        if granted {
            grants.insert(node);
        }
        let (lease, grants, last) = (*lease, *grants, waiting.is_empty());
        if last {
            self.asks.remove(&id);
            self.count_margin(grants, now);
        }
        let Some(held) = self.held.get_mut(&lease) else {
            return;
        };
        if granted {
            held.presence.found(node);
            held.presence.stands(node, deadline, votes, now);
        }
        if let Reply::Granted {
            counter: Some(counter),
        } = reply
        {
            held.spread.stores(node, *counter);
        }
    }
}
