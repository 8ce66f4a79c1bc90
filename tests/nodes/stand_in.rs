//! A stub that stands in for a node: a small Redis that knows the scripts of the wire format.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{RIVAL, key};
use crate::support::{Keys, ScriptCall, Stub, StubReply, TinyRedis};

/// A scripted node that has long been in use, so that the restart guard has nothing against it.
pub struct StandIn {
    pub redis: Arc<TinyRedis>,
    pub stub: Stub,
}

impl StandIn {
    pub fn start() -> StandIn {
        let redis = Arc::new(TinyRedis::new());
        redis.on_script(run);
        // Every server has a run_id of its own.
        let stub = Stub::tiny(Arc::clone(&redis));
        redis.set_run_id(&format!("{:040x}", stub.port()));
        StandIn { redis, stub }
    }

    pub fn some(count: usize) -> Vec<StandIn> {
        (0..count).map(|_| StandIn::start()).collect()
    }

    /// Answers every command of these names in this way.
    pub fn answers(self, commands: &[&str], reply: &StubReply) -> StandIn {
        for command in commands {
            self.redis.answer(command, reply.clone());
        }
        self
    }

    pub fn url(&self) -> String {
        self.stub.url()
    }

    /// A rival holds the lock here.
    pub fn let_rival_hold(&self, name: &str) {
        let expiry = Some(Duration::from_secs(600));
        self.redis
            .with_keys(|keys| keys.put(key(name), RIVAL, expiry));
    }

    pub fn free(&self, name: &str) {
        self.redis.with_keys(|keys| keys.remove(key(name)));
    }

    pub fn holds(&self, name: &str) -> bool {
        self.redis.with_keys(|keys| keys.get(key(name)).is_some())
    }

    /// How many commands of this name came.
    pub fn count(&self, command: &str) -> usize {
        self.stub.of(command).len()
    }
}

pub fn urls(nodes: &[StandIn]) -> Vec<String> {
    nodes.iter().map(StandIn::url).collect()
}

/// Does what the script of the call does; each is known by the sentence it opens with.
fn run(keys: &mut Keys, call: &ScriptCall) -> StubReply {
    let (key, first) = (&call.keys[0], call.args.first());
    if call
        .body
        .starts_with("-- Reads, and on first use writes, the marker")
    {
        let marker = keys.get(key).unwrap_or_else(|| b"1000".to_vec());
        keys.put(key, &marker, None);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("a clock after 1970").as_millis().to_string();
        StubReply::Array(vec![StubReply::Bulk(marker), StubReply::bulk(now)])
    } else if call.body.contains("-- Deletes the lock's key") {
        let ours = keys.get(key).as_ref() == first;
        StubReply::Int(i64::from(ours && keys.remove(key)))
    } else if call.body.contains("-- Extends a lease") {
        let ttl = String::from_utf8_lossy(&call.args[1]).parse();
        let ttl = Duration::from_millis(ttl.expect("a TTL in milliseconds"));
        let what = match keys.get(key) {
            Some(owner) if Some(&owner) == first => {
                keys.expire(key, ttl);
                1
            }
            Some(_) => -1,
            None if call.args[2] == b"1" => {
                keys.put(key, &call.args[0], Some(ttl));
                2
            }
            None => 0,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("a clock after 1970");
        let time = [now.as_secs() as i64, i64::from(now.subsec_micros())];
        StubReply::Array([what, time[0], time[1]].map(StubReply::Int).into())
    } else if call.body.starts_with("-- Sets the lock's key") {
        grant(keys, call)
    } else if call.body.contains("-- Raises the fencing counter") {
        let ours = keys.get(key).as_ref() == first;
        if ours {
            let least = number(Some(call.args[1].clone()));
            let counter = number(keys.get(&call.keys[1])).max(least);
            keys.put(&call.keys[1], counter.to_string(), None);
        }
        StubReply::Int(i64::from(ours))
    } else {
        StubReply::error("ERR a script that no stand-in knows")
    }
}

fn number(text: Option<Vec<u8>>) -> i64 {
    let text = text.unwrap_or_default();
    String::from_utf8_lossy(&text).parse().unwrap_or(0)
}

/// `grant.lua`, with a counter that starts at one where there is one.
fn grant(keys: &mut Keys, call: &ScriptCall) -> StubReply {
    let (lock, counter) = (&call.keys[0], call.keys.get(1));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("a clock after 1970");
    let time = [now.as_secs() as i64, i64::from(now.subsec_micros())].map(StubReply::Int);
    let mut said = match keys.get(lock) {
        Some(owner) => {
            let left = StubReply::Int(keys.pttl(lock));
            vec![StubReply::Int(0), StubReply::Bulk(owner), left]
        }
        None => {
            let ttl = String::from_utf8_lossy(&call.args[1]).parse();
            let ttl = Duration::from_millis(ttl.expect("a TTL in milliseconds"));
            keys.put(lock, &call.args[0], Some(ttl));
            let hint = number(call.args.get(2).cloned());
            let next = counter.map_or(0, |key| number(keys.get(key)).max(hint) + 1);
            if let Some(counter) = counter {
                keys.put(counter, next.to_string(), None);
            }
            vec![StubReply::Int(1), StubReply::Int(next)]
        }
    };
    said.extend(time);
    StubReply::Array(said)
}
