//! What a lock is, and the terms on which it is asked for and held.

use std::sync::Arc;
use std::time::Duration;

use crate::quorum::{Cohort, Retry, Timing};

/// A lock: what, under which key, on which terms.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) resource: Arc<[u8]>,
    pub(crate) key: Arc<[u8]>,
    pub(crate) terms: Arc<Terms>,
}

/// The terms that locks are asked for and held on. Locks without settings of their own share
/// those of their client.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) timing: Timing,
    pub(crate) retry: Retry,
    /// From one extension to the next; `None` where the holder extends by hand.
    pub(crate) extend_every: Option<Duration>,
    /// The longest time that a lease may be held in all.
    pub(crate) max_hold: Option<Duration>,
    /// How far a lease is handed on inside the client.
    pub(crate) cohort: Cohort,
}

/// What the unit tests hold: a lease of a second, and so many rounds to get it.
#[cfg(test)]
pub(crate) fn spec(attempts: u32) -> Arc<Spec> {
    use crate::quorum::{Drift, Jitter, Retry};

    let ms = Duration::from_millis;
    let drift = Drift::new(0.0, ms(0)).expect("no drift");
    let terms = Terms {
        timing: Timing::new(ms(1000), drift, ms(50), ms(0)).expect("a second"),
        retry: Retry {
            delay: ms(20),
            max_delay: ms(20),
            jitter: Jitter::None,
            attempts: std::num::NonZeroU32::new(attempts),
        },
        extend_every: None,
        max_hold: None,
        cohort: Cohort {
            max_handoffs: 0,
            max_time: ms(0),
        },
    };
    Arc::new(Spec {
        resource: Arc::from(&b"job"[..]),
        key: Arc::from(&b"{job}"[..]),
        terms: Arc::new(terms),
    })
}
