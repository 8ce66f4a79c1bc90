//! Extensions (P7) and releases (P6) of leases that stand.

use std::sync::Arc;
use std::time::Duration;

use tracing::{Span, warn};

use super::{Coordinator, Extending, LeaseId, Outcome, Pending, Releasing};
use crate::clock::Instant;
use crate::node::{Ask, AskId, NOBODY, Order, Reply};
use crate::quorum::{Extension, NodeSet, Outcome as Extended, Renewal, Skip, Spread, Timing};

impl Coordinator {
    pub(super) fn begin_extension(
        &mut self,
        now: Instant,
        lease: LeaseId,
        timing: &Timing,
        present: Instant,
        span: Span,
    ) {
        let id = self.new_id();
        let Some(held) = self.held.get(&lease) else {
            return;
        };
        let order = Arc::new(held.order.clone());
        let known = held.presence.known(self.quorum);
        let hints = self.hints(held.spread);
        let hint = held.spread.value();
        let mut extension = Extension::begin(now, self.quorum, *timing);
        for node in self.quorum.all().iter() {
            // Where the node acknowledged the key in its present life, its absence means that
            // somebody deleted it; elsewhere it is set again.
            let ask = Ask::Extend {
                ttl_millis: timing.ttl_millis(),
                restore: !known.contains(node),
                fence: hints[node],
            };
            let submitted = match self.duplicate(node, now) {
                Some(fault) => Err(fault),
                None => self.nodes[node].submit(id, &order, ask, now),
            };
            if let Err(fault) = submitted {
                self.meters.failed(node, &fault);
                extension.vote(node, Renewal::Failed);
            } else if let Some(held) = self.held.get_mut(&lease) {
                held.touched.insert(node);
                held.presence.asked(node);
            }
        }
        if let Some(held) = self.held.get_mut(&lease) {
            held.span = held.span.max(timing.gone(now).since(now));
        }
        self.timers.set(extension.expires(), id);
        let extending = Extending {
            lease,
            extension,
            until: timing.deadline(now),
            present,
            span,
            decided: false,
            unknown: false,
            ahead: NodeSet::EMPTY,
            known,
            hint,
        };
        self.asks
            .insert(id, Pending::Extension(Box::new(extending)));
        self.judge_extension(id, now);
    }

    pub(super) fn renewed(&mut self, id: AskId, node: usize, reply: &Reply, now: Instant) {
        let votes = self.roster.counted(now).contains(node);
        let Some(Pending::Extension(extending)) = self.asks.get_mut(&id) else {
            return;
        };
        let held = self.held.get_mut(&extending.lease);
        let (mut gone, mut counts) = (false, votes);
        if let (Reply::Renewed | Reply::Restored, Some(held)) = (reply, held) {
            gone = held.presence.is_missing(node);
            counts = held.presence.stands(node, extending.until, votes, now);
        }
        let renewal = match reply {
            Reply::Renewed | Reply::Restored if !counts => Renewal::Uncounted,
            Reply::Restored if gone => Renewal::Mended,
            Reply::Renewed | Reply::Restored => Renewal::Renewed,
            Reply::Held { .. } => Renewal::Taken,
            Reply::Absent if extending.known.contains(node) => Renewal::Deleted,
            _ => Renewal::Failed,
        };
        extending.extension.vote(node, renewal);
        if let Some(held) = self.held.get_mut(&extending.lease) {
            // The end of a connection is no word of the node; nor is it down yet.
            if !matches!(reply, Reply::Failed(fault) if fault.is_silence()) {
                held.presence.heard(node);
            }
            match renewal {
                Renewal::Renewed | Renewal::Mended | Renewal::Uncounted => {
                    held.presence.found(node);
                    held.spread.stores(node, extending.hint);
                }
                Renewal::Deleted => held.presence.missed(node, votes),
                Renewal::Taken => held.presence.taken(node),
                Renewal::Failed => {}
            }
        }
        // Past its end it is left to its timer, as a round is; once decided it only waits to be
        // complete.
        if extending.decided || now < extending.extension.expires() {
            self.judge_extension(id, now);
        }
    }

    pub(super) fn judge_extension(&mut self, id: AskId, now: Instant) {
        let Some(Pending::Extension(extending)) = self.asks.get_mut(&id) else {
            return;
        };
        let complete = extending.extension.answered() == self.quorum.all();
        let skip = self.pace.judge(extending.ahead);
        if skip == Skip::Frozen {
            extending.ahead = NodeSet::EMPTY;
            extending.decided = true;
            self.outcomes.push_back(Outcome::Frozen);
        }
        if !extending.decided {
            let outcome = extending.extension.outcome(now, extending.present);
            if outcome != Extended::Held {
                extending.decided = true;
                extending.unknown = outcome == Extended::Unknown;
                extending.trace(outcome, now);
                self.outcomes.push_back(Outcome::Extended {
                    lease: extending.lease,
                    started: extending.extension.started(),
                    outcome,
                });
            }
        }
        if extending.unknown {
            // Late answers count, inside the validity: for a quorum, and for a loss.
            let lease = extending.lease;
            let started = extending.extension.started();
            let late = match extending.extension.outcome(now, extending.present) {
                Extended::Renewed { deadline } => Some(Outcome::Prolonged { lease, deadline }),
                outcome @ (Extended::Deleted | Extended::Taken) => Some(Outcome::Extended {
                    lease,
                    started,
                    outcome,
                }),
                Extended::Held | Extended::Unknown => None,
            };
            extending.unknown = late.is_none();
            self.outcomes.extend(late);
        }
        let ended = complete || now >= extending.extension.expires();
        if let (true, Skip::Stepped(nodes)) = (ended, skip) {
            extending.ahead = NodeSet::EMPTY;
            for node in nodes.iter() {
                warn!(node = %self.names[node], "the node's clock was set forward: no vote for now");
                self.roster.stepped(node, now);
            }
        }
        if complete {
            self.asks.remove(&id);
        }
    }

