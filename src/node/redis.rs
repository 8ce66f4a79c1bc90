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

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::connect::{Stage, Target, Wire, connect, redis_fault};
use super::lane::{Admission, Lane, Link};
use super::wire;
use super::{Ask, AskId, Event, Fault, FaultKind, Inbox, Life, NOBODY, Node, Order, Reply, unsent};
use crate::clock::{Clock, Instant};

mod session;

use session::serve;

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
            Admission::Withdrawn(asks) => {
                for ask in asks {
                    self.shared.answer(ask, Reply::Failed(unsent()), None);
                }
                Reply::WITHDRAWN
            }
            Admission::Owed => match lane.link() {
                Link::Down(fault) => Reply::Failed(fault.clone()),
                Link::Opening | Link::Open => return Ok(()),
            },
        };
        drop(lane);
        self.shared.answer(id, reply, None);
        Ok(())
    }

    fn listen(&mut self, _key: &Arc<[u8]>) {}

    fn ignore(&mut self, _key: &Arc<[u8]>) {}

    fn hangs(&self, now: Instant) -> Option<Duration> {
        self.shared.lane.borrow().hangs(now)
    }

    fn flush(&mut self) {
        if self.shared.lane.borrow().is_waiting() {
            self.shared.wake.notify_one();
        }
    }
}

impl Shared {
    fn tell(&self, event: Event) {
        self.inbox.push(self.index, event);
    }

    fn answer(&self, id: AskId, reply: Reply, time: Option<Duration>) {
        if id != NOBODY {
            self.tell(Event::Answer { id, reply, time });
        }
    }

    /// There is no connection now; `link` says whether requests should wait for the next one.
    fn broken(&self, link: Link, fault: &Fault) {
        let ended = self.lane.borrow_mut().broken(link);
        for entry in ended {
            self.answer(entry.id, Reply::Failed(fault.clone()), None);
        }
    }
}

/// Connects, serves, and connects again, until the node is dropped.
async fn supervise(shared: Rc<Shared>) {
    let mut failures = 0;
    loop {
        match open(&shared).await {
            Ok((wire, life)) => {
                let opened = shared.clock.now();
                let fault = serve(&shared, wire, life).await;
                // The next connection is tried at once, and requests wait for it; only when that
                // fails, too, is the node down.
                let now = shared.clock.now();
                let hung = shared.lane.borrow().hangs(now);
                shared.broken(Link::Opening, &fault);
                if let Some(hung) = hung {
                    shared.lane.borrow_mut().still_hangs(now.before(hung));
                }
                shared.tell(Event::Lost { why: fault, hung });
                if shared.clock.now().since(opened) >= SETTLED {
                    failures = 0;
                } else {
                    // A server that ends each connection at once is not besieged.
                    sleep(pause(failures, getrandom::u32().unwrap_or(0))).await;
                    failures += 1;
                }
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

/// A connection that lasted so long was a good one: the next needs no pause before it.
const SETTLED: Duration = Duration::from_secs(1);

/// 25 ms at first, doubling to half a second; half of it is left to chance.
fn pause(failures: u32, chance: u32) -> Duration {
    let whole = 25u64.checked_shl(failures.min(8)).unwrap_or(500).min(500);
    let half = Duration::from_millis(whole) / 2;
    half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

async fn open(shared: &Shared) -> Result<(Wire, Life), Fault> {
    let limit = shared.manners.connect_within();
    let stage = Cell::new(Stage::default());
    let opening = async {
        let mut wire = connect(&shared.target, limit, &stage).await?;
        let [info, marker] = wire::introduction(&shared.manners.marker_key);
        let (mut first, mut second) = (wire.connection.clone(), wire.connection.clone());
        // One by one, since a pipeline of redis-rs keeps no reason when an answer is no RESP.
        let exchange = try_join(
            first.send_packed_command(&info),
            second.send_packed_command(&marker),
        );
        let mut exchange = std::pin::pin!(exchange);
        let values = tokio::select! {
            values = &mut exchange => values,
            // What was said before the connection ended is here by now, and may say why. With a
            // good answer there is a connection all the same that cannot be used, and a driver
            // that must not be polled again.
            () = &mut wire.driver => match exchange.await {
                Ok(_) => return Err(Fault::from(FaultKind::ConnectionLost)),
                failed => failed,
            },
        };
        let (info, marker) = values.map_err(|error| redis_fault(&error))?;
        Ok((wire, wire::introduced(&[info, marker])?))
    };
    match timeout(limit, opening).await {
        Ok(outcome) => outcome,
        Err(_) => Err(stage.get().spent(limit)),
    }
}
