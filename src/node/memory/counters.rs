//! Fencing counters in a server's data: what the scripts do to them, by `node/counter.rs`.

use std::time::Duration;

use redis::Value;

use super::super::counter::{Now, kept};
use super::super::{Fencing, OwnerToken};
use super::store::{Millis, Store, Stored};

impl Store {
    /// `grant.lua`; `time` is the server's TIME in seconds and microseconds.
    pub(crate) fn fenced_grant(
        &mut self,
        key: &[u8],
        token: &OwnerToken,
        (ttl, fence, block): (Millis, Fencing, u64),
        now: Millis,
        time: (i64, i64),
    ) -> Value {
        let terms = Counting::new(fence, time);
        let next = |old| terms.now.granted(old, fence.hint, block);
        let Some(counter) = self.counter(key, now).ok().and_then(next) else {
            return no_counter();
        };
        let refused = self.scripted_grant(key, token, ttl, now, time);
        if !matches!(&refused, Value::Array(parts) if parts[0] == Value::Int(1)) {
            return refused;
        }
        self.together(|store| store.put_counter(key, counter, terms, now));
        let counter = i64::try_from(counter).unwrap_or(i64::MAX);
        timed(vec![Value::Int(1), Value::Int(counter)], time)
    }

    /// `grant.lua` without a counter.
    pub(crate) fn scripted_grant(
        &mut self,
        key: &[u8],
        token: &OwnerToken,
        ttl: Millis,
        now: Millis,
        time: (i64, i64),
    ) -> Value {
        let ours = |stored: &Stored| stored.value == token.as_bytes();
        if self.grant(key, token, ttl, now) == Value::Nil && !self.get(key, now).is_some_and(ours) {
            let [owner, left] = self.inspect(key, now);
            return timed(vec![Value::Int(0), owner, left], time);
        }
        timed(vec![Value::Int(1), Value::Int(0)], time)
    }

    /// `raise.lua`
    pub(crate) fn raise(
        &mut self,
        key: &[u8],
        token: &OwnerToken,
        fence: Fencing,
        now: Millis,
        time: (i64, i64),
    ) -> Value {
        let ours = |stored: &Stored| stored.value == token.as_bytes();
        if !self.get(key, now).is_some_and(ours) {
            return Value::Int(0);
        }
        match self.lift(key, fence, now, time) {
            Some(true) => Value::Int(1),
            Some(false) => Value::Int(-1),
            None => no_counter(),
        }
    }

    /// `lift.lua`: whether the counter is at least the hint now; `None` for a counter that is
    /// none.
    pub(crate) fn lift(
        &mut self,
        key: &[u8],
        fence: Fencing,
        now: Millis,
        time: (i64, i64),
    ) -> Option<bool> {
        let terms = Counting::new(fence, time);
        let old = self.counter(key, now).ok()?;
        let Some(raised) = terms.now.raised(old, fence.hint) else {
            return Some(false);
        };
        if old.is_none_or(|old| old < raised) {
            self.put_counter(key, raised, terms, now);
        }
        Some(true)
    }

    /// The counter of the lock at `key`.
    ///
    /// # Errors
    /// There is something else in its place.
    fn counter(&self, key: &[u8], now: Millis) -> Result<Option<u64>, ()> {
        let Some(stored) = self.get(&fence_key(key), now) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&stored.value).map_err(drop)?;
        text.parse().map(Some).map_err(drop)
    }

    fn put_counter(&mut self, key: &[u8], counter: u64, terms: Counting, now: Millis) {
        let kept = kept(counter, terms.seconds, terms.retention, terms.max_ttl);
        let expires = now.saturating_add(u64::try_from(kept.as_millis()).unwrap_or(Millis::MAX));
        self.put(
            &fence_key(key),
            counter.to_string().into_bytes(),
            Some(expires),
        );
    }
}

/// What the arithmetic of a counter needs to know.
#[derive(Clone, Copy)]
struct Counting {
    now: Now,
    seconds: u64,
    retention: Duration,
    max_ttl: Duration,
}

impl Counting {
    fn new(fence: Fencing, time: (i64, i64)) -> Self {
        let seconds = u64::try_from(time.0).unwrap_or(0);
        let micros = Duration::from_micros(u64::try_from(time.1).unwrap_or(0));
        let max_ttl = Duration::from_millis(fence.max_ttl_millis);
        Counting {
            now: Now::at(Duration::from_secs(seconds) + micros, max_ttl),
            seconds,
            retention: Duration::from_millis(fence.retention_millis),
            max_ttl,
        }
    }
}

fn fence_key(key: &[u8]) -> Vec<u8> {
    [key, b":fence"].concat()
}

fn timed(mut answer: Vec<Value>, time: (i64, i64)) -> Value {
    answer.extend([Value::Int(time.0), Value::Int(time.1)]);
    Value::Array(answer)
}

/// An error reply that no decoder takes for a vote.
fn no_counter() -> Value {
    Value::SimpleString("NOCOUNTER".into())
}
