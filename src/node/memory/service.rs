//! What a server does with a request, at the moment of its arrival.

use redis::Value;

use super::super::lane::Work;
use super::super::{Ask, Fault, FaultKind, Fencing};
use super::server::{ClientId, ConnId, Question, Request, Response, Server};
use crate::clock::Instant;

impl Server {
    /// Carries one request out, and answers; of a pipeline no more than `most` entries, which
    /// then remains without an answer.
    pub(super) fn carry_out(&mut self, id: ConnId, request: Request, at: Instant, most: usize) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.pending = conn.pending.saturating_sub(1);
        }
        let alive = self.conns.get(&id).is_some_and(|conn| !conn.dead);
        let done = at.after(self.faults.service);
        if !alive {
            self.sweep(id);
            return;
        }
        self.free_from = done;
        self.served += 1;
        self.events += 1 + request.len() as u64;
        let response = match request {
            Request::Introduce { marker_key } => self.introduce(&marker_key, at),
            Request::Listen { key, yes } => {
                self.subscribe(id, &key, yes, done);
                return self.sweep(id);
            }
            Request::Batch { asks, marker_key } => {
                let whole = most >= asks.len();
                let asks = asks.iter().take(most);
                let answers = asks.map(|ask| self.answer(id, ask, (at, done))).collect();
                let now = self.hands.millis(at);
                let marker = marker_key.map(|key| self.store.read(&key, now));
                if !whole {
                    return;
                }
                Response::Batch { answers, marker }
            }
        };
        if let Response::Ended(_) = response
            && let Some(conn) = self.conns.get_mut(&id)
        {
            conn.dead = true;
        }
        self.respond(id, response, done);
        self.sweep(id);
    }

    fn introduce(&mut self, marker_key: &[u8], at: Instant) -> Response {
        if self.faults.refusing {
            return Response::Ended(FaultKind::ConnectionRefused.into());
        }
        if let Some(fault) = self.faults.error(false) {
            return Response::Ended(fault);
        }
        let seconds = self.hands.at(at) / 1_000_000_000;
        let uptime = i128::from(seconds) - i128::from(self.born);
        let run_id = &self.run_id;
        let info = format!("# Server\r\nrun_id:{run_id}\r\nuptime_in_seconds:{uptime}\r\n");
        let now = self.hands.millis(at);
        let marker = self.store.marker(marker_key, now);
        Response::Introduced(vec![Value::BulkString(info.into_bytes()), marker])
    }

    fn answer(
        &mut self,
        id: ConnId,
        ask: &Question,
        (at, done): (Instant, Instant),
    ) -> Result<Vec<Value>, Fault> {
        let release = matches!(ask.work, Work::Ask(Ask::Release { .. }));
        let result = match self.faults.error(release) {
            Some(fault) => Err(fault),
            None => Ok(self.command(ask, (at, done))),
        };
        let client = self.conns.get(&id).map_or(0, |conn| conn.client);
        self.look_at(client, ask, result.is_ok(), at);
        self.journal.write(at, || {
            let Question { key, token, work } = ask;
            let key = String::from_utf8_lossy(key);
            let said = match &result {
                Ok(values) => format!("{values:?}"),
                Err(fault) => fault.to_string(),
            };
            format!(
                "c{client} → n{} {work:?} {key} {token:?}: {said}",
                self.index
            )
        });
        result
    }

    /// What the simulation wants to know of a request.
    fn look_at(&mut self, client: ClientId, ask: &Question, carried_out: bool, at: Instant) {
        let now = self.hands.millis(at);
        let stored = self.store.get(&ask.key, now);
        if stored.is_some_and(|stored| stored.expires.is_none()) {
            self.audit.everlasting(&ask.key);
        }
        let ours = stored.is_some_and(|stored| stored.value == ask.token.as_bytes());
        if carried_out && matches!(ask.work, Work::Ask(Ask::Grant { .. } | Ask::Extend { .. })) {
            self.audit.answered(client, &ask.token, ours, at);
        }
    }

    fn command(&mut self, ask: &Question, (at, done): (Instant, Instant)) -> Vec<Value> {
        let now = self.hands.millis(at);
        let time = self.hands.time(at);
        let Question { key, token, work } = ask;
        match *work {
            Work::Ask(Ask::Grant {
                ttl_millis,
                fence,
                block,
                announced,
            }) => {
                let answer = match fence {
                    Some(fence) => {
                        let terms = (ttl_millis, fence, block);
                        self.store.fenced_grant(key, token, terms, now, time)
                    }
                    None if announced => {
                        self.store.scripted_grant(key, token, ttl_millis, now, time)
                    }
                    None => self.store.grant(key, token, ttl_millis, now),
                };
                let taken = matches!(&answer, Value::Array(parts) if parts[0] == Value::Int(1));
                if announced && taken {
                    let note = format!("1 taken {:08x} {ttl_millis}", token.head());
                    self.publish(key, &note, done);
                }
                vec![answer]
            }
            Work::Ask(Ask::Raise { to, fence }) => {
                let fence = Fencing { hint: to, ..fence };
                vec![self.store.raise(key, token, fence, now, time)]
            }
            Work::Ask(Ask::Extend {
                ttl_millis,
                restore,
                fence,
            }) => {
                let terms = (ttl_millis, restore);
                let answer = self.store.extend(key, token, terms, now, time);
                let ours = matches!(&answer, Value::Array(parts) if matches!(parts[..], [Value::Int(1 | 2), ..]));
                fence
                    .filter(|_| ours)
                    .and_then(|fence| self.store.lift(key, fence, now, time));
                vec![answer]
            }
            Work::Ask(Ask::Release { fence, .. }) => {
                let answer = self.store.release(key, token, now);
                fence.and_then(|fence| self.store.lift(key, fence, now, time));
                if self.store.inspect(key, now)[0] != Value::Nil {
                    // Another owner's: nothing is free.
                    return vec![answer];
                }
                let listeners = self.listeners(key);
                self.publish(key, "1 freed", done);
                if listeners > 0 {
                    self.publish(key, &format!("1 crowd {listeners}"), done);
                }
                let deleted = i64::from(answer == Value::Int(1));
                vec![Value::Int(deleted + 2 * listeners)]
            }
            Work::Inspect => self.store.inspect(key, now).into(),
        }
    }
}
