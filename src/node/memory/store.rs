//! The data of one server, and the commands that the library sends.
//!
//! Each does to the data what the server does: SET NX PX as in the command, the rest as in the
//! Lua scripts beside `node/script.rs`, with counters by `node/counter.rs`. Answers are the values that come over the wire, so that
//! the real decoder reads them.

use std::collections::BTreeMap;

use redis::Value;

use super::super::OwnerToken;

/// A moment on a server's own clock, in whole milliseconds: what expiry is counted in.
pub(crate) type Millis = u64;

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) value: Vec<u8>,
    /// The last millisecond of its life; `None` for one without an expiry.
    pub(crate) expires: Option<Millis>,
}

/// The keys of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    keys: BTreeMap<Vec<u8>, Stored>,
    /// What the last write replaced, for a restart that lost it.
    replaced: Vec<(Vec<u8>, Option<Stored>)>,
}

impl Store {
    /// What is under `key` and has not expired: one that expires is there for the whole of its
    /// last millisecond.
    pub(crate) fn get(&self, key: &[u8], now: Millis) -> Option<&Stored> {
        self.keys.get(key).filter(|stored| stored.lives(now))
    }

    /// All keys that have not expired, in order.
    pub(crate) fn living(&self, now: Millis) -> impl Iterator<Item = (&Vec<u8>, &Stored)> {
        self.keys
            .iter()
            .filter(move |(_, stored)| stored.lives(now))
    }

