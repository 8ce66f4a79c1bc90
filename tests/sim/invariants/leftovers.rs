//! One TTL after all is quiet no key is left. Only the keys of a ticket that nobody took up last
//! for as long as they were extended by hand.

use super::Seen;
use crate::support::{JOB, ms};

/// Lets a TTL pass, and looks.
///
/// # Errors
/// What is left; or what an invariant has to say.
pub fn check(seen: &Seen) -> Result<(), String> {
    let ttl = match seen.abandoned.get() {
        true => seen.longest,
        false => seen.ttl,
    };
    seen.world.run_for(ttl.mul_f64(1.02) + ms(300))?;
    match seen.world.cluster().holders(JOB).as_slice() {
        [] => Ok(()),
        left => Err(format!("keys are left: {left:?}")),
    }
}
