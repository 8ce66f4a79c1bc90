//! A Redis or Valkey server: one connection, and a supervisor that keeps making it.
//!
//! ```text
//!            ┌──────── backoff, jittered ◄─────── could not connect ──┐
//!            ▼                                                        │
//!   connect ─► introduce (INFO, marker) ─► session ─► ended ─► once more at once
//!                                            │  ▲
//!                            flush ─► pipelines ─► answers ─► Inbox
//! ```
//!
//! redis-rs speaks the protocol; the queue, its order, the time limits and the reconnects are
//! ours, since its own would re-order, re-send and hide restarts.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesOrdered;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisResult, Value};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::connect::{Target, Wire, connect, redis_fault};
use super::lane::{Admission, Entry, Lane, Link, Work};
use super::wire::{self, Answer, Spelled};
use super::{Ask, AskId, Event, Fault, FaultKind, Inbox, Life, NOBODY, Node, Order, Reply};
use crate::clock::{Clock, Instant};

/// How a node is treated.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    /// Where the marker of the set is (P10).
    pub(crate) marker_key: Vec<u8>,
    /// A request without an answer for so long makes the node one that hangs.
    pub(crate) patience: Duration,
    /// The most grants and extensions in its queue.
    pub(crate) limit: usize,
}

impl Manners {
    /// A connection whose oldest request has waited so long is given up: the socket is half open,
    /// or the server is stopped.
    fn give_up(&self) -> Duration {
        self.patience.saturating_mul(5).max(Duration::from_secs(1))
    }

    /// The time for one connection: name, socket, TLS, credentials and introduction.
    fn connect_within(&self) -> Duration {
        self.patience.saturating_mul(2).max(Duration::from_secs(2))
    }
}

/// The most pipelines on their way at once. Below the 50 places of redis-rs's own queue, so that
/// none ever waits for a place there and is overtaken.
const WINDOW: usize = 32;

/// The handle of a server: submits, and ends the supervisor when it is dropped.
pub(crate) struct RedisNode {
    shared: Rc<Shared>,
    supervisor: AbortHandle,
}

struct Shared {
    index: usize,
    target: Target,
    manners: Manners,
    lane: RefCell<Lane>,
    wake: Notify,
    inbox: Inbox,
    clock: Clock,
}

impl RedisNode {
    /// Starts the supervisor on the present `LocalSet`; it connects at once.
    pub(crate) fn spawn(
        index: usize,
        target: Target,
        manners: Manners,
        inbox: Inbox,
        clock: Clock,
    ) -> Self {
        let lane = RefCell::new(Lane::new(manners.patience, manners.limit));
        let shared = Rc::new(Shared {
            index,
            target,
            manners,
            lane,
            wake: Notify::new(),
            inbox,
            clock,
        });
        let supervisor = tokio::task::spawn_local(supervise(Rc::clone(&shared)));
        RedisNode {
            shared,
            supervisor: supervisor.abort_handle(),
        }
    }
}

impl Drop for RedisNode {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

impl Node for RedisNode {
    fn name(&self) -> &str {
        &self.shared.target.name
    }

    fn submit(
        &mut self,
        id: AskId,
        order: &Rc<Order>,
        ask: Ask,
        now: Instant,
    ) -> Result<(), Fault> {
        let mut lane = self.shared.lane.borrow_mut();
        let reply = match lane.admit(id, order, ask, now)? {
            Admission::Queued => return Ok(()),
            Admission::Withdrawn => Reply::Released(false),
            Admission::Owed => match lane.link() {
                Link::Down(fault) => Reply::Failed(fault.clone()),
                Link::Opening | Link::Open => return Ok(()),
            },
        };
        drop(lane);
        self.shared.answer(id, reply);
        Ok(())
    }

    fn flush(&mut self) {
        if self.shared.lane.borrow().is_waiting() {
            self.shared.wake.notify_one();
        }
    }

    fn backlog(&self) -> usize {
        self.shared.lane.borrow().backlog()
    }
}

impl Shared {
    fn tell(&self, event: Event) {
        self.inbox.push(self.index, event);
    }

    fn answer(&self, id: AskId, reply: Reply) {
        if id != NOBODY {
            self.tell(Event::Answer { id, reply });
        }
    }

    /// There is no connection now; `link` says whether requests should wait for the next one.
    fn broken(&self, link: Link, fault: &Fault) {
        let ended = self.lane.borrow_mut().broken(link);
        for entry in ended {
            self.answer(entry.id, Reply::Failed(fault.clone()));
        }
    }
}

/// Connects, serves, and connects again, until the node is dropped.
async fn supervise(shared: Rc<Shared>) {
    let mut failures = 0;
    loop {
        match open(&shared).await {
            Ok((wire, life)) => {
                failures = 0;
                let fault = serve(&shared, wire, life).await;
                // The next connection is tried at once, and requests wait for it; only when that
                // fails, too, is the node down.
                shared.broken(Link::Opening, &fault);
            }
            Err(fault) => {
                let news = !matches!(shared.lane.borrow().link(), Link::Down(_));
                shared.broken(Link::Down(fault.clone()), &fault);
                if news {
                    shared.tell(Event::Down(fault));
                }
                sleep(pause(failures, getrandom::u32().unwrap_or(0))).await;
                failures += 1;
                let now = shared.clock.now();
                shared.lane.borrow_mut().forget(now);
            }
        }
    }
}

/// 25 ms at first, doubling to half a second; half of it is left to chance.
fn pause(failures: u32, chance: u32) -> Duration {
    let whole = 25u64.checked_shl(failures.min(8)).unwrap_or(500).min(500);
    let half = Duration::from_millis(whole) / 2;
    half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

async fn open(shared: &Shared) -> Result<(Wire, Life), Fault> {
    let limit = shared.manners.connect_within();
    let opening = async {
        let mut wire = connect(&shared.target).await?;
        let marker_key = &shared.manners.marker_key;
        let introduction = wire::introduction(marker_key);
        let mut connection = wire.connection.clone();
        let exchange = connection.send_packed_commands(&introduction, 0, 2);
        let values = tokio::select! {
            values = exchange => values.map_err(|error| redis_fault(&error))?,
            () = &mut wire.driver => return Err(FaultKind::ConnectionLost.into()),
        };
        Ok((wire, wire::introduced(&values)?))
    };
    match timeout(limit, opening).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let detail = format!("no connection within {} ms", limit.as_millis());
            Err(Fault::new(FaultKind::Timeout, detail))
        }
    }
}

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

/// One connection's life.
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
async fn serve(shared: &Shared, wire: Wire, life: Life) -> Fault {
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
            () = &mut driver => {
                let detail = "the server closed the connection";
                return Fault::new(FaultKind::ConnectionLost, detail);
            }
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

    /// Another marker than at the introduction, or none: the node has lost its data since.
    fn check_marker(&mut self, value: &Value) -> Result<(), Fault> {
        let same = wire::millis(value).is_ok_and(|marker| marker == self.marker);
        let told = matches!(value, Value::Nil | Value::BulkString(_));
        if same || !told {
            return Ok(());
        }
        self.shared.tell(Event::Wiped);
        if !std::mem::replace(&mut self.meeting, true) {
            let introduction = wire::introduction(&self.shared.manners.marker_key);
            self.launch(Flight::Introduction, introduction, 2);
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
            let reply = match wire::decode(&entry, &mut values) {
                Answer::Reply(reply) => reply,
                Answer::Inspect => match self.again(entry, Work::Inspect, false) {
                    true => continue,
                    false => Reply::Held { left: None },
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
            self.shared.answer(id, reply);
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
