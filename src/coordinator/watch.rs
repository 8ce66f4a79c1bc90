//! The life of each node, for people to look at: a derivation from what connection and roster
//! say, and the moments at which that changed. Nothing decides by it.
//!
//! ```text
//!   events: Met, Lost, Down ─┐
//!   answers: errors, or good ┼─► Sight of a node ── state(now) ─► NodeState, for how long
//!   lane: hangs?  roster ────┘
//! ```

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::Coordinator;
use crate::clock::Instant;
use crate::node::{Fault, FaultKind, Reply};
use crate::quorum::Standing;
use crate::status::{NodeState, NodeStatus};

/// What is remembered of one node.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    contact: Contact,
    /// Since when it hangs.
    hangs: Option<Instant>,
    /// An answer that says that the node serves nobody, and when it came.
    refusal: Option<(Fault, Instant)>,
    /// When the last thing ended that stood in the way under an open connection.
    free_from: Instant,
    talk: Talk,
}

/// What was said of outages, so that a node that comes and goes does not fill the log.
#[derive(Clone, Debug, Default)]
struct Talk {
    /// When the last warning was.
    warned: Option<Instant>,
    /// When it was met last.
    met: Option<Instant>,
    /// Whether the present outage was told.
    told: bool,
}

/// A node that was back for less than this has not been away for a second time.
const BRIEF: Duration = Duration::from_secs(2);

/// How often such a node is worth a warning.
const REMIND: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
enum Contact {
    /// There is none yet, and this is how the last one ended.
    Opening(Option<Fault>, Instant),
    Open(Instant),
    Down(Fault, Instant),
}

/// What the roster says of a node, and by which settings.
#[derive(Clone, Debug)]
pub(super) struct Right<'a> {
    pub(super) standing: Standing,
    /// The earlier node that is the same server.
    pub(super) twin: Option<&'a str>,
    /// When its vote began to count, or will.
    pub(super) counts_from: Option<Instant>,
    /// The setting `restart_delay`.
    pub(super) delay: Duration,
    /// The silence by which a node hangs.
    pub(super) patience: Duration,
}

impl Sight {
    /// A node that is being connected to.
    pub(super) fn new(now: Instant) -> Self {
        Sight {
            contact: Contact::Opening(None, now),
            hangs: None,
            refusal: None,
            free_from: now,
            talk: Talk::default(),
        }
    }

    /// The node is down. Whether that is news: not again where it was back for a moment only, but
    /// for a reminder each minute.
    pub(super) fn is_news(&mut self, now: Instant) -> bool {
        let within = |since: Option<Instant>, span| since.is_some_and(|it| now.since(it) < span);
        let brief = within(self.talk.met, BRIEF);
        self.talk.told = !(brief && within(self.talk.warned, REMIND));
        if self.talk.told {
            self.talk.warned = Some(now);
        }
        self.talk.told
    }

    /// Whether the outage that is over was told.
    pub(super) fn was_told(&self) -> bool {
        self.talk.told
    }

    /// A new connection.
    pub(super) fn met(&mut self, now: Instant) {
        // The same connection is met again when its node has lost its data.
        if !matches!(self.contact, Contact::Open(_)) {
            self.talk.met = Some(now);
            self.contact = Contact::Open(now);
            self.hangs = None;
            self.refusal = None;
            self.free_from = now;
        }
    }

    /// The connection has ended, of a node that has hung for so long.
    pub(super) fn lost(&mut self, why: Fault, hung: Option<Duration>, now: Instant) {
        self.hangs = hung.map(|hung| now.before(hung));
        self.contact = Contact::Opening(Some(why), now);
    }

    /// There is no connection to be had.
    pub(super) fn down(&mut self, why: Fault, now: Instant) {
        self.hangs = None;
        self.contact = Contact::Down(why, now);
    }

    /// What the node answered to a request. What concerns the one key says nothing of the node.
    pub(super) fn answered(&mut self, reply: &Reply, now: Instant) {
        match reply {
            Reply::Failed(fault) => {
                let own = !matches!(
                    fault.kind(),
                    FaultKind::NotALock
                        | FaultKind::Counter
                        | FaultKind::Overloaded
                        | FaultKind::ConnectionLost
                        | FaultKind::Timeout
                );
                if own {
                    let since = self.refusal.take().map_or(now, |(_, since)| since);
                    self.refusal = Some((fault.clone(), since));
                }
            }
            // A release passes where a grant does not.
            Reply::Released { .. } | Reply::Raised(_) => {}
            _ => {
                if self.refusal.take().is_some() {
                    self.free_from = now;
                }
            }
        }
    }

