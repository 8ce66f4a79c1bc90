//! Queues and tasks are bounded: what is under way on a connection, and what runs, depends on how
//! many want the lock, and not on how long the faults last.

use super::Seen;

/// Four workers, each with a round, extensions by hand and by itself, and releases that are owed.
const MOST_REQUESTS: usize = 64;

/// Four workers, one listener for each hold that is not over, and faults that end by themselves.
const MOST_TASKS: usize = 96;

pub fn check(seen: &Seen) -> Result<(), String> {
    let (requests, tasks) = (seen.world.longest_queue(), seen.world.tasks());
    if requests > MOST_REQUESTS || tasks > MOST_TASKS {
        return Err(format!(
            "{requests} requests under way at once, {tasks} tasks"
        ));
    }
    Ok(())
}
