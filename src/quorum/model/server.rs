//! One server: what its data and its clock make of a request.

use super::*;
use crate::node::counter::Now;

/// What a counter moves by in a second: more than the grants of the model can in all.
const SECOND: u64 = 64;

/// There is no key without an expiry: the type has no place for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) owner: Owner,
    /// On the server's own clock; gone from then on.
    pub(super) expires: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) key: Option<Key>,
    counter: Option<u64>,
    /// Key and counter before the last write.
    before: Option<(Option<Key>, Option<u64>)>,
    pub(super) run: u8,
    born: u64,
    /// When the marker was written.
    marker: Option<u64>,
    /// By how much its clock is ahead.
    ahead: i64,
    pub(super) drifted: bool,
    pub(super) lost: bool,
    pub(super) deleted: bool,
}

impl Server {
    pub(super) fn new() -> Self {
        Server {
            key: None,
            counter: None,
            before: None,
            run: 0,
            born: EPOCH - AGE,
            marker: Some(EPOCH - AGE),
            ahead: 0,
            drifted: false,
            lost: false,
            deleted: false,
        }
    }

    /// Its own clock, in ticks.
    pub(super) fn time(&self, now: u8) -> u64 {
        (EPOCH + u64::from(now)).saturating_add_signed(self.ahead)
    }

    pub(super) fn drift(&mut self, by: i64) {
        self.ahead += by;
        self.drifted = true;
    }

    /// Drops what has run out.
    pub(super) fn expire(&mut self, now: u8) {
        let time = self.time(now);
        self.key = self.key.filter(|key| time < key.expires);
    }

    pub(super) fn holds(&self, owner: Owner) -> bool {
        self.key.is_some_and(|key| key.owner == owner)
    }

    /// What it says of itself on a new connection. Its seconds are whole ones.
    pub(super) fn reading(&mut self, node: usize, now: u8) -> Reading {
        let time = self.time(now);
        let since = *self.marker.get_or_insert(time);
        Reading {
            run_id: Some(format!("{node}{}", self.run)),
            uptime: Some(Duration::from_secs(time / 2 - self.born / 2)),
            marker: self.marker(),
            marker_age: ticks(time - since),
        }
    }

    /// The marker's value; a lost one and its successor differ, as in milliseconds.
    pub(super) fn marker(&self) -> u64 {
        let life = u64::from(self.lost);
        self.marker.map_or(0, |since| 2 * since + life)
    }

    pub(super) fn lose(&mut self, loss: Loss, now: u8) {
        self.lost = true;
        match loss {
            Loss::Empty | Loss::Flushed => {
                (self.key, self.counter, self.before) = (None, None, None);
                self.marker = None;
            }
            Loss::WithData => self.lost = false,
            Loss::WithoutLastWrite => {
                if let Some((key, counter)) = self.before.take() {
                    (self.key, self.counter) = (key, counter);
                }
                self.lost = false;
            }
        }
        if loss != Loss::Flushed {
            self.run += 1;
            self.born = self.time(now);
        }
        self.expire(now);
    }

    fn write(&mut self, scenario: &Scenario, key: Option<Key>, counter: Option<u64>) {
        if scenario.loss == Loss::WithoutLastWrite && scenario.losses > 0 {
            self.before = Some((self.key, self.counter));
        }
        (self.key, self.counter) = (key, counter);
    }

    fn clock(&self, scenario: &Scenario, now: u8) -> Now {
        let time = self.time(now);
        Now {
            floor: time / 2 * SECOND,
            limit: (time + scenario.ttl) * SECOND / 2,
        }
    }

    /// Carries a request out. A release has no answer that anybody waits for.
    pub(super) fn serve(
        &mut self,
        scenario: &Scenario,
        owner: Owner,
        ask: Ask,
        now: u8,
    ) -> Option<Reply> {
        let expires = self.time(now) + scenario.ttl;
        let ours = self.holds(owner);
        match ask {
            Ask::Grant => Some(self.grant(scenario, Key { owner, expires }, now)),
            Ask::Raise { to } => {
                let raised = self.clock(scenario, now).raised(self.counter, to);
                let raised = raised.filter(|_| ours);
                if raised.is_some() && raised != self.counter {
                    self.write(scenario, self.key, raised);
                }
                let done = raised.is_some();
                Some(Reply::Raised { to, done })
            }
            Ask::Extend { number, restore } => {
                let what = match self.key {
                    Some(_) if ours => Extended::Renewed,
                    Some(_) => Extended::Taken,
                    None if restore => Extended::Restored,
                    None => Extended::Absent,
                };
                if matches!(what, Extended::Renewed | Extended::Restored) {
                    self.write(scenario, Some(Key { owner, expires }), self.counter);
                }
                let marker = restore.then(|| self.marker());
                Some(Reply::Extended {
                    number,
                    what,
                    marker,
                })
            }
            Ask::Release => {
                let any = scenario.rule == Rule::DeleteWithoutCompare && self.key.is_some();
                if ours || any {
                    self.write(scenario, None, self.counter);
                }
                None
            }
        }
    }

    fn grant(&mut self, scenario: &Scenario, key: Key, now: u8) -> Reply {
        let marker = self.marker();
        if self.key.is_some() {
            return Reply::Refused { marker };
        }
        let counter = match scenario.fencing {
            true => self.clock(scenario, now).granted(self.counter, 0, 1),
            false => None,
        };
        self.write(scenario, Some(key), counter);
        let counter = counter.unwrap_or(0);
        Reply::Granted { counter, marker }
    }
}
