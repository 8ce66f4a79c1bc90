//! The store of the small Redis.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::stub_reply::StubReply;

/// String values with expiries.
#[derive(Debug, Default)]
pub struct Keys {
    entries: BTreeMap<Vec<u8>, (Vec<u8>, Option<Instant>)>,
}

impl Keys {
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        self.drop_expired();
        self.entries
            .get(key.as_ref())
            .map(|(value, _)| value.clone())
    }

    pub fn put(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Option<Duration>,
    ) {
        let until = expiry.map(|expiry| Instant::now() + expiry);
        self.entries
            .insert(key.as_ref().to_vec(), (value.as_ref().to_vec(), until));
    }

    /// Milliseconds, -1 for a key that never expires, -2 for none.
    pub fn pttl(&mut self, key: impl AsRef<[u8]>) -> i64 {
        self.drop_expired();
        match self.entries.get(key.as_ref()) {
            None => -2,
            Some((_, None)) => -1,
            Some((_, Some(until))) => {
                let left = until.saturating_duration_since(Instant::now());
                i64::try_from(left.as_millis()).unwrap_or(i64::MAX)
            }
        }
    }

    /// Whether there was such a key.
    pub fn expire(&mut self, key: impl AsRef<[u8]>, expiry: Duration) -> bool {
        self.drop_expired();
        let entry = self.entries.get_mut(key.as_ref());
        entry
            .map(|entry| entry.1 = Some(Instant::now() + expiry))
            .is_some()
    }

    /// Whether there was such a key.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        self.drop_expired();
        self.entries.remove(key.as_ref()).is_some()
    }

    pub fn names(&mut self) -> Vec<Vec<u8>> {
        self.drop_expired();
        self.entries.keys().cloned().collect()
    }

    /// SET with NX, XX, GET, PX and EX.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8], options: &[Vec<u8>]) -> StubReply {
        let (mut nx, mut xx, mut get, mut expiry) = (false, false, false, None);
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => nx = true,
                b"XX" => xx = true,
                b"GET" => get = true,
                unit @ (b"PX" | b"EX") => match options.next().and_then(|n| number(n)) {
                    Some(0) => return StubReply::error("ERR invalid expire time in 'set' command"),
                    Some(n) if unit == b"PX" => expiry = Some(Duration::from_millis(n)),
                    Some(n) => expiry = Some(Duration::from_secs(n)),
                    None => return StubReply::error("ERR value is not an integer or out of range"),
                },
                _ => return StubReply::error("ERR syntax error"),
            }
        }
        let old = self.get(key);
        let allowed = if old.is_some() { !nx } else { !xx };
        if allowed {
            self.put(key, value, expiry);
        }
        match old.filter(|_| get) {
            Some(old) => StubReply::Bulk(old),
            None if get || !allowed => StubReply::Nil,
            None => StubReply::Ok,
        }
    }

    fn drop_expired(&mut self) {
        let now = Instant::now();
        self.entries
            .retain(|_, (_, until)| until.is_none_or(|until| until > now));
    }
}

pub(super) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
