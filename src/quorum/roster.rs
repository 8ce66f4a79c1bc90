//! Whose vote counts: the restart guard (P10) and independence (P11).
//!
//! A node that came back empty may grant what it has granted before. So a node has no vote before
//! its uptime, and the age of the marker in its data, have passed `restart_delay`; by then every
//! key that it may have forgotten has run out. Two addresses of one server have one vote.
//!
//! ```text
//!  read(node, Reading) ─┐                       ┌─► counted(now): the set with a vote
//!  wiped(node)         ─┴─► one entry a node ───┴─► standing(node, now): why not
//! ```

use std::time::Duration;

use super::nodes::{NodeSet, Quorum};
use crate::clock::Instant;

/// The setting `restart_guard`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) enum GuardMode {
    /// Guarded, but for a set of nodes that is newly built as a whole.
    #[default]
    Auto,
    /// Guarded without exception.
    Strict,
    /// Every node that answers has a vote.
    Off,
}

/// What a node says of itself on a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Random for each process of a server; `None` where `INFO` is forbidden.
    pub(crate) run_id: Option<String>,
    /// In whole seconds, rounded down; `None` where `INFO` is forbidden.
    pub(crate) uptime: Option<Duration>,
    /// The marker in its data: written once, when the set was first used. Another value than
    /// before means that the data was lost meanwhile.
    pub(crate) marker: u64,
    /// The time since it was written, by the node's own clock.
    pub(crate) marker_age: Duration,
}

/// Whether a node has a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing has been read of it yet.
    Unread,
    /// It has one.
    Counts,
    /// It, or its data, is younger than `restart_delay`.
    Young { until: Instant },
    /// It is the same server as an earlier node of the list.
    Twin { of: usize },
}

/// What is known of one node.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Entry {
    run_id: Option<String>,
    marker: u64,
    counts_from: Instant,
    /// The marker alone: what tells a new set from a restarted one.
    marker_from: Instant,
    /// Whether it was ever seen to restart or to lose its data.
    restarted: bool,
}

/// The nodes of a new set are found one after another: this is the least that is waited for the
/// last of them.
const FOUNDING: Duration = Duration::from_secs(2);

/// The vote rules over all nodes of one client.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Roster {
    quorum: Quorum,
    mode: GuardMode,
    delay: Duration,
    entries: Vec<Option<Entry>>,
    counted: NodeSet,
    /// When `counted` changes by the passing of time.
    next_change: Instant,
}

impl Roster {
    pub(crate) fn new(quorum: Quorum, mode: GuardMode, delay: Duration) -> Self {
        Roster {
            quorum,
            mode,
            delay,
            entries: vec![None; quorum.nodes()],
            counted: NodeSet::EMPTY,
            next_change: Instant::FAR,
        }
    }

    /// A new connection to `node` has brought `reading`.
    pub(crate) fn read(&mut self, node: usize, reading: Reading, now: Instant) {
        let known = self.entries.get(node).and_then(Option::as_ref);
        let other_process = known.is_some_and(|entry| entry.run_id != reading.run_id);
        let other_data = known.is_some_and(|entry| entry.marker != reading.marker);
        let age = match reading.uptime {
            _ if other_process => Duration::ZERO,
            Some(uptime) => uptime.min(reading.marker_age),
            None => reading.marker_age,
        };
        let mut counts_from = now.after(self.delay.saturating_sub(age));
        // What was accepted as part of a new set stays so while it is the same process with the
        // same data; anything else waits from now on.
        if let Some(entry) = known.filter(|_| !other_process && !other_data) {
            counts_from = counts_from.min(entry.counts_from);
        }
        let restarted = other_process || other_data || known.is_some_and(|entry| entry.restarted);
        if let Some(slot) = self.entries.get_mut(node) {
            *slot = Some(Entry {
                run_id: reading.run_id,
                marker: reading.marker,
                counts_from,
                marker_from: now.after(self.delay.saturating_sub(reading.marker_age)),
                restarted,
            });
        }
        self.accept_new_set(now);
        self.recount(now);
    }

    /// The marker of `node` is gone or another one: its data was lost under a live connection.
    pub(crate) fn wiped(&mut self, node: usize, now: Instant) {
        if let Some(Some(entry)) = self.entries.get_mut(node) {
            entry.counts_from = now.after(self.delay);
            entry.marker_from = entry.counts_from;
            entry.restarted = true;
        }
        self.recount(now);
    }

    /// The clock of `node` was set forward: what it has let run out early may have been granted
    /// before, as after a restart.
    pub(crate) fn stepped(&mut self, node: usize, now: Instant) {
        if let Some(Some(entry)) = self.entries.get_mut(node) {
            entry.counts_from = entry.counts_from.max(now.after(self.delay));
        }
        self.recount(now);
    }

    /// The nodes that have a vote at `now`.
    pub(crate) fn counted(&mut self, now: Instant) -> NodeSet {
        if now >= self.next_change {
            self.recount(now);
        }
        self.counted
    }

    /// Why `node` has a vote or none.
    pub(crate) fn standing(&self, node: usize, now: Instant) -> Standing {
        let Some(Some(entry)) = self.entries.get(node) else {
            return Standing::Unread;
        };
        if let Some(of) = self.twin(node, entry) {
            return Standing::Twin { of };
        }
        if self.mode == GuardMode::Off || now >= entry.counts_from {
            return Standing::Counts;
        }
        Standing::Young {
            until: entry.counts_from,
        }
    }

    /// When the vote of `node` began to count, or will begin.
    pub(crate) fn counts_from(&self, node: usize) -> Option<Instant> {
        Some(self.entries.get(node)?.as_ref()?.counts_from)
    }

    /// How long a node must have been there, with its data.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// The `run_id` that `node` reported last.
    pub(crate) fn run_id(&self, node: usize) -> Option<&str> {
        self.entries.get(node)?.as_ref()?.run_id.as_deref()
    }

    /// The earlier node that is the same server.
    fn twin(&self, node: usize, entry: &Entry) -> Option<usize> {
        let run_id = entry.run_id.as_ref()?;
        self.entries[..node]
            .iter()
            .position(|other| matches!(other, Some(other) if other.run_id.as_ref() == Some(run_id)))
    }

    /// `auto`: a set that is new as a whole counts at once. It needs all N answers, each with a
    /// young marker, and no node that was known as something else before. Of these, one whose marker
    /// was written long after the first one may have come back empty to a set that was in use by
    /// then: it waits.
    fn accept_new_set(&mut self, now: Instant) {
        let new = |entry: &Option<Entry>| matches!(entry, Some(entry) if now < entry.marker_from && !entry.restarted);
        if self.mode != GuardMode::Auto || !self.entries.iter().all(new) {
            return;
        }
        let first = self
            .entries
            .iter()
            .flatten()
            .map(|entry| entry.marker_from)
            .min();
        let founded = first.map_or(now, |first| first.after(self.founding()));
        for entry in self.entries.iter_mut().flatten() {
            if entry.marker_from <= founded {
                entry.counts_from = now;
            }
        }
    }

    /// The time in which the nodes of a new set have their first client.
    fn founding(&self) -> Duration {
        FOUNDING.max(self.delay / 6)
    }

    fn recount(&mut self, now: Instant) {
        self.counted = NodeSet::EMPTY;
        self.next_change = Instant::FAR;
        for node in 0..self.quorum.nodes() {
            match self.standing(node, now) {
                Standing::Counts => self.counted.insert(node),
                Standing::Young { until } => self.next_change = self.next_change.min(until),
                Standing::Unread | Standing::Twin { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
