//! What is on its way, and what its replies are for.

/// What a run of replies is for.
pub(super) enum Flight {
    /// So many entries of the lane, and whether the marker was read behind them.
    Batch {
        entries: usize,
        marker: bool,
        replies: usize,
    },
    Introduction,
    /// A push confirms a command that has no reply.
    Push,
}

impl Flight {
    /// How many replies it has.
    pub(super) fn replies(&self) -> usize {
        match self {
            Flight::Batch { replies, .. } => *replies,
            Flight::Introduction => 2,
            // An error, and nothing else.
            Flight::Push => 1,
        }
    }
}
