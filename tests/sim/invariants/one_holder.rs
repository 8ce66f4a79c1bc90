//! Mutual exclusion: at no moment are two guards inside their validity.

use quorumlock::testing::world::is_held;

use super::Seen;

pub fn check(seen: &Seen) -> Result<(), String> {
    let holds = seen.holds.borrow();
    let mut holder = None;
    for hold in holds.iter().filter(|hold| is_held(&hold.held)) {
        if hold.over.get().is_some() {
            return Err(format!("c{}: an ended hold came back", hold.process));
        }
        let other = holder.replace(hold.process);
        if let Some(other) = other.filter(|_| seen.plan.excludes()) {
            return Err(format!("two holders: c{other} and c{}", hold.process));
        }
    }
    Ok(())
}
