//! What the keeper remembers of one lease.

use std::sync::Arc;

use super::Cell;
use crate::clock::Instant;
use crate::quorum::Lease;

/// A lease in the keeper's care.
pub(super) struct Record {
    pub(super) lease: Lease,
    /// The present holder's.
    pub(super) cell: Arc<Cell>,
    pub(super) granted: Instant,
    /// Since when the present holder has it.
    pub(super) since: Instant,
    /// How many holders it has had before this one.
    pub(super) turn: u32,
    /// Whether nothing is known of the tokens that its grant reserved.
    pub(super) adopted: bool,
    /// The moments in the heap that are this record's: the next to wake at, and one behind it
    /// which will do when that has passed.
    pub(super) armed: Instant,
    pub(super) behind: Instant,
}

impl Record {
    pub(super) fn is_armed_at(&self, moment: Instant) -> bool {
        self.armed == moment || self.behind == moment
    }

    /// Sees to it that something wakes at `until` or before. `true` if that needs a new moment in
    /// the heap.
    pub(super) fn arm(&mut self, until: Instant, now: Instant) -> bool {
        if self.armed <= now {
            self.armed = std::mem::replace(&mut self.behind, Instant::FAR);
        }
        // An earlier one wakes, finds nothing due, and arms the next.
        if now < self.armed && self.armed <= until {
            return false;
        }
        self.behind = std::mem::replace(&mut self.armed, until);
        true
    }
}
