//! Once all is healed everybody who waits is served within a bound: nodes that restarted get their
//! vote back, and then the waiters take turns.

use std::time::Duration;

use quorumlock::testing::world::Task;

use super::Seen;
use crate::support::{ms, restart_delay};

/// Runs the world until all workers have ended.
///
/// # Errors
/// One was not served in time; or what an invariant has to say.
pub fn check(seen: &Seen, workers: &[Task<()>]) -> Result<(), String> {
    let turns = seen.longest * 4 * workers.len() as u32;
    let bound = restart_delay(seen.longest) + turns + ms(2_000);
    let healed = seen.world.elapsed();
    for worker in workers {
        let left = (healed + bound).saturating_sub(seen.world.elapsed());
        if seen.world.run_until(worker, left).is_err() && !worker.has_ended() {
            let why = seen.world.run_for(Duration::ZERO).err();
            return Err(why.unwrap_or_else(|| String::from("a waiter was not served")));
        }
    }
    Ok(())
}
