//! No loss is told later than the end of validity: the signal is there at the first look, and the
//! task that waits for it runs before time goes on, unless its process stands still.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use quorumlock::testing::world::is_held;

use super::{Hold, Seen};

pub fn check(seen: &Seen) -> Result<(), String> {
    let holds = seen.holds.borrow();
    let ended = holds.iter().filter(|hold| !is_held(&hold.held));
    ended.into_iter().try_for_each(|hold| told(seen, hold))
}

fn told(seen: &Seen, hold: &Hold) -> Result<(), String> {
    let (process, now) = (hold.process, seen.world.elapsed());
    if hold.over.get().is_none() {
        hold.over.set(Some(now));
        let lost = pin!(hold.held.lost());
        let mut context = Context::from_waker(Waker::noop());
        if lost.poll(&mut context).is_pending() {
            return Err(format!("c{process}: over, and its signal is not ready"));
        }
    }
    let runs = seen.world.frozen_until(process);
    let late = hold.over.get().is_some_and(|over| now > over.max(runs));
    match late && !hold.heard.get() {
        true => Err(format!("c{process}: the loss is told late")),
        false => Ok(()),
    }
}
