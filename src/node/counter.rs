//! What a node does with its fencing counter (P9), as plain arithmetic.
//!
//! The scripts do this on a server (`grant.lua`, `lift.lua`); in-memory nodes and the model of
//! the protocol do it with these functions, and a test compares the two on a real server.

use std::time::Duration;

/// How far the counter moves with each second of a node's clock. More than a million grants of one
/// resource within one second would let it run ahead of the clock, which is harmless up to
/// `max_ttl` of it.
pub(crate) const SECOND: u64 = 1 << 20;

/// Lua's numbers are exact up to here; the clock gets there in 2242.
pub(crate) const LARGEST: u64 = 1 << 53;

/// A node's clock, in units of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Now {
    /// A grant's counter is never below this.
    pub(crate) floor: u64,
    /// A counter that somebody wants raised beyond this is not believed. Unlike the floor it goes
    /// by the exact time: a node that has not seen the present second begin must take its numbers.
    pub(crate) limit: u64,
}

impl Now {
    /// At `time` of the node's clock, since 1970.
    pub(crate) fn at(time: Duration, max_ttl: Duration) -> Self {
        let limit = time.saturating_add(max_ttl).as_micros() * u128::from(SECOND) / 1_000_000;
        Now {
            floor: time.as_secs().saturating_mul(SECOND),
            limit: u64::try_from(limit).unwrap_or(u64::MAX),
        }
    }

    /// The counter after a grant that reserves `block` numbers, which is what it replies: the
    /// last of them. `None` when the counter has no exact successor any more.
    pub(crate) fn granted(self, counter: Option<u64>, hint: u64, block: u64) -> Option<u64> {
        let hint = if hint > self.limit { 0 } else { hint };
        let next = counter.unwrap_or(0).max(hint).checked_add(block)?;
        (next <= LARGEST).then_some(next.max(self.floor))
    }

    /// The counter after a raise to `to`; `None` when that is beyond belief.
    pub(crate) fn raised(self, counter: Option<u64>, to: u64) -> Option<u64> {
        (to <= self.limit).then_some(counter.unwrap_or(0).max(to))
    }
}

/// How long the counter key must be kept from `seconds` on: for `retention`, and until the clock
/// has passed the counter by `max_ttl`. After that the clock alone gives larger numbers.
pub(crate) fn kept(counter: u64, seconds: u64, retention: Duration, max_ttl: Duration) -> Duration {
    let ahead = counter.saturating_sub(seconds.saturating_mul(SECOND));
    let ahead =
        Duration::from_millis((u128::from(ahead) * 1000).div_ceil(u128::from(SECOND)) as u64);
    retention.max(ahead.saturating_add(max_ttl))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_first_grant_starts_at_the_clock_and_the_next_ones_count_on() {
        let now = Now::at(Duration::from_secs(1_000), MINUTE);
        assert_eq!(now.granted(None, 0, 1), Some(1_000 * SECOND));
        assert_eq!(
            now.granted(Some(1_000 * SECOND), 0, 1),
            Some(1_000 * SECOND + 1)
        );
        assert_eq!(now.granted(Some(5), 0, 1), Some(1_000 * SECOND));
    }

    #[test]
    fn a_block_ends_with_the_reply_and_begins_above_the_last_one() {
        let now = Now::at(Duration::ZERO, MINUTE);
        assert_eq!(now.granted(Some(10), 0, 8), Some(18));
        assert_eq!(now.granted(Some(10), 20, 8), Some(28));
    }

    #[test]
    fn hints_and_raises_beyond_the_clock_and_max_ttl_are_not_believed() {
        let now = Now::at(Duration::from_secs(1_000), MINUTE);
        let limit = 1_060 * SECOND;
        assert_eq!(now.granted(None, limit, 1), Some(limit + 1));
        assert_eq!(now.granted(None, limit + 1, 1), Some(1_000 * SECOND));
        assert_eq!(now.raised(Some(7), limit), Some(limit));
        assert_eq!(now.raised(Some(7), limit + 1), None);
        assert_eq!(now.raised(Some(limit), 7), Some(limit), "never back");
        let (late, short) = (Duration::from_micros(999_999_000), Duration::from_millis(1));
        let next = 1_000 * SECOND;
        assert_eq!(Now::at(late, short).raised(None, next), Some(next));
        assert_eq!(Now::at(late, short).raised(None, next + 1), None);
    }

    #[test]
    fn it_ends_where_lua_cannot_count_on() {
        let now = Now::at(Duration::ZERO, MINUTE);
        assert_eq!(now.granted(Some(LARGEST - 1), 0, 1), Some(LARGEST));
        assert_eq!(now.granted(Some(LARGEST), 0, 1), None);
        assert_eq!(now.granted(Some(u64::MAX), 0, 1), None);
    }

    #[test]
    fn it_is_kept_until_the_clock_has_passed_it_by_max_ttl() {
        let day = Duration::from_secs(86_400);
        assert_eq!(kept(1_000 * SECOND, 1_000, day, MINUTE), day);
        let ahead = kept(1_030 * SECOND, 1_000, Duration::ZERO, MINUTE);
        assert_eq!(ahead, Duration::from_secs(90));
    }
}
