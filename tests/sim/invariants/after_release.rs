//! Nothing is asked for an owner token once its release was sent to that server (P2).

use super::Seen;

pub fn check(seen: &Seen) -> Result<(), String> {
    seen.world.asked_after_release().map_or(Ok(()), Err)
}
