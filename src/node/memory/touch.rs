//! Looks at a server, and touches that no client has a part in.

use std::time::Duration;

use super::server::Server;
use super::store::Millis;
use crate::clock::Instant;

impl Server {
    /// Lets the data look old, unless there is a marker or some of it was lost.
    pub(crate) fn age(&mut self, marker_key: &[u8], now: Instant) {
        let millis = self.hands.millis(now);
        if !self.lost_data && self.store.get(marker_key, millis).is_none() {
            let day_before = millis.saturating_sub(86_400_000).to_string();
            self.store.put(marker_key, day_before.into_bytes(), None);
        }
    }

    /// What `look` makes of each living key and its value.
    pub(crate) fn look<T>(&mut self, now: Instant, look: impl Fn(&[u8], &[u8]) -> T) -> Vec<T> {
        let millis = self.brought_up(now);
        let living = self.store.living(millis);
        living
            .map(|(key, stored)| look(key, &stored.value))
            .collect()
    }

    /// The first living key that ends in `ending`.
    fn find(&self, ending: &[u8], millis: Millis) -> Option<Vec<u8>> {
        let mut living = self.store.living(millis);
        let found = living.find(|(key, _)| key.ends_with(ending))?;
        Some(found.0.clone())
    }

    /// Deletes the key that ends in `ending`.
    pub(crate) fn evict(&mut self, now: Instant, ending: &[u8]) {
        let millis = self.brought_up(now);
        if let Some(key) = self.find(ending, millis) {
            self.store.delete(&key);
        }
    }

    /// Gives the key that ends in `ending` another value.
    pub(crate) fn overwrite(&mut self, now: Instant, ending: &[u8], value: Vec<u8>, ttl: Duration) {
        let millis = self.brought_up(now);
        if let Some(key) = self.find(ending, millis) {
            let ttl = Millis::try_from(ttl.as_millis()).unwrap_or(Millis::MAX);
            self.store
                .put(&key, value, Some(millis.saturating_add(ttl)));
        }
    }

    /// How much life the key that ends in `ending` has left.
    pub(crate) fn time_left(&mut self, now: Instant, ending: &[u8]) -> Option<Duration> {
        let millis = self.brought_up(now);
        let key = self.find(ending, millis)?;
        let expires = self.store.get(&key, millis)?.expires?;
        Some(Duration::from_millis(expires - millis))
    }

    /// Keys of locks without an expiry.
    pub(crate) fn everlasting(&mut self, now: Instant) -> Vec<String> {
        let millis = self.brought_up(now);
        let living = self.store.living(millis);
        let lock = |key: &[u8]| key.ends_with(b"}");
        let bad = living.filter(|(key, stored)| lock(key) && stored.expires.is_none());
        bad.map(|(key, _)| String::from_utf8_lossy(key).into_owned())
            .collect()
    }

    /// Sets the wall clock forward, or back.
    pub(crate) fn step_clock(&mut self, by: Duration, forward: bool) {
        self.hands.step(by, forward);
    }

    /// From `now` on the wall clock runs fast by `fast` millionths.
    pub(crate) fn run_fast(&mut self, fast: i64, now: Instant) {
        self.hands.run_fast(fast, now);
    }

    /// How much has happened to it and on its connections.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// How many requests it has carried out.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// Does what is due first, so that a look sees the present.
    fn brought_up(&mut self, now: Instant) -> Millis {
        self.run(now);
        self.hands.millis(now)
    }
}