    pub(crate) fn put(&mut self, key: &[u8], value: Vec<u8>, expires: Option<Millis>) {
        let stored = Stored { value, expires };
        let before = self.keys.insert(key.to_vec(), stored);
        self.replaced = vec![(key.to_vec(), before)];
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> Option<Stored> {
        let before = self.keys.remove(key)?;
        self.replaced = vec![(key.to_vec(), Some(before.clone()))];
        Some(before)
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.replaced.clear();
    }

    /// What `write` does is one write with what was done before: a script is lost as a whole.
    pub(super) fn together(&mut self, write: impl FnOnce(&mut Self)) {
        let mut before = std::mem::take(&mut self.replaced);
        write(self);
        before.append(&mut self.replaced);
        self.replaced = before;
    }

    /// Takes the last write back: what a server that syncs once a second may have lost.
    pub(crate) fn undo(&mut self) {
        while let Some((key, before)) = self.replaced.pop() {
            match before {
                Some(stored) => self.keys.insert(key, stored),
                None => self.keys.remove(&key),
            };
        }
    }

    /// `SET key token NX PX ttl`
    pub(crate) fn grant(
        &mut self,
        key: &[u8],
        token: &OwnerToken,
        ttl: Millis,
        now: Millis,
    ) -> Value {
        if self.get(key, now).is_some() {
            return Value::Nil;
        }
        self.put(
            key,
            token.as_bytes().to_vec(),
            Some(now.saturating_add(ttl)),
        );
        Value::Okay
    }

    /// `extend.lua`; `time` is the server's TIME in seconds and microseconds.
    pub(crate) fn extend(
        &mut self,
        key: &[u8],
        token: &OwnerToken,
        (ttl, restore): (Millis, bool),
        now: Millis,
        time: (i64, i64),
    ) -> Value {
        let expires = now.saturating_add(ttl);
        let what = match self.get(key, now) {
            Some(stored) if stored.value == token.as_bytes() => {
                // A key without an expiry has the PTTL −1, which is below any TTL.
                if stored.expires.is_none_or(|present| present < expires) {
                    self.put(key, token.as_bytes().to_vec(), Some(expires));
                }
                1
            }
            Some(_) => -1,
            None if restore => {
                self.put(key, token.as_bytes().to_vec(), Some(expires));
                2
            }
            None => 0,
        };
        Value::Array(vec![
            Value::Int(what),
            Value::Int(time.0),
            Value::Int(time.1),
        ])
    }

    /// `release.lua`
    pub(crate) fn release(&mut self, key: &[u8], token: &OwnerToken, now: Millis) -> Value {
        let ours = |stored: &Stored| stored.value == token.as_bytes();
        if !self.get(key, now).is_some_and(ours) {
            return Value::Int(0);
        }
        self.delete(key);
        Value::Int(1)
    }

    /// `GET key`, `PTTL key`
    pub(crate) fn inspect(&self, key: &[u8], now: Millis) -> [Value; 2] {
        match self.get(key, now) {
            Some(stored) => {
                let left = stored.expires.map(|expires| expires.saturating_sub(now));
                let left = left.map_or(-1, |left| i64::try_from(left).unwrap_or(i64::MAX));
                [Value::BulkString(stored.value.clone()), Value::Int(left)]
            }
            None => [Value::Nil, Value::Int(-2)],
        }
    }

    /// `GET key`
    pub(crate) fn read(&self, key: &[u8], now: Millis) -> Value {
        match self.get(key, now) {
            Some(stored) => Value::BulkString(stored.value.clone()),
            None => Value::Nil,
        }
    }

    /// `marker.lua`
    pub(crate) fn marker(&mut self, key: &[u8], now: Millis) -> Value {
        if self.get(key, now).is_none() {
            self.put(key, now.to_string().into_bytes(), None);
        }
        let marker = self.read(key, now);
        Value::Array(vec![
            marker,
            Value::BulkString(now.to_string().into_bytes()),
        ])
    }
}

impl Stored {
    fn lives(&self, now: Millis) -> bool {
        self.expires.is_none_or(|expires| now <= expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"key";

    fn token(number: u8) -> OwnerToken {
        OwnerToken::new([number; 20])
    }

    fn what(value: Value) -> i64 {
        match value {
            Value::Array(parts) => match parts[..] {
                [Value::Int(what), Value::Int(7), Value::Int(9)] => what,
                _ => panic!("{parts:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn extend(store: &mut Store, number: u8, ttl: u64, restore: bool, now: u64) -> i64 {
        what(store.extend(KEY, &token(number), (ttl, restore), now, (7, 9)))
    }

    #[test]
    fn a_key_is_there_for_the_whole_of_its_last_millisecond() {
        let mut store = Store::default();
        assert_eq!(store.grant(KEY, &token(1), 100, 5), Value::Okay);
        assert_eq!(store.grant(KEY, &token(2), 100, 105), Value::Nil);
        assert_eq!(store.inspect(KEY, 105)[1], Value::Int(0));
        assert_eq!(store.grant(KEY, &token(2), 100, 106), Value::Okay);
    }

    #[test]
    fn an_extension_never_shortens_and_leaves_what_is_not_ours() {
        let mut store = Store::default();
        store.grant(KEY, &token(1), 100, 0);
        assert_eq!(extend(&mut store, 1, 50, false, 10), 1);
        assert_eq!(store.inspect(KEY, 10)[1], Value::Int(90));
        assert_eq!(extend(&mut store, 1, 100, false, 10), 1);
        assert_eq!(store.inspect(KEY, 10)[1], Value::Int(100));
        assert_eq!(extend(&mut store, 2, 900, true, 10), -1);
        assert_eq!(store.inspect(KEY, 10)[1], Value::Int(100));
    }

    #[test]
    fn an_absent_key_is_set_again_only_where_that_is_asked_for() {
        let mut store = Store::default();
        assert_eq!(extend(&mut store, 1, 50, false, 10), 0);
        assert_eq!(store.inspect(KEY, 10), [Value::Nil, Value::Int(-2)]);
        assert_eq!(extend(&mut store, 1, 50, true, 10), 2);
        assert_eq!(store.inspect(KEY, 10)[1], Value::Int(50));
    }

    #[test]
    fn a_release_deletes_only_its_own() {
        let mut store = Store::default();
        store.grant(KEY, &token(1), 100, 0);
        assert_eq!(store.release(KEY, &token(2), 1), Value::Int(0));
        assert_eq!(store.release(KEY, &token(1), 1), Value::Int(1));
        assert_eq!(store.release(KEY, &token(1), 1), Value::Int(0));
    }

    #[test]
    fn the_marker_is_written_once() {
        let mut store = Store::default();
        let text = |millis: &str| Value::BulkString(millis.as_bytes().to_vec());
        let first = Value::Array(vec![text("40"), text("40")]);
        assert_eq!(store.marker(b"since", 40), first);
        let second = Value::Array(vec![text("40"), text("90")]);
        assert_eq!(store.marker(b"since", 90), second);
    }

    #[test]
    fn only_the_last_write_is_taken_back() {
        let mut store = Store::default();
        store.grant(KEY, &token(1), 100, 0);
        store.grant(b"other", &token(2), 100, 0);
        store.undo();
        store.undo();
        assert_eq!(store.living(0).count(), 1);
        store.release(KEY, &token(1), 0);
        store.undo();
        assert!(store.get(KEY, 0).is_some());
    }
}