    /// Looks whether it hangs, by the queue of its connection.
    pub(super) fn look(&mut self, hung: Option<Duration>, now: Instant) {
        if !matches!(self.contact, Contact::Open(_)) {
            return;
        }
        match hung {
            Some(hung) => self.hangs = Some(now.before(hung)),
            None if self.hangs.take().is_some() => self.free_from = now,
            None => {}
        }
    }

    /// Where it stands, and for how long.
    pub(super) fn state(&self, vote: &Right<'_>, now: Instant) -> (NodeState, Duration) {
        if let Some(since) = self.hangs {
            let hung = now.since(since);
            let detail = format!("no answer for {} ms", (vote.patience + hung).as_millis());
            let why = Fault::new(FaultKind::Timeout, detail);
            return (NodeState::Suspect { why }, hung);
        }
        let opened = match &self.contact {
            Contact::Opening(why, since) => {
                let why = why.clone();
                return (NodeState::Connecting { why }, now.since(*since));
            }
            Contact::Down(why, since) => return (out(why.clone()), now.since(*since)),
            Contact::Open(since) => *since,
        };
        if let Some(other) = vote.twin {
            let why = Fault::new(FaultKind::Duplicate, format!("the same server as {other}"));
            return (NodeState::Excluded { why }, now.since(opened));
        }
        if let Some((why, since)) = &self.refusal {
            return (out(why.clone()), now.since(*since));
        }
        match vote.standing {
            Standing::Young { until } => {
                let left = until.since(now);
                (
                    NodeState::Restarting { left },
                    vote.delay.saturating_sub(left),
                )
            }
            Standing::Counts => {
                let counts_from = vote.counts_from.filter(|from| *from <= now);
                let since = opened
                    .max(self.free_from)
                    .max(counts_from.unwrap_or(opened));
                (NodeState::Ready, now.since(since))
            }
            Standing::Unread | Standing::Twin { .. } => {
                (NodeState::Connecting { why: None }, now.since(opened))
            }
        }
    }
}

/// How often the queues are looked at, at most: what hung for less is not worth telling.
const LOOK: Duration = Duration::from_millis(10);

impl Coordinator {
    /// Looks which nodes hang.
    pub(super) fn look(&mut self, now: Instant) {
        if self.sights.is_empty() {
            self.sights = vec![Sight::new(now); self.nodes.len()];
        } else if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        self.meters.stale = true;
        for (sight, node) in self.sights.iter_mut().zip(&self.nodes) {
            sight.look(node.hangs(now), now);
        }
    }

    /// Warns of the pairs that `node`, just met, makes: either may have been met first.
    pub(super) fn name_twins(&self, node: usize, now: Instant) {
        for twin in self.quorum.all().iter() {
            if let Standing::Twin { of } = self.roster.standing(twin, now)
                && (twin == node || of == node)
            {
                warn!(
                    node = %self.names[twin], same_as = %self.names[of],
                    "two configured nodes are one server, and have one vote"
                );
            }
        }
    }

    /// What is known of the nodes now.
    pub(super) fn statuses(&mut self, now: Instant) -> Vec<NodeStatus> {
        self.look(now);
        for (sight, node) in self.sights.iter_mut().zip(&self.nodes) {
            sight.look(node.hangs(now), now);
        }
        let all = self.quorum.all();
        all.iter().map(|node| self.status(node, now)).collect()
    }

    /// What is known of one of them, as of the last look at its queue.
    pub(super) fn status(&self, node: usize, now: Instant) -> NodeStatus {
        let standing = self.roster.standing(node, now);
        let twin = match standing {
            Standing::Twin { of } => self.names.get(of).map(|name| &**name),
            _ => None,
        };
        let right = Right {
            standing,
            twin,
            counts_from: self.roster.counts_from(node),
            delay: self.roster.delay(),
            patience: self.patience,
        };
        let (state, since) = self.sights[node].state(&right, now);
        NodeStatus {
            name: Arc::clone(&self.names[node]),
            state,
            since,
        }
    }
}

/// What passes by itself is no exclusion.
fn out(why: Fault) -> NodeState {
    match why.kind().is_permanent() {
        true => NodeState::Excluded { why },
        false => NodeState::Down { why },
    }
}

#[cfg(test)]
mod tests;
