//! One acquisition: rounds, the delays between them, and when to give up (P12).
//!
//! ```text
//!   begin ─► round ─► granted ───────────────────────────► done
//!              ▲  └──► failed ─► GiveUp (attempts, deadline, hopeless)
//!              │                ├─► Await: held, and a quorum of nodes will tell when it is free
//!              └──── RetryAt ◄──┘   split, unavailable, or nobody tells
//! ```
//!
//! The first round always happens, whatever the wait limit. A delay is cut at the deadline, and
//! the round that follows the cut is the last; nothing is slept after it.

use std::num::NonZeroU32;
use std::time::Duration;

use super::backoff::{Backoff, Jitter, part};
use super::contest::Standing as Contested;
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

/// A failed round, and what delays are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) why: Shortfall,
    /// How a contended round ended.
    pub(crate) contest: Option<Contested>,
    /// A quorum of nodes tells us when the lock is let go.
    pub(crate) listening: bool,
    /// They did so while the round ran.
    pub(crate) freed: bool,
    /// How long a round takes.
    pub(crate) trip: Duration,
}

/// What to do after a failed round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Begin another round then.
    RetryAt(Instant),
    /// Begin to listen for notes on the lock, and another round at once.
    Listen,
    /// Wait to hear that the lock is free; but begin another round no later than this.
    Await(Instant),
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
    /// Nothing is waited for longer than this without a look.
    poll: Duration,
    /// Rounds in a row in which nobody had a quorum.
    splits: u32,
    /// The nodes were asked to tell when the lock is let go.
    listens: bool,
}

/// Waiting for a note ends after this, or a third of the TTL where that is more: notes get lost.
const POLL: Duration = Duration::from_secs(2);

/// After a split vote no delay is longer than so many rounds.
const LONGEST_DELAY: u32 = 64;

