//! Who a node is, on each new connection: whose votes count, and what it still knows (P10, P11).

use tracing::{debug, info, warn};

use super::{Coordinator, Pending};
use crate::clock::Instant;
use crate::node::{self, Fault, FaultKind};
use crate::quorum::{Reading, Standing};

impl Coordinator {
    /// A new connection: whose vote counts may have changed.
    pub(super) fn met(&mut self, node: usize, life: node::Life, now: Instant) {
        let before = self.roster.run_id(node).map(str::to_owned);
        let reading = Reading {
            run_id: life.run_id,
            uptime: life.uptime,
            marker: life.marker,
            marker_age: life.marker_age,
        };
        if reading.run_id.is_none() && self.roster.standing(node, now) == Standing::Unread {
            warn!(
                node = %self.names[node],
                "INFO is not allowed here: the marker alone tells how old the node's data is, \
                 and one server under two addresses cannot be told from two"
            );
        }
        let restarted = before.is_some() && before != reading.run_id;
        self.roster.read(node, reading, now);
        self.sights[node].met(now);
        if restarted {
            self.forget_keys(node);
            self.pace.forget(node);
            // What waits for this connection asks another life of the node than it was meant for.
            for pending in self.asks.values_mut() {
                if let Pending::Extension(extending) = pending {
                    extending.known.remove(node);
                }
            }
        }
        if self.down.contains(node) {
            if self.sights[node].was_told() {
                info!(node = %self.names[node], "the node is back");
            }
            self.down.remove(node);
        }
        if let Standing::Young { until } = self.roster.standing(node, now) {
            let wait = until.since(now);
            debug!(node = %self.names[node], ?wait, "restarted lately: no vote yet");
        }
        self.name_twins(node, now);
        self.judge_all(now);
    }

    /// The node has lost its keys: what it acknowledged before says nothing now.
    pub(super) fn forget_keys(&mut self, node: usize) {
        for held in self.held.values_mut() {
            held.presence.forget(node);
            held.spread.forget(node);
        }
    }

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
}
