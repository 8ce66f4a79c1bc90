//! What is heard of a lock without asking: notes of releases and of grants (P12).
//!
//! ```text
//!   freed(node) × quorum ─► Hint::Freed     taken(node, rival) × quorum ─► Hint::Taken
//! ```
//!
//! A note is a hint and never a vote. Notes of one node arrive in the order in which it did the
//! deeds, over the connection that also brings its answers: a refusal makes the notes before it
//! stale. One that was missed costs a wait until the holder's keys run out.

use std::time::Duration;

use smallvec::SmallVec;

use super::contest::Rival;
use super::nodes::{NodeSet, Quorum};

/// What a quorum of nodes has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// The lock was let go.
    Freed,
    /// Somebody has taken it, for so long at least.
    Taken { left: Duration },
}

/// The notes on one lock since the last attempt began.
#[derive(Clone, Debug)]
pub(crate) struct Notes {
    quorum: Quorum,
    /// The nodes that tell us.
    live: NodeSet,
    freed: NodeSet,
    taken: SmallVec<[Option<(Rival, Duration)>; 5]>,
    /// It was let go since the last attempt began.
    due: bool,
}

impl Notes {
    pub(crate) fn new(quorum: Quorum) -> Self {
        Notes {
            quorum,
            live: NodeSet::EMPTY,
            freed: NodeSet::EMPTY,
            taken: SmallVec::from_elem(None, quorum.nodes()),
            due: false,
        }
    }

    /// Whether a quorum tells us: else it is of no use to wait for notes.
    pub(crate) fn is_live(&self) -> bool {
        self.quorum.reached_by(self.live)
    }

    /// Whether `node` tells us.
    pub(crate) fn hears(&self, node: usize) -> bool {
        self.live.contains(node)
    }

    /// It was let go since the last attempt began, as far as a quorum says.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// `node` tells us from now on. What it would have told before is unknown, so this counts as
    /// a note of a release.
    pub(crate) fn confirmed(&mut self, node: usize) -> Option<Hint> {
        self.live.insert(node);
        self.freed(node)
    }

    /// `node` tells us nothing any more.
    pub(crate) fn cut(&mut self, node: usize) {
        self.live.remove(node);
    }

    /// An attempt begins: what was heard before it is used up.
    pub(crate) fn begin(&mut self) {
        self.freed = NodeSet::EMPTY;
        self.taken.fill(None);
        self.due = false;
    }

    /// `node` has refused: it did so after all that it has told.
    pub(crate) fn refused(&mut self, node: usize) {
        self.freed.remove(node);
    }

    /// A key was let go on `node`.
    pub(crate) fn freed(&mut self, node: usize) -> Option<Hint> {
        self.freed.insert(node);
        if let Some(taken) = self.taken.get_mut(node) {
            *taken = None;
        }
        if !self.quorum.reached_by(self.freed) {
            return None;
        }
        self.freed = NodeSet::EMPTY;
        self.due = true;
        Some(Hint::Freed)
    }

    /// A key was set on `node` by `rival`, for `left`.
    pub(crate) fn taken(&mut self, node: usize, rival: Rival, left: Duration) -> Option<Hint> {
        self.freed.remove(node);
        *self.taken.get_mut(node)? = Some((rival, left));
        let mut lefts: SmallVec<[Duration; 5]> = (self.taken.iter().flatten())
            .filter(|(of, _)| *of == rival)
            .map(|(_, left)| *left)
            .collect();
        lefts.sort_unstable();
        // With each key that runs out it comes closer to having no quorum.
        let left = *lefts.get(self.quorum.needed().checked_sub(1)?)?;
        self.due = false;
        Some(Hint::Taken { left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Duration = Duration::from_secs(3);

    fn notes() -> Notes {
        Notes::new(Quorum::of(5))
    }

    #[test]
    fn a_quorum_of_distinct_nodes_says_that_it_is_free() {
        let mut notes = notes();
        assert_eq!(notes.freed(0), None);
        assert_eq!(notes.freed(0), None);
        assert_eq!(notes.freed(1), None);
        assert!(!notes.is_due());
        assert_eq!(notes.freed(4), Some(Hint::Freed));
        assert!(notes.is_due());
        // And once more only after as many.
        assert_eq!(notes.freed(0), None);
    }

    #[test]
    fn a_refusal_makes_the_notes_before_it_stale() {
        let mut notes = notes();
        notes.freed(0);
        notes.freed(1);
        notes.refused(1);
        assert_eq!(notes.freed(2), None);
        assert_eq!(notes.freed(1), Some(Hint::Freed));
    }

    #[test]
    fn an_attempt_uses_up_what_was_heard() {
        let mut notes = notes();
        (0..3).for_each(|node| assert!(notes.freed(node).is_none() || node == 2));
        notes.begin();
        assert!(!notes.is_due());
        notes.freed(0);
        notes.begin();
        assert_eq!(notes.freed(1), None);
        assert_eq!(notes.freed(2), None);
        assert_eq!(notes.freed(0), Some(Hint::Freed));
    }

    #[test]
    fn a_quorum_of_grants_to_one_rival_says_that_it_is_taken() {
        let mut notes = notes();
        (0..3).for_each(|node| assert!(notes.freed(node).is_none() || node == 2));
        assert_eq!(notes.taken(0, 7, LEFT), None);
        assert_eq!(notes.taken(1, 8, LEFT), None);
        assert_eq!(notes.taken(2, 7, LEFT), None);
        assert!(notes.is_due());
        let taken = notes.taken(3, 7, LEFT / 2);
        assert_eq!(taken, Some(Hint::Taken { left: LEFT }));
        assert!(!notes.is_due());
    }

    #[test]
    fn a_key_that_was_let_go_is_not_taken_any_more() {
        let mut notes = notes();
        notes.taken(0, 7, LEFT);
        notes.taken(1, 7, LEFT);
        notes.freed(1);
        assert_eq!(notes.taken(2, 7, LEFT), None);
    }

    #[test]
    fn a_node_that_begins_to_tell_may_have_missed_a_note() {
        let mut notes = notes();
        assert!(!notes.is_live());
        assert_eq!(notes.confirmed(0), None);
        assert_eq!(notes.confirmed(1), None);
        assert!(!notes.is_live());
        assert_eq!(notes.confirmed(2), Some(Hint::Freed));
        assert!(notes.is_live() && notes.hears(1));
        notes.cut(1);
        assert!(!notes.is_live() && !notes.hears(1));
    }
}
