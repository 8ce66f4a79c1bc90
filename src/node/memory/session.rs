//! One connection of a node in memory: what goes out, and what is made of the answers.

use std::collections::VecDeque;
use std::sync::Arc;

use redis::Value;

use super::super::lane::{Entry, Work};
use super::super::wire::{self, Answer};
use super::super::{Event, Fault, FaultKind, Life, Reply};
use super::server::{ConnId, Question, Request, Response};
use super::{MemoryNode, State, WINDOW};
use crate::clock::Instant;

/// An open connection.
pub(super) struct Session {
    pub(super) conn: ConnId,
    flights: VecDeque<Flight>,
    marker: u64,
    /// The node's life is being read again.
    meeting: bool,
}

/// What a request on its way was for.
enum Flight {
    Batch { entries: usize },
    Introduction,
}

impl MemoryNode {
    pub(super) fn opening(&mut self, conn: ConnId, until: Instant, now: Instant) {
        let response = self.server.lock().receive(conn, now);
        let life = match response {
            Some(Response::Introduced(values)) => wire::introduced(&values),
            Some(Response::Ended(fault)) => Err(fault),
            Some(Response::Listening(_) | Response::Note { .. }) => return,
            Some(Response::Batch { .. }) => Err(FaultKind::Protocol.into()),
            None if now >= until => {
                let limit = self.terms.connect_within().as_millis();
                let detail = format!("no connection within {limit} ms");
                Err(Fault::new(FaultKind::Timeout, detail))
            }
            None => return,
        };
        match life {
            Ok(life) => self.opened(conn, life, now),
            Err(fault) => self.failed(conn, &fault, now),
        }
    }

    fn opened(&mut self, conn: ConnId, life: Life, now: Instant) {
        self.failures = 0;
        self.state = State::Open(Session {
            conn,
            flights: VecDeque::new(),
            marker: life.marker,
            meeting: false,
        });
        self.tell(Event::Met(life));
        self.ears.connected();
        self.lane.repaired(now);
    }

    /// Takes in what has arrived over the open connection.
    pub(super) fn serve(&mut self, now: Instant) {
        while let State::Open(session) = &self.state {
            let conn = session.conn;
            let response = self.server.lock().receive(conn, now);
            let outcome = match response {
                Some(response) => self.landed(response, now),
                None => match self.lane.silence(now) {
                    Some(silence) if silence >= self.terms.give_up() => {
                        let detail = format!("no answer for {} ms", silence.as_millis());
                        Err(Fault::new(FaultKind::Timeout, detail))
                    }
                    _ => return,
                },
            };
            if let Err(fault) = outcome {
                self.ended(conn, &fault, now);
            }
        }
    }

    /// A request is answered.
    ///
    /// # Errors
    /// The connection is of no use any more.
    fn landed(&mut self, response: Response, now: Instant) -> Result<(), Fault> {
        match response {
            Response::Listening(key) => {
                self.tell(Event::Listening(key));
                return Ok(());
            }
            Response::Note { key, payload } => {
                let note = wire::note(&payload);
                self.tell(Event::Note { key, note });
                return Ok(());
            }
            _ => {}
        }
        let State::Open(session) = &mut self.state else {
            return Ok(());
        };
        let flight = session.flights.pop_front();
        match (response, flight) {
            (Response::Ended(fault), _) => Err(fault),
            (Response::Introduced(values), Some(Flight::Introduction)) => {
                let life = wire::introduced(&values)?;
                session.marker = life.marker;
                session.meeting = false;
                self.tell(Event::Met(life));
                Ok(())
            }
            (Response::Batch { answers, marker }, Some(Flight::Batch { entries })) => {
                if let Some(marker) = marker {
                    self.check_marker(&marker, now);
                }
                let mut verdict = Ok(());
                for answer in answers.into_iter().take(entries) {
                    verdict = verdict.and(self.entry(answer));
                }
                verdict
            }
            _ => Err(FaultKind::Protocol.into()),
        }
    }

    /// Another marker than at the introduction, or none: the node has lost its data since.
    fn check_marker(&mut self, value: &Value, now: Instant) {
        let State::Open(session) = &mut self.state else {
            return;
        };
        if wire::millis(value).is_ok_and(|marker| marker == session.marker) {
            return;
        }
        if !std::mem::replace(&mut session.meeting, true) {
            session.flights.push_back(Flight::Introduction);
            let marker_key = Arc::clone(&self.terms.marker_key);
            let request = Request::Introduce { marker_key };
            self.server.lock().send(session.conn, request, now);
        }
        self.tell(Event::Wiped);
    }

    fn entry(&mut self, answer: Result<Vec<Value>, Fault>) -> Result<(), Fault> {
        let Some(entry) = self.lane.answered() else {
            return Ok(());
        };
        let id = entry.id;
        let mut time = None;
        let reply = match answer {
            Err(fault) => Reply::Failed(fault),
            Ok(values) => match wire::decode(&entry, &mut values.into_iter()) {
                Answer::Reply(reply) => reply,
                Answer::Timed(reply, node_time) => {
                    time = Some(node_time);
                    reply
                }
                Answer::Inspect => match self.lane.again(entry, Work::Inspect, false) {
                    true => return Ok(()),
                    false => Reply::HELD,
                },
                Answer::SpellOut => Reply::Failed(FaultKind::Protocol.into()),
            },
        };
        let verdict = match &reply {
            Reply::Failed(fault)
                if matches!(fault.kind(), FaultKind::Protocol | FaultKind::ReadOnly) =>
            {
                Err(fault.clone())
            }
            _ => Ok(()),
        };
        self.answer(id, reply, time);
        verdict
    }

    /// Puts all that waits on its way, a pipeline for each batch.
    pub(super) fn send(&mut self, now: Instant) {
        let State::Open(session) = &mut self.state else {
            return;
        };
        let mut requests = 0;
        let mut server = self.server.lock();
        while let Some((key, yes)) = self.ears.next() {
            server.send(session.conn, Request::Listen { key, yes }, now);
        }
        while session.flights.len() < WINDOW && self.lane.is_waiting() {
            let batch = self.lane.next_batch(now);
            let rests = |entry: &Entry| matches!(entry.work, Work::Ask(ask) if ask.rests_on_data());
            let with_marker = batch.iter().any(rests);
            let marker_key = with_marker.then(|| Arc::clone(&self.terms.marker_key));
            let entries = batch.len();
            requests += entries;
            let asks = batch.iter().map(question).collect();
            session.flights.push_back(Flight::Batch { entries });
            server.send(session.conn, Request::Batch { asks, marker_key }, now);
        }
        self.meters.took(requests, None);
        if self.terms.drives {
            server.run(now);
        }
    }
}

fn question(entry: &Entry) -> Question {
    Question {
        key: Box::from(&*entry.order.key),
        token: entry.order.token,
        work: entry.work,
    }
}
