//! Extensions that a holder asks for, one after another.

use std::collections::VecDeque;

use tracing::Span;

use super::{ExtendReply, Freed, HoldId, Keeper, Record};
use crate::clock::Instant;
use crate::coordinator::{LeaseId, LeaseStore};
use crate::error::{ExtendError, Loss};
use crate::quorum::{Step, Timing};

/// An extension that the holder asked for.
pub(super) struct ByHand {
    timing: Timing,
    reply: ExtendReply,
    span: Span,
    /// On its way, or waiting for the one that is.
    sent: bool,
}

impl Keeper {
    /// The holder asks for an extension, by `timing` where it names another TTL.
    pub(crate) fn extend(
        &mut self,
        hold: HoldId,
        timing: Option<Timing>,
        (reply, span): (ExtendReply, Span),
        now: Instant,
        store: &mut dyn LeaseStore,
    ) -> Option<Freed> {
        let id = hold.lease;
        let current = |record: &&mut Record| record.turn == hold.turn;
        let Some(record) = self.records.get_mut(&id).filter(current) else {
            let _ = reply.send(Err(ExtendError::Lost(Loss::Released)));
            return None;
        };
        self.by_hand.entry(id).or_default().push_back(ByHand {
            timing: timing.unwrap_or(record.cell.spec().terms.timing),
            reply,
            span,
            sent: false,
        });
        if let Step::Lost(_) = record.lease.step(now) {
            return self.step(id, now, store);
        }
        self.next_by_hand(id, now, store);
        None
    }

    /// Sends the next extension by hand, when none is on its way.
    pub(super) fn next_by_hand(&mut self, id: LeaseId, now: Instant, store: &mut dyn LeaseStore) {
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        if record.lease.extending() || now >= record.lease.deadline() {
            return;
        }
        if let Some(hand) = self.by_hand.get_mut(&id).and_then(VecDeque::front_mut) {
            hand.sent = true;
            let (timing, span) = (hand.timing, std::mem::replace(&mut hand.span, Span::none()));
            record.lease.begin();
            store.extend(now, id, &timing, record.lease.deadline(), span);
        } else {
            self.by_hand.remove(&id);
        }
    }

    /// The extension that was on its way is decided: whoever asked for it hears of it.
    pub(super) fn answer_by_hand(&mut self, id: LeaseId, answer: Result<(), ExtendError>) {
        if let Some(hands) = self.by_hand.get_mut(&id)
            && hands.front().is_some_and(|hand| hand.sent)
            && let Some(hand) = hands.pop_front()
        {
            // A caller who is gone wants no answer.
            let _ = hand.reply.send(answer);
        }
    }

    /// Tells those who wait for an extension that there is nothing left to extend.
    pub(super) fn refuse(&mut self, id: LeaseId, loss: Loss) {
        for hand in self.by_hand.remove(&id).into_iter().flatten() {
            let _ = hand.reply.send(Err(ExtendError::Lost(loss)));
        }
    }
}
