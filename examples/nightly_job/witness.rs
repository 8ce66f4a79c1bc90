//! Watches the workers from outside, and knows nothing of the lock.

use std::time::Duration;

use crate::crew::WORKERS;
use crate::news::{News, What};

/// One worker's time at the job.
#[derive(Clone, Copy, Debug)]
struct Shift {
    worker: usize,
    from: Duration,
    to: Option<Duration>,
}

/// Who is at work, and who ever was.
#[derive(Debug, Default)]
pub struct Witness {
    shifts: Vec<Shift>,
    /// What each worker saw last as the end of its validity.
    valid_until: [Duration; WORKERS],
}

impl Witness {
    /// Notes what a worker tells.
    ///
    /// # Errors
    /// What no worker should have to tell.
    pub fn note(&mut self, worker: usize, news: &News) -> Result<(), String> {
        match &news.what {
            What::Won(left) => {
                self.shifts.push(Shift {
                    worker,
                    from: news.at,
                    to: None,
                });
                self.valid_until[worker] = news.at + *left;
            }
            What::Page(left) if left.is_zero() => {
                return Err(format!(
                    "worker {} wrote a page after its lease",
                    worker + 1
                ));
            }
            What::Page(left) => self.valid_until[worker] = news.at + *left,
            What::Done | What::Lost { .. } => self.ends(worker, news.at),
            What::LostLate { by } => {
                let worker = worker + 1;
                return Err(format!(
                    "worker {worker} heard of its loss {by:.1?} too late"
                ));
            }
            What::Unavailable { .. } => {}
            What::Gone(why) => return Err(format!("worker {} is gone: {why}", worker + 1)),
        }
        Ok(())
    }

    /// A worker stops at `at`, whatever it was doing.
    pub fn ends(&mut self, worker: usize, at: Duration) {
        let open = |shift: &&mut Shift| shift.worker == worker && shift.to.is_none();
        if let Some(shift) = self.shifts.iter_mut().find(open) {
            shift.to = Some(at);
        }
    }

    /// Who is at work.
    pub fn at_work(&self) -> Option<usize> {
        let open = |shift: &&Shift| shift.to.is_none();
        self.shifts.iter().find(open).map(|shift| shift.worker)
    }

    /// What `worker` saw last as the end of its validity.
    pub fn valid_until(&self, worker: usize) -> Duration {
        self.valid_until[worker]
    }

    /// The number of shifts, no two of which were at the same time.
    ///
    /// # Errors
    /// Two were.
    pub fn verdict(&self) -> Result<usize, String> {
        let mut shifts = self.shifts.clone();
        shifts.sort_by_key(|shift| shift.from);
        for pair in shifts.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if first.to.is_none_or(|end| second.from < end) {
                let (first, second) = (first.worker + 1, second.worker + 1);
                return Err(format!(
                    "workers {first} and {second} were at work together"
                ));
            }
        }
        Ok(shifts.len())
    }
}
