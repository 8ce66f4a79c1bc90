//! What each part of the engine counts. Whoever makes a group finds its counters at that moment.

use std::fmt::Debug;
use std::time::Duration;

use super::list;
use super::meter::{Counter, Family, Histogram, Label, Share};

/// How a round or an acquisition has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Granted,
    Contended,
    Unavailable,
    Rejected,
    TooSlow,
    /// Its caller is gone.
    Cancelled,
    /// The client is.
    Closed,
}

/// The ends that a round can have.
const DECIDED: [Ended; 5] = [
    Ended::Granted,
    Ended::Contended,
    Ended::Unavailable,
    Ended::Rejected,
    Ended::TooSlow,
];

/// Acquisitions, from their entry to their end.
pub(crate) struct Queueing {
    ended: Family<Ended>,
    wait: Histogram,
    rounds: Histogram,
    waiters: Share,
}

impl Default for Queueing {
    fn default() -> Self {
        let all = DECIDED.into_iter().chain([Ended::Cancelled, Ended::Closed]);
        Queueing {
            ended: Family::new(&list::ACQUIRES, Vec::new(), "outcome", all),
            wait: Histogram::new(&list::ACQUIRE_WAIT, &[]),
            rounds: Histogram::new(&list::ACQUIRE_ROUNDS, &[]),
            waiters: Share::new(&list::WAITERS, &[]),
        }
    }
}

impl Queueing {
    /// So many are going on.
    pub(crate) fn waiters(&mut self, count: usize) {
        self.waiters.set(count);
    }

    /// One has its answer, after so many rounds and so long.
    pub(crate) fn answered(&mut self, ended: Ended, rounds: u32, waited: Duration) {
        self.ended.add(ended);
        self.rounds
            .size(usize::try_from(rounds).unwrap_or(usize::MAX));
        if ended == Ended::Granted {
            self.wait.time(waited);
        }
    }

    /// One has ended without an answer of the nodes.
    pub(crate) fn ended(&mut self, ended: Ended) {
        self.ended.add(ended);
    }
}

/// Rounds of requests to all nodes.
pub(crate) struct Rounds {
    decided: Family<Ended>,
    margins: Family<Margin>,
    second_trips: Counter,
    late_grants: Counter,
}

/// How many nodes above the quorum have granted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Margin(pub(crate) usize);

impl Debug for Margin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Rounds {
    /// Over nodes of which so many are not needed.
    pub(crate) fn new(spare: usize) -> Self {
        let margins = (0..=spare).map(Margin);
        Rounds {
            decided: Family::new(&list::ROUNDS, Vec::new(), "outcome", DECIDED),
            margins: Family::new(&list::GRANTS, Vec::new(), "margin", margins),
            second_trips: Counter::new(&list::SECOND_TRIPS, &[]),
            late_grants: Counter::new(&list::LATE_GRANTS, &[]),
        }
    }

    pub(crate) fn decided(&mut self, ended: Ended) {
        self.decided.add(ended);
    }

    /// Every node has had its say on a round that was granted.
    pub(crate) fn complete(&mut self, margin: Margin) {
        self.margins.add(margin);
    }

    pub(crate) fn second_trip(&self) {
        self.second_trips.add();
    }

    /// A node has granted what nobody waits for any more.
    pub(crate) fn late_grant(&self) {
        self.late_grants.add();
    }
}

/// One node. `K` tells kinds of failures apart.
pub(crate) struct Node<K> {
    round_trip: Histogram,
    failures: Family<K>,
    states: Vec<(&'static str, Share)>,
}

impl<K: Copy + PartialEq + Debug> Node<K> {
    /// The node that is called `name`, which can be in these states.
    pub(crate) fn new(name: &str, states: &[&'static str]) -> Self {
        let node = || -> Label { ("node", name.to_owned()) };
        let share = |state: &&'static str| {
            let labels = [node(), ("state", (*state).to_owned())];
            (*state, Share::new(&list::NODE_STATE, &labels))
        };
        Node {
            round_trip: Histogram::new(&list::NODE_ROUND_TRIP, &[node()]),
            failures: Family::new(&list::NODE_FAILURES, vec![node()], "kind", []),
            states: states.iter().map(share).collect(),
        }
    }

    /// It has answered a request that was made so long ago.
    pub(crate) fn answered(&self, after: Duration) {
        self.round_trip.time(after);
    }

    pub(crate) fn failed(&mut self, kind: K) {
        self.failures.add(kind);
    }

    /// Where it stands now.
    pub(crate) fn stands(&mut self, now: &'static str) {
        for (state, share) in &mut self.states {
            share.set(usize::from(*state == now));
        }
    }
}

/// Leases that are held. `L` tells losses apart.
pub(crate) struct Holding<L> {
    held: Share,
    hold: Histogram,
    handoffs: Counter,
    losses: Family<L>,
}

impl<L: Copy + PartialEq + Debug> Holding<L> {
    /// Leases that can be lost in these ways.
    pub(crate) fn new(losses: impl IntoIterator<Item = L>) -> Self {
        Holding {
            held: Share::new(&list::HELD_LOCKS, &[]),
            hold: Histogram::new(&list::HOLD, &[]),
            handoffs: Counter::new(&list::HANDOFFS, &[]),
            losses: Family::new(&list::LOSSES, Vec::new(), "cause", losses),
        }
    }

    /// So many are held.
    pub(crate) fn held(&mut self, count: usize) {
        self.held.set(count);
    }

    /// A holder has had its lock for so long.
    pub(crate) fn ended(&self, held: Duration) {
        self.hold.time(held);
    }

    pub(crate) fn handed_on(&self) {
        self.handoffs.add();
    }

    pub(crate) fn lost(&mut self, cause: L) {
        self.losses.add(cause);
    }
}

/// How an extension was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    Renewed,
    /// No quorum answered in time; it is tried again.
    Unconfirmed,
    Lost,
}

/// Extensions of leases.
pub(crate) struct Extending {
    outcomes: Family<Extended>,
    lag: Histogram,
    left: Histogram,
}

impl Default for Extending {
    fn default() -> Self {
        let all = [Extended::Renewed, Extended::Unconfirmed, Extended::Lost];
        Extending {
            outcomes: Family::new(&list::EXTENSIONS, Vec::new(), "outcome", all),
            lag: Histogram::new(&list::EXTENSION_LAG, &[]),
            left: Histogram::new(&list::VALIDITY_LEFT, &[]),
        }
    }
}

impl Extending {
    /// One begins, so long after it was due.
    pub(crate) fn began(&self, late: Duration) {
        self.lag.time(late);
    }

    /// One has its quorum, with so much of the old validity left.
    pub(crate) fn renewed(&mut self, left: Duration) {
        self.outcomes.add(Extended::Renewed);
        self.left.time(left);
    }

    pub(crate) fn decided(&mut self, outcome: Extended) {
        self.outcomes.add(outcome);
    }
}

/// What goes to a node in one piece.
pub(crate) struct Flush {
    bytes: Histogram,
    requests: Histogram,
}

impl Default for Flush {
    fn default() -> Self {
        Flush {
            bytes: Histogram::new(&list::FLUSH_BYTES, &[]),
            requests: Histogram::new(&list::FLUSH_REQUESTS, &[]),
        }
    }
}

impl Flush {
    /// So many requests, in so many bytes where they are written at all.
    pub(crate) fn took(&self, requests: usize, bytes: Option<usize>) {
        if requests > 0 {
            self.requests.size(requests);
            if let Some(bytes) = bytes {
                self.bytes.size(bytes);
            }
        }
    }
}
