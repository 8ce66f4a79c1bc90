//! A look at one node over a connection of its own, for `check`: what it says of itself, what we
//! may do there, how long an answer takes and how its clock runs. **It only reads.**
//!
//! ```text
//!   connect ─► INFO, HELLO, CONFIG GET ─► GET, PTTL, ACL DRYRUN ─► TIME × n ─► Survey
//!      └──────────── each within a limit; what is known by then is kept ───────┘
//! ```

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use tokio::time::timeout;

use super::Fault;
use super::connect::{Stage, Target, Wire, connect};
use crate::clock::{Clock, Instant};

mod facts;
mod look;

pub(crate) use facts::{Facts, Role};
use look::Look;

/// Looks at every node of a client at once, each by a future of its own.
pub(crate) type Surveyor =
    dyn Fn(Plan) -> Vec<LocalBoxFuture<'static, Survey>> + Send + Sync + 'static;

/// How to look.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) prefix: Arc<str>,
    pub(crate) marker_key: Arc<[u8]>,
    /// A key as a lock would have it. It is never written.
    pub(crate) lock_key: Arc<[u8]>,
    pub(crate) node_timeout: Duration,
    /// The span of the probe, and how many requests are spread over it.
    pub(crate) span: Duration,
    pub(crate) samples: u32,
}

impl Plan {
    /// The time for one connection, and for one answer: as patient as the client itself.
    fn limit(&self) -> Duration {
        let least = Duration::from_secs(2);
        self.node_timeout.saturating_mul(2).max(least)
    }
}

/// What one look has found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Survey {
    /// Why nothing more was found, or why the node serves no locks.
    pub(crate) fault: Option<Fault>,
    pub(crate) facts: Facts,
    /// The marker of the node's data: `None` where it could not be read.
    pub(crate) marker: Option<Marker>,
    /// The permissions that a lock needs and we lack.
    pub(crate) missing: Vec<String>,
    /// Whether more may be missing: the server does not let us look.
    pub(crate) unsure: bool,
    pub(crate) samples: Vec<Sample>,
}

/// When the set was first used, in milliseconds of the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Absent,
    Since(u64),
}

/// One round trip, and the node's own time in between where it told us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) sent: Instant,
    pub(crate) received: Instant,
    pub(crate) node_time: Option<Duration>,
}

impl Survey {
    /// Nothing is known yet, and it is not said why.
    pub(crate) fn blank() -> Self {
        Survey {
            fault: None,
            facts: Facts::default(),
            marker: None,
            missing: Vec::new(),
            unsure: true,
            samples: Vec::new(),
        }
    }

    /// Nothing could be found.
    pub(crate) fn failed(fault: Fault) -> Self {
        Survey {
            fault: Some(fault),
            ..Survey::blank()
        }
    }

    fn miss(&mut self, permission: String) {
        if !self.missing.contains(&permission) {
            self.missing.push(permission);
        }
    }
}

/// Looks at the server at `target`. Sets its own limits, and leaves nothing behind when dropped.
pub(crate) async fn survey(target: Target, plan: Plan, clock: Clock) -> Survey {
    let (stage, limit) = (Cell::new(Stage::default()), plan.limit());
    let wire = match timeout(limit, connect(&target, limit, &stage)).await {
        Ok(Ok(wire)) => wire,
        Ok(Err(fault)) => return Survey::failed(fault),
        Err(_) => return Survey::failed(stage.get().spent(limit)),
    };
    let Wire { connection, driver } = wire;
    let found = RefCell::new(Survey::blank());
    let look = Look {
        connection,
        plan: &plan,
        clock,
        found: &found,
    };
    let mut all = Box::pin(look.all());
    let fault = tokio::select! {
        biased;
        ended = &mut all => ended.err(),
        // What was said before the connection ended is here by now, and may say why.
        () = driver => all.as_mut().await.err(),
    };
    drop(all);
    let mut found = found.into_inner();
    found.missing.sort_unstable();
    if let Some(fault) = fault {
        found.fault = Some(fault);
    }
    found
}
