//! The pure core's decisions, for `benches/core.rs` and nobody else.

use std::time::Duration;

use crate::clock::Instant;
use crate::quorum::{Drift, Quorum, Round, Timing, Verdict, Vote};

/// One round after another over the same nodes.
#[derive(Clone, Debug)]
pub struct Rounds {
    quorum: Quorum,
    timing: Timing,
    now: Instant,
}

impl Rounds {
    /// Rounds over so many nodes, with the default settings.
    #[must_use]
    pub fn new(nodes: usize) -> Option<Self> {
        let drift = Drift::new(0.01, Duration::from_millis(2))?;
        let (ttl, node_timeout) = (Duration::from_secs(10), Duration::from_millis(500));
        Some(Rounds {
            quorum: Quorum::of(nodes),
            timing: Timing::new(ttl, drift, node_timeout, Duration::ZERO).ok()?,
            now: Instant::from_nanos(1),
        })
    }

    /// Begins a round, hands it to all nodes and takes votes in until it is decided, with a
    /// verdict after each, as the coordinator does. The first `refusals` nodes refuse; the others
    /// grant. Says whether it was granted.
    #[must_use]
    pub fn decide(&mut self, refusals: usize) -> bool {
        let all = self.quorum.all();
        let mut round = Round::begin(self.now, self.quorum, self.timing);
        all.iter().for_each(|node| round.hand(node));
        for node in all.iter() {
            self.now = self.now.after(Duration::from_nanos(100));
            let refuses = node < refusals;
            round.vote(
                node,
                if refuses {
                    Vote::Refused
                } else {
                    Vote::Granted
                },
            );
            match round.verdict(self.now, all) {
                Verdict::Open => {}
                Verdict::Granted { .. } => return true,
                Verdict::Failed(_) => return false,
            }
        }
        false
    }
}
