//! The settings of a coordinator.

use std::time::Duration;

use crate::quorum::{Drift, GuardMode};

/// The settings of a coordinator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) guard: GuardMode,
    pub(crate) restart_delay: Duration,
    /// A request without an answer for so long makes a node one that hangs.
    pub(crate) patience: Duration,
    pub(crate) drift: Drift,
    pub(crate) counters: Option<Counters>,
}

/// How fencing counters are kept (P9).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) retention: Duration,
    pub(crate) max_ttl: Duration,
    /// How many numbers a grant reserves: one for each holder that its lease may have.
    pub(crate) block: u64,
}

impl Counters {
    /// By how much a counter may be ahead of another and still be believed: `max_ttl`, of which
    /// a second is 2^20.
    pub(super) fn reach(self) -> u64 {
        let reach = (self.max_ttl.as_millis() << 20) / 1000;
        u64::try_from(reach).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_believed_as_far_ahead_as_a_lease_may_last() {
        let counters = Counters {
            retention: Duration::from_secs(86_400),
            max_ttl: Duration::from_millis(2_500),
            block: 1,
        };
        assert_eq!(counters.reach(), (5 << 20) / 2);
    }
}
