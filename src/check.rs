//! `Client::check`: how nodes, network and clocks are, and whether the settings fit them.
//!
//! ```text
//!   Plan ─► node/survey × N, on a thread of their own ─► Survey × N ─┐
//!   what the client knows (Client::nodes) ─────────────────────────┬─┴─► judge (pure) ─► Report
//!   settings ──────────────────────────────────────────────────────┘
//! ```
//!
//! The surveys do not run on the client's thread: a client that was not used yet has none, and to
//! start it would write the marker to each node. So a check disturbs no extension either.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::join_all;

mod clocks;
mod finding;
#[cfg(feature = "serde")]
mod json;
mod judge;
mod node;
mod report;
mod table;

use crate::client::Client;
use crate::clock::{Clock, Instant};
use crate::key;
use crate::node::aside::aside;
use crate::node::survey::{Plan, Survey};
pub use finding::{Finding, Severity};
use judge::Seen;
pub use node::{ClockReading, NodeReport};
pub use report::Report;

/// How long the probe of round trips and clocks takes, and how many requests it spreads over
/// that. A clock's rate is bounded to two round trips over the span: 0.2 ms are 400 millionths.
const SPAN: Duration = Duration::from_secs(1);
const SAMPLES: u32 = 50;

impl Client {
    /// Asks every node how it is, and says whether the settings of this client fit what was
    /// measured: for people, before a cluster goes into use and when something is wrong with it.
    ///
    /// It reads only: no key is written, and the marker of a new set is not set by it. Every node
    /// gets a connection of its own, which ends with the check. Commands that the user may not
    /// send are left out, and what they would tell is unknown in the report.
    ///
    /// It takes the second of the probe and, where a node does not answer, up to four times the
    /// larger of 2 s and two node timeouts. It works from any executor. There is no error: what
    /// goes wrong is in the report.
    ///
    /// # Cancel safety
    /// Dropping the future ends the probes.
    ///
    /// # Round trips
    /// About 70 to each node.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let report = Client::in_memory(5).check().await;
    /// assert_eq!((report.quorum(), report.votes(), report.may_fail()), (3, 5, 2));
    /// assert!(report.is_good(), "{report}");
    /// # });
    /// # }
    /// ```
    pub async fn check(&self) -> Report {
        let core = self.core();
        let settings = core.settings();
        let (surveyor, clock) = core.surveyor();
        let node_timeout = settings.timing(None).map(|timing| timing.node_timeout());
        let plan = Plan {
            prefix: settings.prefix.as_str().into(),
            marker_key: key::marker_key(&settings.prefix).into(),
            lock_key: key::lock_key(&settings.prefix, b"check").into(),
            node_timeout: node_timeout.unwrap_or(SPAN),
            span: SPAN,
            samples: SAMPLES,
        };
        let names = core.node_names();
        let surveys = match aside(move || join_all(surveyor(plan))).await {
            Ok(surveys) => surveys,
            Err(fault) => vec![Survey::failed(fault); names.len()],
        };
        judge::judge(&Seen {
            settings,
            names: &names,
            surveys: &surveys,
            statuses: &self.nodes().await,
            now: clock.now(),
            wall: wall(&clock),
        })
    }
}

/// This machine's wall clock beside the one that leases are measured with. A clock that a test
/// moves has none beside it.
fn wall(clock: &Clock) -> Option<(Instant, Duration)> {
    match clock {
        Clock::Boot => {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
            Some((clock.now(), wall))
        }
        Clock::Manual(_) => None,
    }
}
