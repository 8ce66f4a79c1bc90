//! There is never a lock's key without an expiry, not for the time of one command.

use super::Seen;

pub fn check(seen: &Seen) -> Result<(), String> {
    seen.world.everlasting().map_or(Ok(()), Err)
}
