//! How a world goes on: one thing at a time.

use std::time::Duration;

use super::process::Process;
use super::{Clock, Step, Task, World};
use crate::clock::Instant;

impl World {
    /// Does the next thing, unless that lies beyond `limit` since the world began.
    ///
    /// # Errors
    /// What an invariant has to say.
    pub fn step(&self, limit: Duration) -> Result<Step, String> {
        let step = self.act(limit);
        let checks = self.0.checks.borrow().clone();
        checks.iter().try_for_each(|check| check(self))?;
        Ok(step)
    }

    fn act(&self, limit: Duration) -> Step {
        if self.0.touched.take() {
            self.forget_dues();
        }
        if self.0.executor.poll_one(|process| self.is_frozen(process)) {
            self.forget_dues();
            return Step::Polled;
        }
        let now = self.now();
        for node in self.0.cluster.nodes.iter() {
            let mut server = node.server.lock();
            if server.due().is_some_and(|due| due <= now) {
                server.run(now);
                drop(server);
                self.forget_dues();
                return Step::Served;
            }
        }
        for process in self.0.processes.borrow_mut().iter_mut() {
            if process.turn(now) {
                return Step::Turned;
            }
        }
        let limit = Clock::start().after(limit);
        match self.next_moment(now) {
            Some(next) if next <= limit => {
                self.0.clock.hands.set(next);
                self.0.executor.wake_sleepers(next);
                Step::Advanced
            }
            _ => Step::Idle,
        }
    }

    fn forget_dues(&self) {
        let processes = self.0.processes.borrow();
        processes.iter().for_each(Process::forget_due);
    }

    /// When anything is due after `now`.
    fn next_moment(&self, now: Instant) -> Option<Instant> {
        let processes = self.0.processes.borrow();
        let engines = processes.iter().filter_map(|process| process.due(now));
        let nodes = self.0.cluster.nodes.iter();
        let servers = nodes.filter_map(|node| node.server.lock().due());
        let sleepers = self.0.executor.next_sleeper();
        engines.chain(servers).chain(sleepers).min()
    }

    /// Runs for `span`, to its end.
    ///
    /// # Errors
    /// What an invariant has to say.
    pub fn run_for(&self, span: Duration) -> Result<(), String> {
        let limit = self.elapsed() + span;
        while self.step(limit)? != Step::Idle {}
        self.0.clock.hands.set(Clock::start().after(limit));
        self.0.executor.wake_sleepers(self.now());
        Ok(())
    }

    /// Runs until `task` has ended, for `limit` at most.
    ///
    /// # Errors
    /// It has not ended by then; or what an invariant has to say.
    pub fn run_until<T>(&self, task: &Task<T>, limit: Duration) -> Result<T, String> {
        let end = self.elapsed() + limit;
        loop {
            if let Some(output) = task.take() {
                return Ok(output);
            }
            if self.step(end)? == Step::Idle {
                return Err(format!("the task has not ended within {limit:?}"));
            }
        }
    }
}
