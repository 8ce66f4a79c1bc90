//! One acquisition: rounds, the delays between them, and when to give up (P12).
//!
//! ```text
//!   begin ─► round ─► granted ───────────────────────────► done
//!              ▲  └──► failed ─► GiveUp (attempts, deadline, hopeless)
//!              └──── RetryAt ◄──┘
//! ```
//!
//! The first round always happens, whatever the wait limit. A delay is cut at the deadline, and
//! the round that follows the cut is the last; nothing is slept after it.

use std::num::NonZeroU32;
use std::time::Duration;

use super::backoff::{Backoff, Jitter};
use super::round::Shortfall;
use crate::clock::Instant;

/// How long an acquisition may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// No longer than this, and one round beyond it.
    For(Duration),
    /// Until it has the lock.
    Forever,
}

/// The settings `retry.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The first delay, before jitter.
    pub(crate) delay: Duration,
    /// The longest delay.
    pub(crate) max_delay: Duration,
    /// What chance does to a delay.
    pub(crate) jitter: Jitter,
    /// The number of rounds, the first included; `None` for as many as `wait` allows.
    pub(crate) attempts: Option<NonZeroU32>,
}

/// What to do after a failed round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Begin another round then.
    RetryAt(Instant),
    /// Report the last round's failure.
    GiveUp,
}

/// The state of one acquisition between its rounds.
#[derive(Clone, Debug)]
pub(crate) struct Acquisition {
    deadline: Instant,
    attempts: Option<NonZeroU32>,
    rounds: u32,
    backoff: Backoff,
}

impl Acquisition {
    /// An acquisition that begins at `now`.
    pub(crate) fn begin(now: Instant, wait: Wait, retry: &Retry) -> Self {
        Acquisition {
            deadline: match wait {
                Wait::For(limit) => now.after(limit),
                Wait::Forever => Instant::FAR,
            },
            attempts: retry.attempts,
            rounds: 0,
            backoff: Backoff::new(retry.delay, retry.max_delay, retry.jitter),
        }
    }

    /// The moment after which no round begins, but for the first.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How many rounds have ended.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// A round has failed. `chance` is one uniform draw over all of `u64`.
    pub(crate) fn failed(&mut self, now: Instant, why: Shortfall, chance: u64) -> Next {
        self.rounds = self.rounds.saturating_add(1);
        let spent = self.attempts.is_some_and(|most| self.rounds >= most.get());
        if spent || now >= self.deadline || why == Shortfall::Rejected {
            return Next::GiveUp;
        }
        Next::RetryAt(now.after(self.backoff.next(chance)).min(self.deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn retry(attempts: u32) -> Retry {
        Retry {
            delay: ms(20),
            max_delay: ms(500),
            jitter: Jitter::None,
            attempts: NonZeroU32::new(attempts),
        }
    }

    #[test]
    fn without_a_wait_there_is_exactly_one_round() {
        let mut acquisition = Acquisition::begin(at(7), Wait::For(ms(0)), &retry(0));
        let next = acquisition.failed(at(7), Shortfall::Contended, 0);
        assert_eq!(next, Next::GiveUp);
        assert_eq!(acquisition.rounds(), 1);
    }

    #[test]
    fn attempts_count_all_rounds() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(4));
        for expected in [20, 40, 80] {
            let next = acquisition.failed(at(0), Shortfall::Contended, 0);
            assert_eq!(next, Next::RetryAt(at(expected)));
        }
        let next = acquisition.failed(at(0), Shortfall::Contended, 0);
        assert_eq!(next, Next::GiveUp);
    }

    #[test]
    fn a_delay_is_cut_at_the_deadline_and_the_last_round_is_followed_by_none() {
        let mut acquisition = Acquisition::begin(at(0), Wait::For(ms(30)), &retry(0));
        let next = acquisition.failed(at(15), Shortfall::Contended, 0);
        assert_eq!(next, Next::RetryAt(at(30)));
        let next = acquisition.failed(at(31), Shortfall::Contended, 0);
        assert_eq!(next, Next::GiveUp);
    }

    #[test]
    fn a_rejection_does_not_burn_the_wait() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0));
        let next = acquisition.failed(at(1), Shortfall::Rejected, 0);
        assert_eq!(next, Next::GiveUp);
    }

    #[test]
    fn an_outage_is_waited_out() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0));
        for why in [
            Shortfall::Unavailable,
            Shortfall::TooSlow,
            Shortfall::Contended,
        ] {
            assert_ne!(acquisition.failed(at(1), why, 0), Next::GiveUp);
        }
    }
}
