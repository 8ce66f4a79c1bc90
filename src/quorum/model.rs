//! An exhaustive search over the whole protocol: rounds, rollbacks, extensions that heal,
//! releases, the restart guard and tokens, over three nodes that restart and whose clocks drift,
//! with messages that come late, out of turn or not at all.
//!
//! ```text
//!   clients: Round, Fence, Lease, Extension, Presence, Roster, Timing    as they are
//!       │ queue of each link, in order; bytes of a dead one, whenever
//!       ▼
//!   servers: key, expiry, counter, run, marker, a clock of their own
//! ```
//!
//! What decides is the code of the library; the model only carries the messages and the time,
//! which moves in half seconds, so that an uptime in whole seconds shows its rounding. A message
//! that is lost is one that is never carried out. A client that pauses is one that hears late:
//! its timers are steps like any other, and may come late as well.
//!
//! Each rule that looks right and is not stands in [`Rule`], and must find its counterexample.

use smallvec::SmallVec;
use std::time::Duration;

use super::*;
use crate::clock::Instant;

mod cases;
mod client;
mod hold;
mod invariants;
mod server;
mod world;

const NODES: usize = 3;

/// Half a second.
const TICK: Duration = Duration::from_millis(500);

/// When the model begins, on the clocks of clients and nodes: an even number, so that whole
/// seconds begin with it.
const EPOCH: u64 = 2_000;

/// How old all servers and their data are by then: older than any delay.
const AGE: u64 = 1_000;

/// The library's rules, and those that look right and are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Right,
    /// Every node that answers has a vote.
    NoRestartGuard,
    /// The restart delay is the longest TTL, without the second for the rounding of uptimes.
    DelayWithoutItsSecond,
    /// An extension that completes after the deadline counts.
    ExtensionAfterDeadline,
    /// A key that was set again counts on any node, whoever had it before the data was lost.
    ExtensionCountsAnyNode,
    /// An absent key is set again whoever took it away.
    HealingWithoutDeletedVotes,
    /// A failed round is taken back only where it was granted.
    RollbackWhereGranted,
    /// Validity begins at the decision.
    ValidityFromDecision,
    /// The majority is one of the nodes that answered.
    QuorumOfReachable,
    /// The whole TTL is valid, although clocks drift.
    NoAllowance,
    /// A release deletes whoever's key it finds.
    DeleteWithoutCompare,
}

/// How a server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Loss {
    Empty,
    WithData,
    WithoutLastWrite,
    /// It never went: its data did.
    Flushed,
}

/// What is searched.
#[derive(Clone, Debug)]
struct Scenario {
    rule: Rule,
    clients: usize,
    /// The second client meets the nodes when it asks them first; the other one knows them.
    cold: bool,
    /// Rounds of each client.
    rounds: u8,
    /// Extensions of each hold.
    extensions: u8,
    /// In ticks. The longest TTL is the same.
    ttl: u64,
    /// By how many ticks clocks may drift over a TTL: what is taken off the validity, and what
    /// one node's clock gains or loses.
    drift: u64,
    fencing: bool,
    /// How many servers may lose something, each once, and what.
    losses: u8,
    loss: Loss,
    /// How many connections may break, and whether their bytes may be carried out afterwards.
    breaks: u8,
    strays: bool,
    /// How many answers may take their time; the others arrive at once.
    late: u8,
    /// Somebody deletes the key of the first client's lock on every node.
    deletes: bool,
    /// Holders may release before the end.
    releases: bool,
    /// Search on until all is quiet, and see what is left.
    to_the_end: bool,
    /// What has happened when the search begins.
    prefix: &'static [Step],
    /// The first tick and the last one. Whole seconds begin with even ones.
    begins: u8,
    horizon: u8,
}

impl Scenario {
    /// What the library makes of the settings: a round may be decided as long as validity is left.
    fn timing(&self) -> Timing {
        let allowed = match self.rule {
            Rule::NoAllowance => 0,
            _ => self.drift,
        };
        let drift = Drift::new(0.0, ticks(allowed)).unwrap();
        let budget = ticks(self.ttl - allowed) - Duration::from_millis(1);
        Timing::new(ticks(self.ttl), drift, budget, Duration::ZERO).unwrap()
    }

    /// The longest TTL in whole seconds, and one.
    fn restart_delay(&self) -> Duration {
        let whole = Duration::from_secs(self.ttl.div_ceil(2));
        match self.rule {
            Rule::DelayWithoutItsSecond => whole,
            _ => whole + Duration::from_secs(1),
        }
    }

    fn guard(&self) -> GuardMode {
        match self.rule {
            Rule::NoRestartGuard => GuardMode::Off,
            _ => GuardMode::Auto,
        }
    }
}

fn ticks(count: u64) -> Duration {
    TICK * count as u32
}

/// A moment on the clocks of the clients, which run alike.
fn at(now: u8) -> Instant {
    Instant::from_nanos(0).after(ticks(EPOCH + u64::from(now)))
}

fn quorum() -> Quorum {
    Quorum::of(NODES)
}

/// Signs one round: of which client, and which of its rounds.
type Owner = u8;

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Ask {
    Grant,
    Raise {
        to: u64,
    },
    /// The number of the extension among those of its hold.
    Extend {
        number: u8,
        restore: bool,
    },
    Release,
}

/// What a server makes of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reply {
    /// The marker is read behind it, and behind an extension that may set the key again.
    Granted {
        counter: u64,
        marker: u64,
    },
    Refused {
        marker: u64,
    },
    Raised {
        to: u64,
        done: bool,
    },
    Extended {
        number: u8,
        what: Extended,
        marker: Option<u64>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Extended {
    Renewed,
    Restored,
    Absent,
    Taken,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin(usize),
    /// A new connection, and what the server says of itself on it.
    Meet(usize, usize),
    /// The oldest request of a link is carried out, and its answer arrives.
    Serve(usize, usize),
    /// The same, but the answer takes its time.
    ServeLate(usize, usize),
    /// The oldest answer of a link arrives.
    Hear(usize, usize),
    /// The round's time is over.
    GiveUp(usize),
    Extend(usize),
    Release(usize),
    /// The client finds that its lease is over.
    Lose(usize),
    Break(usize, usize),
    /// Bytes of a dead connection are carried out.
    Stray(usize),
    Restart(usize),
    Delete(usize),
    /// The clock of a node gains a tick.
    Gain(usize),
    /// The clocks move on, but for that of one node.
    Tick {
        but: Option<usize>,
    },
}
