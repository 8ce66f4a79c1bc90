//! One connection's life: what waits goes out in one write, answers come back in order.
//!
//! ```text
//!   lane ─► encode ─► out ─► write       read ─► Replies ─► values ─► flights ─► lane ─► Inbox
//!                └── flights: what each reply is for, oldest first ──────┘
//! ```
//!
//! Nothing here waits: whoever flushes the node writes, and the supervisor reads. What one read
//! brings is told at once, so that the engine is woken once for it.

use std::collections::VecDeque;
use std::io;

use redis::{Cmd, PushKind, Value};
use tracing::debug;

use super::Shared;
use super::flight::Flight;
use super::login::hung_up;
use crate::node::connect::socket_fault;
use crate::node::ears::Ears;
use crate::node::lane::{Lane, Work};
use crate::node::socket::Socket;
use crate::node::wire::{self, Answer, Replies, Spelled};
use crate::node::{Event, Fault, FaultKind, Life, NOBODY, Reply};

/// No more is put behind what the socket has not taken: the rest waits in the lane, where it can
/// still be taken back.
const UNSENT: usize = 256 << 10;

/// How often is read before others have their turn: the nodes share one thread. All answers that
/// may be under way are here by then: after a standstill they come before the timers.
const READS: usize = 8;

/// A connection in use.
pub(super) struct Session {
    socket: Socket,
    out: Vec<u8>,
    /// How much of `out` the socket has taken.
    sent: usize,
    /// Why nothing more can be sent. What can still be read comes first.
    deaf: Option<Fault>,
    replies: Replies,
    /// Replies of the oldest flight, which are not all here yet.
    values: VecDeque<Value>,
    flights: VecDeque<Flight>,
    spelled: Spelled,
    command: Cmd,
    marker: u64,
    /// The node's life is being read again.
    meeting: bool,
    /// The server may say things unasked.
    resp3: bool,
    /// Somebody looks now and then whether the oldest request has been answered.
    pub(super) watched: bool,
    /// There may be more to read.
    pub(super) more: bool,
}

impl Session {
    /// `replies` holds what the server has said beyond its introduction: nothing, as a rule.
    pub(super) fn new(socket: Socket, replies: Replies, life: &Life, resp3: bool) -> Self {
        Session {
            socket,
            out: Vec::new(),
            sent: 0,
            deaf: None,
            replies,
            values: VecDeque::new(),
            flights: VecDeque::new(),
            spelled: Spelled::default(),
            command: Cmd::new(),
            marker: life.marker,
            meeting: false,
            resp3,
            watched: false,
            more: false,
        }
    }

    /// Whether the server owes an answer.
    pub(super) fn is_waiting(&self) -> bool {
        !self.flights.is_empty()
    }

    /// Whether somebody is to look after a silent server from now on.
    pub(super) fn watch(&mut self) -> bool {
        self.watched |= self.is_waiting();
        self.watched
    }

    /// Whether the supervisor must know what has been sent.
    pub(super) fn wants_supervisor(&self) -> bool {
        self.wants_write() || self.deaf.is_some() || !self.watched
    }

    /// Whether the socket has to take something yet.
    pub(super) fn wants_write(&self) -> bool {
        self.deaf.is_none() && (self.sent < self.out.len() || self.socket.wants_write())
    }

    /// Puts what `ears` want before the next requests. Each command is confirmed by one push, and
    /// by no reply. Over RESP2 a connection that listens can do nothing else: nothing is sent
    /// there, nothing is confirmed, and whoever waits polls.
    pub(super) fn listen(&mut self, ears: &mut Ears) {
        while let Some((key, yes)) = ears.next() {
            if !self.resp3 {
                continue;
            }
            self.command.clear();
            self.command
                .arg(if yes { "SUBSCRIBE" } else { "UNSUBSCRIBE" });
            self.command.arg(&*key).write_packed_command(&mut self.out);
            self.flights.push_back(Flight::Push);
        }
    }

    /// Sends all that waits, as far as the socket takes it.
    pub(super) fn send(&mut self, lane: &mut Lane, shared: &Shared) {
        let (before, mut requests) = (self.out.len(), 0);
        while self.deaf.is_none() && lane.is_waiting() && self.out.len() - self.sent < UNSENT {
            let (mut marker, mut replies) = (false, 0);
            let entries = lane.send_batch(shared.clock.now(), |entry| {
                marker |= matches!(entry.work, Work::Ask(ask) if ask.rests_on_data());
                replies += wire::replies_to(entry);
                wire::encode(entry, &mut self.spelled, &mut self.command, &mut self.out);
            });
            if marker {
                // Read behind them: data lost before one of them shows here.
                replies += 1;
                self.command.clear();
                self.command.arg("GET").arg(&shared.manners.marker_key);
                self.command.write_packed_command(&mut self.out);
            }
            self.flights.push_back(Flight::Batch {
                entries,
                marker,
                replies,
            });
            requests += entries;
        }
        shared.meters.took(requests, Some(self.out.len() - before));
        self.write();
    }