    /// An answer brought the node's own time: is it where it can be (P5)?
    ///
    /// A grant judges nothing; it is what the first extension is compared with. While something is
    /// held it takes no baseline's place, since a standstill before it would go unseen.
    pub(super) fn compare_clocks(
        &mut self,
        node: usize,
        id: AskId,
        time: Option<Duration>,
        now: Instant,
    ) {
        let Some(time) = time else { return };
        let sent = match self.asks.get_mut(&id) {
            Some(Pending::Extension(extending)) => {
                let sent = extending.extension.started();
                if self.pace.is_ahead(node, time, sent, now) {
                    extending.ahead.insert(node);
                }
                return;
            }
            Some(Pending::Round(attempt)) => attempt.round.started(),
            Some(Pending::Granted { started, .. }) => *started,
            _ => return,
        };
        self.pace.begin(node, time, sent, self.held.is_empty());
    }

    pub(super) fn begin_release(&mut self, now: Instant, lease: LeaseId, timing: &Timing) {
        let Some(held) = self.held.remove(&lease) else {
            return;
        };
        self.let_go(&held.order.key, now);
        // All nodes hear of it (P6), but for those that were never asked and are down.
        let all = self.quorum.all();
        let to = held.touched.or(all.minus(self.down));
        let until = timing.gone(now).max(now.after(held.span));
        let terms = (until, held.spread);
        let id = self.send_releases(Arc::new(held.order), to, terms, Some(lease), now);
        self.timers.set(now.after(timing.node_timeout()), id);
    }

    /// Sends the release for `order` to the nodes in `to`; for `lease`, its end is reported.
    pub(super) fn send_releases(
        &mut self,
        order: Arc<Order>,
        to: NodeSet,
        (until, spread): (Instant, Spread),
        lease: Option<LeaseId>,
        now: Instant,
    ) -> AskId {
        let id = self.new_id();
        let hints = self.hints(spread);
        let mut taken = NodeSet::EMPTY;
        for node in to.iter() {
            let fence = hints[node];
            let release = Ask::Release { until, fence };
            if self.nodes[node].submit(id, &order, release, now).is_ok() {
                taken.insert(node);
            }
        }
        let failed = self.quorum.all().minus(taken);
        self.unanswered += taken.len();
        let releasing = Releasing {
            key: Arc::clone(&order.key),
            lease: lease.unwrap_or(NOBODY),
            confirmed: NodeSet::EMPTY,
            absent: NodeSet::EMPTY,
            failed,
            reported: lease.is_none(),
            unconfirmed: false,
        };
        self.asks.insert(id, Pending::Release(Box::new(releasing)));
        self.report_release(id, false);
        id
    }

    pub(super) fn released(&mut self, id: AskId, node: usize, reply: &Reply, now: Instant) {
        if let Some(Pending::Release(releasing)) = self.asks.get_mut(&id) {
            self.unanswered -= 1;
            match reply {
                Reply::Released { deleted, .. } => {
                    releasing.confirmed.insert(node);
                    if !deleted {
                        releasing.absent.insert(node);
                    }
                }
                _ => releasing.failed.insert(node),
            }
            if let Reply::Released { listeners, .. } = reply {
                let key = Arc::clone(&releasing.key);
                self.heard_by(node, &key, *listeners, now);
            }
            self.report_release(id, false);
        }
    }

    /// The budget of a release is spent: what is known by now is what its caller gets.
    pub(super) fn give_release_up(&mut self, id: AskId) {
        self.report_release(id, true);
    }

    fn report_release(&mut self, id: AskId, spent: bool) {
        let Some(Pending::Release(releasing)) = self.asks.get_mut(&id) else {
            return;
        };
        let answered = releasing.confirmed.or(releasing.failed);
        // A quorum of deletions, or so many keys gone before that no quorum had one, or no word
        // from so many nodes that neither can be known.
        let spare = self.quorum.spare();
        let deleted = releasing.confirmed.minus(releasing.absent);
        let certain = self.quorum.reached_by(deleted)
            || releasing.absent.len() > spare
            || releasing.failed.len() > spare
            || answered == self.quorum.all();
        let confirmed = self.quorum.reached_by(releasing.confirmed);
        let late = releasing.unconfirmed && confirmed;
        if late || ((certain || spent) && !releasing.reported) {
            releasing.unconfirmed = !releasing.reported && !confirmed;
            releasing.reported = true;
            self.outcomes.push_back(Outcome::Released {
                lease: releasing.lease,
                confirmed: releasing.confirmed.len(),
                absent: releasing.absent.len(),
            });
        }
        if answered == self.quorum.all() {
            self.asks.remove(&id);
        }
    }
}
