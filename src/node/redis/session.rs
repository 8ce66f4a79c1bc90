//! One connection's life: what waits goes out in pipelines, answers come back in order.

use std::collections::VecDeque;

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesOrdered;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisResult, Value};
use tokio::time::{MissedTickBehavior, interval};

use super::Shared;
use crate::node::connect::{Wire, redis_fault};
use crate::node::lane::{Entry, Work};
use crate::node::wire::{self, Answer, Spelled};
use crate::node::{Ask, Event, Fault, FaultKind, Life, Reply};

/// The most pipelines on their way at once. Below the 50 places of redis-rs's own queue, so that
/// none ever waits for a place there and is overtaken.
const WINDOW: usize = 32;

/// What a pipeline on its way was for.
enum Flight {
    /// So many entries of the lane, and whether the marker was read behind them.
    Batch {
        entries: usize,
        marker: bool,
    },
    Introduction,
}

type Flights = FuturesOrdered<LocalBoxFuture<'static, (Flight, RedisResult<Vec<Value>>)>>;

/// A connection in use.
struct Session<'a> {
    shared: &'a Shared,
    connection: MultiplexedConnection,
    flights: Flights,
    spelled: Spelled,
    marker: u64,
    /// The node's life is being read again.
    meeting: bool,
}

/// Serves requests until the connection ends, and says why it did.
pub(super) async fn serve(shared: &Shared, wire: Wire, life: Life) -> Fault {
    let mut driver = wire.driver;
    let mut session = Session {
        shared,
        connection: wire.connection,
        flights: Flights::new(),
        spelled: Spelled::default(),
        marker: life.marker,
        meeting: false,
    };
    shared.tell(Event::Met(life));
    shared.lane.borrow_mut().repaired(shared.clock.now());
    let give_up = shared.manners.give_up();
    let mut check = interval(give_up / 4);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        session.send();
        tokio::select! {
            biased;
            Some((flight, values)) = session.flights.next() => {
                if let Err(fault) = session.landed(flight, values) {
                    return fault;
                }
            }
            () = &mut driver => return session.ended().await,
            () = shared.wake.notified() => {}
            _ = check.tick(), if !session.flights.is_empty() => {
                let silence = shared.lane.borrow().silence(shared.clock.now());
                if let Some(silence) = silence.filter(|&time| time >= give_up) {
                    let detail = format!("no answer for {} ms", silence.as_millis());
                    return Fault::new(FaultKind::Timeout, detail);
                }
            }
        }
    }
}

impl Session<'_> {
    /// Puts all that waits on its way, a pipeline for each batch.
    fn send(&mut self) {
        let mut lane = self.shared.lane.borrow_mut();
        while self.flights.len() < WINDOW && lane.is_waiting() {
            let batch = lane.next_batch(self.shared.clock.now());
            let mut pipeline = Pipeline::with_capacity(batch.len() + 1);
            let grant = |entry: &Entry| matches!(entry.work, Work::Ask(Ask::Grant { .. }));
            let marker = batch.iter().any(grant);
            let mut replies = usize::from(marker);
            for entry in &batch {
                wire::encode(entry, &mut self.spelled, &mut pipeline);
                replies += if entry.work == Work::Inspect { 2 } else { 1 };
            }
            if marker {
                // Read behind the grants: data lost before one of them shows here.
                pipeline.cmd("GET").arg(&self.shared.manners.marker_key);
            }
            let entries = batch.len();
            self.launch(Flight::Batch { entries, marker }, pipeline, replies);
        }
    }

    fn launch(&mut self, flight: Flight, pipeline: Pipeline, replies: usize) {
        let mut connection = self.connection.clone();
        self.flights.push_back(Box::pin(async move {
            let values = connection.send_packed_commands(&pipeline, 0, replies);
            (flight, values.await)
        }));
    }

    /// A pipeline is answered.
    ///
    /// # Errors
    /// The connection is of no use any more.
    fn landed(&mut self, flight: Flight, values: RedisResult<Vec<Value>>) -> Result<(), Fault> {
        let mut values = VecDeque::from(values.map_err(|error| redis_fault(&error))?);
        match flight {
            Flight::Introduction => {
                let life = wire::introduced(values.make_contiguous())?;
                self.marker = life.marker;
                self.meeting = false;
                self.shared.tell(Event::Met(life));
                Ok(())
            }
            Flight::Batch { entries, marker } => {
                if marker && let Some(value) = values.pop_back() {
                    self.check_marker(&value)?;
                }
                self.answers(entries, values.into_iter())
            }
        }
    }

    /// The connection has ended. What was answered before its end still counts, and the first
    /// pipeline without an answer knows why it has none: it may have been unintelligible.
    async fn ended(&mut self) -> Fault {
        while let Some((flight, values)) = self.flights.next().await {
            match self.landed(flight, values) {
                Ok(()) => {}
                Err(fault) if fault.kind() == FaultKind::ConnectionLost => break,
                Err(fault) => return fault,
            }
        }
        let detail = "the server closed the connection";
        Fault::new(FaultKind::ConnectionLost, detail)
    }

    /// Another marker than at the introduction, or none: the node has lost its data since.
    fn check_marker(&mut self, value: &Value) -> Result<(), Fault> {
        let same = wire::millis(value).is_ok_and(|marker| marker == self.marker);
        let told = matches!(value, Value::Nil | Value::BulkString(_));
        if same || !told {
            return Ok(());
        }
        self.shared.tell(Event::Wiped);
        if !std::mem::replace(&mut self.meeting, true) {
            let mut pipeline = Pipeline::with_capacity(2);
            for command in wire::introduction(&self.shared.manners.marker_key) {
                pipeline.add_command(command);
            }
            self.launch(Flight::Introduction, pipeline, 2);
        }
        Ok(())
    }

    fn answers(
        &mut self,
        entries: usize,
        mut values: impl Iterator<Item = Value>,
    ) -> Result<(), Fault> {
        let mut verdict = Ok(());
        for _ in 0..entries {
            let Some(entry) = self.shared.lane.borrow_mut().answered() else {
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
                Answer::Inspect => match self.again(entry, Work::Inspect, false) {
                    true => continue,
                    false => Reply::HELD,
                },
                Answer::SpellOut if !entry.spelled_out => {
                    let work = entry.work;
                    match self.again(entry, work, true) {
                        true => continue,
                        false => Reply::Failed(FaultKind::ServerError.into()),
                    }
                }
                Answer::SpellOut => Reply::Failed(FaultKind::Protocol.into()),
            };
            if let Reply::Failed(fault) = &reply
                && matches!(fault.kind(), FaultKind::Protocol | FaultKind::ReadOnly)
            {
                // In doubt, a new connection: to the same server, or to the new master.
                verdict = Err(fault.clone());
            }
            self.shared.answer(id, reply, time);
        }
        verdict
    }

    fn again(&self, entry: Entry, work: Work, spelled_out: bool) -> bool {
        self.shared
            .lane
            .borrow_mut()
            .again(entry, work, spelled_out)
    }
}