    fn write(&mut self) {
        if !self.wants_write() {
            return;
        }
        match self.socket.write(&self.out[self.sent..]) {
            Ok(count) => self.sent += count,
            Err(error) => self.deaf = Some(socket_fault(error)),
        }
        if self.sent == self.out.len() || self.deaf.is_some() {
            self.out.clear();
            self.out.shrink_to(UNSENT);
            self.sent = 0;
        }
    }

    /// Reads what is there, or a part of it, and puts what it says behind `events`. An error is
    /// the end of the connection; what was answered before it is in `events`.
    pub(super) fn receive(
        &mut self,
        lane: &mut Lane,
        shared: &Shared,
        events: &mut Vec<Event>,
    ) -> Result<(), Fault> {
        self.more = false;
        for _ in 0..READS {
            self.read(lane, shared, events)?;
            match self.socket.read(self.replies.room()) {
                Ok(0) => return Err(hung_up()),
                Ok(count) => self.replies.received(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Nothing is left to be read: the end that the write has met is the news.
                    return self.deaf.clone().map_or(Ok(()), Err);
                }
                Err(error) => return Err(socket_fault(error)),
            }
        }
        self.more = true;
        self.read(lane, shared, events)
    }

    /// Takes in the replies that are whole.
    fn read(
        &mut self,
        lane: &mut Lane,
        shared: &Shared,
        events: &mut Vec<Event>,
    ) -> Result<(), Fault> {
        while let Some(value) = self.replies.next()? {
            if let Value::Push { kind, .. } = &value {
                self.confirmed(kind);
                events.extend(wire::pushed(value));
                continue;
            }
            self.values.push_back(value);
            let Some(flight) = self.flights.front() else {
                let detail = "the server answered what nobody has asked";
                return Err(Fault::new(FaultKind::Protocol, detail));
            };
            if self.values.len() == flight.replies()
                && let Some(flight) = self.flights.pop_front()
            {
                self.landed(&flight, lane, shared, events)?;
            }
        }
        Ok(())
    }

    fn confirmed(&mut self, kind: &PushKind) {
        let confirms = matches!(kind, PushKind::Subscribe | PushKind::Unsubscribe);
        if confirms && let Some(Flight::Push) = self.flights.front() {
            self.flights.pop_front();
        }
    }

    /// All replies of a flight are here.
    fn landed(
        &mut self,
        flight: &Flight,
        lane: &mut Lane,
        shared: &Shared,
        events: &mut Vec<Event>,
    ) -> Result<(), Fault> {
        match *flight {
            Flight::Introduction => {
                let life = wire::introduced(self.values.make_contiguous())?;
                self.values.clear();
                self.marker = life.marker;
                self.meeting = false;
                events.push(Event::Met(life));
                Ok(())
            }
            // Refused: whoever waits polls.
            Flight::Push => match self.values.pop_front() {
                Some(Value::ServerError(error)) => {
                    let fault = wire::server_fault(&error);
                    debug!(node = %shared.target.name, %fault, "no release notes");
                    Ok(())
                }
                _ => Err(FaultKind::Protocol.into()),
            },
            Flight::Batch {
                entries, marker, ..
            } => {
                if marker && let Some(value) = self.values.pop_back() {
                    self.check_marker(&value, shared, events);
                }
                self.answers(entries, lane, events)
            }
        }
    }

    /// Another marker than at the introduction, or none: the node has lost its data since.
    fn check_marker(&mut self, value: &Value, shared: &Shared, events: &mut Vec<Event>) {
        let same = wire::millis(value).is_ok_and(|marker| marker == self.marker);
        let told = matches!(value, Value::Nil | Value::BulkString(_));
        if same || !told {
            return;
        }
        events.push(Event::Wiped);
        if !std::mem::replace(&mut self.meeting, true) {
            for command in wire::introduction(&shared.manners.marker_key) {
                command.write_packed_command(&mut self.out);
            }
            self.flights.push_back(Flight::Introduction);
        }
    }

    fn answers(
        &mut self,
        entries: usize,
        lane: &mut Lane,
        events: &mut Vec<Event>,
    ) -> Result<(), Fault> {
        let mut verdict = Ok(());
        let mut values = self.values.drain(..);
        for _ in 0..entries {
            let Some(entry) = lane.answered() else {
                break;
            };
            let id = entry.id;
            let mut time = None;
            let reply = match wire::decode(&entry, &mut values) {
                Answer::Reply(reply) => reply,
                Answer::Timed(reply, node_time) => {
                    time = Some(node_time);
                    reply
                }
                Answer::Inspect => match lane.again(entry, Work::Inspect, false) {
                    true => continue,
                    false => Reply::HELD,
                },
                Answer::SpellOut if !entry.spelled_out => {
                    let work = entry.work;
                    if lane.again(entry, work, true) {
                        continue;
                    }
                    Reply::Failed(FaultKind::ServerError.into())
                }
                Answer::SpellOut => Reply::Failed(FaultKind::Protocol.into()),
            };
            if let Reply::Failed(fault) = &reply
                && matches!(fault.kind(), FaultKind::Protocol | FaultKind::ReadOnly)
            {
                // In doubt, a new connection: to the same server, or to the new master.
                verdict = Err(fault.clone());
            }
            if id != NOBODY {
                events.push(Event::Answer { id, reply, time });
            }
        }
        verdict
    }
}

#[cfg(all(test, unix))]
mod tests;
