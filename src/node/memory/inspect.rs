//! The look at servers in memory. It happens at one moment: what the network would need is worked
//! out, not waited for, so that a simulation can look, too.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt;

use super::super::inspect::{
    Answers, Content, End, Inspector, LabelOrder, Names, Reading, STEP, Scan, deleted, label_key,
    labelled, parse_label, reading,
};
use super::super::{Fault, FaultKind, OwnerToken};
use super::faults::Path;
use super::server::{ClientId, Server, Shared};
use super::store::Millis;
use crate::clock::{Clock, Instant};

/// Looks at the servers of a cluster, as one of its clients.
pub(crate) struct MemoryInspector {
    pub(crate) client: ClientId,
    pub(crate) servers: Vec<(String, Shared)>,
    pub(crate) clock: Clock,
    pub(crate) node_timeout: Duration,
}

impl MemoryInspector {
    /// Asks every server that can be reached; `ask` gets it with the time of its own clock.
    fn all<T: Send + 'static>(
        &self,
        deletes: bool,
        ask: impl Fn(&mut Server, Instant) -> T + Send + 'static,
        failed: impl Fn(Fault) -> T + Send + 'static,
    ) -> Answers<T> {
        let servers: Vec<Shared> = self.servers.iter().map(|(_, one)| one.clone()).collect();
        let (client, clock, limit) = (self.client, self.clock.clone(), self.node_timeout);
        let one = move |server: &Shared| {
            let (mut server, now) = (server.lock(), clock.now());
            match server.answers(client, limit, deletes, now) {
                Ok(()) => ask(&mut server, now),
                Err(fault) => failed(fault),
            }
        };
        async move { servers.iter().map(one).collect() }.boxed()
    }
}

impl Inspector for MemoryInspector {
    fn names(&self) -> Vec<String> {
        self.servers.iter().map(|(name, _)| name.clone()).collect()
    }

    fn read(&self, keys: Arc<[Vec<u8>]>, _: bool) -> Answers<Vec<Result<Reading, Fault>>> {
        let count = keys.len();
        let ask = move |server: &mut Server, now| {
            let now = server.hands.millis(now);
            let readings = keys.iter().map(|key| server.read(key, now));
            readings.collect()
        };
        self.all(false, ask, move |fault| vec![Err(fault); count])
    }

    fn scan(&self, plan: Scan) -> Answers<Names> {
        let ask = move |server: &mut Server, now| server.scan(&plan, now);
        self.all(false, ask, Names::failed)
    }

    fn label(&self, order: LabelOrder) -> Answers<Result<bool, Fault>> {
        let ask = move |server: &mut Server, now| server.label(&order, now);
        self.all(false, ask, Err)
    }

    fn delete(&self, key: Arc<[u8]>) -> Answers<Result<Content, Fault>> {
        let ask = move |server: &mut Server, now| server.force(&key, now);
        self.all(true, ask, Err)
    }
}

impl Server {
    /// Whether `client` would hear from it in time.
    fn answers(
        &mut self,
        client: ClientId,
        limit: Duration,
        deletes: bool,
        now: Instant,
    ) -> Result<(), Fault> {
        self.run(now);
        if self.faults.refusing {
            return Err(FaultKind::ConnectionRefused.into());
        }
        let path = self.paths.get(&client).copied().unwrap_or_default();
        let (_, latency) = self.faults.latency;
        // There and back for the connection, and for the request.
        let takes = latency.saturating_mul(4) + self.faults.service;
        if self.faults.hung || path != Path::Open || takes > limit {
            let detail = format!("no answer within {} ms", limit.as_millis());
            return Err(Fault::new(FaultKind::Timeout, detail));
        }
        self.faults.error(deletes).map_or(Ok(()), Err)
    }

    fn read(&self, key: &[u8], now: Millis) -> Result<Reading, Fault> {
        let [owner, left] = self.store.inspect(key, now);
        let counter = [key, b":fence"].concat();
        let label = self.store.read(&label_key(key), now);
        reading(&[owner, left, label, self.store.read(&counter, now)])
    }

    /// `label.lua`
    fn label(&mut self, order: &LabelOrder, now: Instant) -> Result<bool, Fault> {
        let now = self.hands.millis(now);
        let until = |span: Duration| {
            let millis = u64::try_from(span.as_millis().max(1)).unwrap_or(Millis::MAX);
            Some(now.saturating_add(millis))
        };
        let (label, owner) = (label_key(&order.key), order.owner.as_bytes());
        let stored = |key: &[u8]| Some(self.store.get(key, now)?.value.clone());
        if order.text.is_empty() {
            let before = stored(&label).and_then(|text| parse_label(&text));
            let ours = before.is_some_and(|label| label.owner == order.owner);
            let gone = ours && self.store.delete(&label).is_some();
            return labelled(&redis::Value::Int(gone.into()));
        }
        if stored(&order.key).as_deref() != Some(owner) {
            return labelled(&redis::Value::Int(0));
        }
        let text = [owner, b" ", order.text.as_bytes()].concat();
        self.store.together(|store| {
            if let Some(lasts) = order.lock_lasts {
                store.put(&order.key, owner.to_vec(), until(lasts));
            }
            store.put(&label, text, until(order.lasts));
        });
        labelled(&redis::Value::Int(1))
    }

    fn scan(&self, plan: &Scan, now: Instant) -> Names {
        let millis = self.hands.millis(now);
        let (_, latency) = self.faults.latency;
        let step = (latency * 2 + self.faults.service).as_nanos().max(1);
        let steps = usize::try_from(plan.within.as_nanos() / step).unwrap_or(usize::MAX);
        let reach = steps.saturating_mul(STEP);
        let (mut keys, mut bytes, mut end) = (BTreeSet::new(), 0, End::Complete);
        for (count, (key, _)) in self.store.living(millis).enumerate() {
            if count >= reach || keys.len() >= plan.most || bytes > plan.most_bytes {
                end = End::Cut;
                break;
            }
            if key.starts_with(&plan.start) && key.ends_with(b"}") {
                bytes += key.len();
                keys.insert(key.clone());
            }
        }
        Names { keys, end }
    }

    /// `force.lua`
    fn force(&mut self, key: &[u8], now: Instant) -> Result<Content, Fault> {
        let millis = self.hands.millis(now);
        let [owner, left] = self.store.inspect(key, millis);
        let answer = match &owner {
            redis::Value::BulkString(text) if OwnerToken::parse(text).is_some() => {
                self.store.delete(key);
                vec![redis::Value::Int(1), owner, left]
            }
            redis::Value::Nil => vec![redis::Value::Int(0)],
            _ => vec![redis::Value::Int(-1)],
        };
        let index = self.index;
        let name = || format!("n{index} force {}: {answer:?}", key.escape_ascii());
        self.journal.write(now, name);
        deleted(&redis::Value::Array(answer))
    }
}
