//! The worker's end of the pipes between it and the story.

use std::cell::Cell;
use std::io::{self, BufRead, Write};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorumlock::{Attempt, Loss};

use crate::news::{News, What, clock};
use crate::worker::{MARGIN, TTL};

/// Set when the story says that the job needs no more pages.
static COMPLETE: AtomicBool = AtomicBool::new(false);

/// What the library takes off the TTL: 1 %, which is its default, and the margin.
const DRIFT_ALLOWANCE: Duration =
    Duration::from_millis(TTL.as_millis() as u64 / 100).saturating_add(MARGIN);

/// Where a worker sits: it tells the story what happens, and hears when the job is complete.
pub struct Desk {
    /// The end of validity, as it was seen last.
    valid_until: Cell<Duration>,
}

impl Desk {
    /// Listens to the story from now on. The worker ends when the story does, however that ends.
    pub fn new() -> Self {
        std::thread::spawn(|| {
            for line in io::stdin().lock().lines() {
                match line.as_deref() {
                    Ok("complete") => COMPLETE.store(true, Ordering::SeqCst),
                    _ => break,
                }
            }
            exit(0);
        });
        Desk {
            valid_until: Cell::new(Duration::ZERO),
        }
    }

    pub fn begin(&self, left: Duration) {
        self.tell(What::Won(left));
        self.valid_until.set(clock() + left);
    }

    pub fn page(&self, left: Duration) {
        self.tell(What::Page(left));
        self.valid_until.set(clock() + left);
    }

    /// Whether the job needs no more pages.
    pub fn is_complete(&self) -> bool {
        COMPLETE.swap(false, Ordering::SeqCst)
    }

    pub fn done(&self) {
        self.tell(What::Done);
    }

    /// The validity ends before the keys on the nodes do, by the drift allowance: until then
    /// nobody else can have the lock, whatever the clocks do.
    pub fn lost(&self, loss: Loss) {
        let keys_end = self.valid_until.get() + DRIFT_ALLOWANCE;
        let now = clock();
        self.tell(match keys_end.checked_sub(now) {
            Some(spare) => What::Lost {
                spare,
                why: loss.to_string(),
            },
            None => What::LostLate { by: now - keys_end },
        });
    }

    /// The error's own text names each node's fault; a story needs less.
    pub fn unavailable(&self, after: Duration, attempt: &Attempt) {
        let votes = attempt.votes();
        let faults: Vec<_> = votes.iter().filter_map(|vote| vote.vote.fault()).collect();
        let (failed, all) = (faults.len(), votes.len());
        let mut why = format!("{failed} of {all} nodes fail");
        if let Some(fault) = faults.first() {
            why = format!("{why} ({fault})");
        }
        self.tell(What::Unavailable { after, why });
    }

    fn tell(&self, what: What) {
        // Nobody listens any more: the story is over.
        if writeln!(io::stdout(), "{}", News::now(what)).is_err() {
            exit(0);
        }
    }
}