impl Acquisition {
    /// An acquisition that begins at `now`, of a lock with this TTL.
    pub(crate) fn begin(now: Instant, wait: Wait, retry: &Retry, ttl: Duration) -> Self {
        Acquisition {
            deadline: match wait {
                Wait::For(limit) => now.after(limit),
                Wait::Forever => Instant::FAR,
            },
            attempts: retry.attempts,
            rounds: 0,
            backoff: Backoff::new(retry.delay, retry.max_delay, retry.jitter),
            poll: POLL.max(ttl / 3),
            splits: 0,
            listens: false,
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

    /// The nodes need not tell any more.
    pub(crate) fn ignores(&mut self) {
        self.listens = false;
    }

    /// A round has failed. `chance` is one uniform draw over all of `u64`.
    ///
    /// Where the number of rounds is limited, they are spread over time by `retry.delay`, whoever
    /// holds the lock.
    pub(crate) fn failed(&mut self, now: Instant, failed: &Failed, chance: u64) -> Next {
        self.rounds = self.rounds.saturating_add(1);
        let spent = self.attempts.is_some_and(|most| self.rounds >= most.get());
        if spent || now >= self.deadline || failed.why == Shortfall::Rejected {
            return Next::GiveUp;
        }
        let contest = failed
            .contest
            .filter(|_| self.attempts.is_none() && failed.why == Shortfall::Contended);
        match contest {
            Some(Contested::Split { rivals, .. }) => {
                let delay = self.after_split(rivals, failed.trip, chance);
                Next::RetryAt(now.after(delay).min(self.deadline))
            }
            Some(Contested::Held { free }) if failed.listening => {
                self.splits = 0;
                if failed.freed {
                    let delay = part(failed.trip * 2, chance);
                    return Next::RetryAt(now.after(delay).min(self.deadline));
                }
                Next::Await(self.look(now, free, failed.trip, chance))
            }
            Some(Contested::Held { .. }) if !self.listens => {
                self.listens = true;
                Next::Listen
            }
            _ => {
                let delay = self.backoff.next(chance);
                Next::RetryAt(now.after(delay).min(self.deadline))
            }
        }
    }

    /// When to look at a lock that is held, unless it is heard of before: when the holder's keys
    /// have run out at a quorum, since that publishes nothing.
    pub(crate) fn look(
        &self,
        now: Instant,
        free: Option<Duration>,
        trip: Duration,
        chance: u64,
    ) -> Instant {
        let free = free.map_or(self.poll, |free| {
            free + MILLISECOND + part(trip * 2, chance)
        });
        now.after(free.min(self.poll)).min(self.deadline)
    }

    /// The loser of a split vote waits for one of `rivals + 1` turns of two rounds each, and for
    /// twice as many after each further split.
    fn after_split(&mut self, rivals: u32, trip: Duration, chance: u64) -> Duration {
        let turns = rivals.saturating_add(1).saturating_mul(2);
        let turns = turns.saturating_mul(1u32.checked_shl(self.splits).unwrap_or(u32::MAX));
        self.splits = self.splits.saturating_add(1);
        part(trip * turns.min(LONGEST_DELAY), chance)
    }
}

/// Keys run out in whole milliseconds.
const MILLISECOND: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    const TTL: Duration = ms(3_000);

    /// All of it.
    const CHANCE: u64 = u64::MAX;

    /// A round that failed without a word on rivals; a round takes a millisecond.
    fn failed(why: Shortfall) -> Failed {
        Failed {
            why,
            contest: None,
            listening: false,
            freed: false,
            trip: ms(1),
        }
    }

    /// A contended round.
    fn contended(contest: Contested, listening: bool) -> Failed {
        Failed {
            contest: Some(contest),
            listening,
            ..failed(Shortfall::Contended)
        }
    }

    /// The moment of the next round, in whole milliseconds rounded up.
    fn next_at(next: Next) -> u64 {
        match next {
            Next::RetryAt(moment) | Next::Await(moment) => moment.as_nanos().div_ceil(1_000_000),
            other => panic!("{other:?}"),
        }
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
        let mut acquisition = Acquisition::begin(at(7), Wait::For(ms(0)), &retry(0), TTL);
        let next = acquisition.failed(at(7), &failed(Shortfall::Contended), CHANCE);
        assert_eq!(next, Next::GiveUp);
        assert_eq!(acquisition.rounds(), 1);
    }

    #[test]
    fn attempts_count_all_rounds() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(4), TTL);
        for expected in [20, 40, 80] {
            let next = acquisition.failed(at(0), &failed(Shortfall::Contended), CHANCE);
            assert_eq!(next, Next::RetryAt(at(expected)));
        }
        let next = acquisition.failed(at(0), &failed(Shortfall::Contended), CHANCE);
        assert_eq!(next, Next::GiveUp);
    }

    #[test]
    fn rounds_are_counted() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0), TTL);
        for rounds in 0..3 {
            assert_eq!(acquisition.rounds(), rounds);
            acquisition.failed(at(0), &failed(Shortfall::Unavailable), CHANCE);
        }
    }

    #[test]
    fn whoever_has_stopped_to_listen_listens_again() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0), TTL);
        let held = contended(Contested::Held { free: None }, false);
        assert_eq!(acquisition.failed(at(0), &held, CHANCE), Next::Listen);
        // Nobody confirms it: it is polled.
        let polled = acquisition.failed(at(0), &held, CHANCE);
        assert!(matches!(polled, Next::RetryAt(_)), "{polled:?}");
        acquisition.ignores();
        assert_eq!(acquisition.failed(at(0), &held, CHANCE), Next::Listen);
    }

    #[test]
    fn a_delay_is_cut_at_the_deadline_and_the_last_round_is_followed_by_none() {
        let mut acquisition = Acquisition::begin(at(0), Wait::For(ms(30)), &retry(0), TTL);
        let next = acquisition.failed(at(15), &failed(Shortfall::Contended), CHANCE);
        assert_eq!(next, Next::RetryAt(at(30)));
        let next = acquisition.failed(at(31), &failed(Shortfall::Contended), CHANCE);
        assert_eq!(next, Next::GiveUp);
    }

    #[test]
    fn a_rejection_does_not_burn_the_wait() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0), TTL);
        let next = acquisition.failed(at(1), &failed(Shortfall::Rejected), CHANCE);
        assert_eq!(next, Next::GiveUp);
    }

    #[test]
    fn an_outage_is_waited_out() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0), TTL);
        for why in [
            Shortfall::Unavailable,
            Shortfall::TooSlow,
            Shortfall::Contended,
        ] {
            assert_ne!(
                acquisition.failed(at(1), &failed(why), CHANCE),
                Next::GiveUp
            );
        }
    }

    #[test]
    fn a_held_lock_is_listened_for_and_looked_at_when_its_keys_have_run_out() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0), TTL);
        let held = |free| Contested::Held { free };
        let next = acquisition.failed(at(0), &contended(held(Some(ms(500))), false), CHANCE);
        assert_eq!(next, Next::Listen);
        // A millisecond since keys run out in whole ones, and two rounds for chance.
        let next = acquisition.failed(at(0), &contended(held(Some(ms(500))), true), CHANCE);
        assert_eq!(next_at(next), 503);
        for (free, expected) in [(None, 2_000), (Some(ms(9_000)), 2_000)] {
            let next = acquisition.failed(at(0), &contended(held(free), true), CHANCE);
            assert_eq!(next_at(next), expected);
        }
        // Let go while the round ran.
        let freed = Failed {
            freed: true,
            ..contended(held(Some(ms(500))), true)
        };
        let next = acquisition.failed(at(10), &freed, CHANCE);
        assert!(matches!(next, Next::RetryAt(_)), "{next:?}");
        assert_eq!(next_at(next), 12);
    }

    #[test]
    fn where_nobody_tells_a_held_lock_is_polled() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0), TTL);
        let silent = contended(Contested::Held { free: None }, false);
        assert_eq!(acquisition.failed(at(0), &silent, CHANCE), Next::Listen);
        for expected in [20, 40] {
            let next = acquisition.failed(at(0), &silent, CHANCE);
            assert_eq!(next, Next::RetryAt(at(expected)));
        }
    }

    #[test]
    fn after_a_split_the_losers_take_turns() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(0), TTL);
        let split = Contested::Split {
            rivals: 2,
            first: false,
        };
        for expected in [6, 12, 24, 48, 64, 64] {
            let next = acquisition.failed(at(0), &contended(split, false), CHANCE);
            assert_eq!(next_at(next), expected);
        }
    }

    #[test]
    fn where_rounds_are_counted_they_are_spread_by_the_delay() {
        let mut acquisition = Acquisition::begin(at(0), Wait::Forever, &retry(9), TTL);
        let held = contended(Contested::Held { free: None }, true);
        let split = Contested::Split {
            rivals: 1,
            first: false,
        };
        assert_eq!(
            acquisition.failed(at(0), &held, CHANCE),
            Next::RetryAt(at(20))
        );
        let next = acquisition.failed(at(0), &contended(split, true), CHANCE);
        assert_eq!(next, Next::RetryAt(at(40)));
    }

    #[test]
    fn nothing_is_awaited_beyond_the_deadline() {
        let mut acquisition = Acquisition::begin(at(0), Wait::For(ms(30)), &retry(0), TTL);
        let held = Contested::Held {
            free: Some(ms(500)),
        };
        let next = acquisition.failed(at(10), &contended(held, true), CHANCE);
        assert_eq!(next, Next::Await(at(30)));
    }
}
