//! Makes the connection of one node, serves over it, and makes it again.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant as Moment, MissedTickBehavior, interval, sleep, timeout};

use super::Shared;
use super::login::Login;
use super::session::Session;
use crate::node::connect::{Stage, dial, socket_fault};
use crate::node::lane::Link;
use crate::node::socket::Stream;
use crate::node::wire::Replies;
use crate::node::{Event, Fault, FaultKind, Life};

/// Connects, serves, and connects again, until the node is dropped.
pub(super) async fn supervise(shared: Arc<Shared>) {
    let mut failures = 0;
    loop {
        match open(&shared).await {
            Ok(opened_session) => {
                let opened = shared.clock.now();
                let fault = serve(&shared, opened_session).await;
                // The next connection is tried at once, and requests wait for it; only when that
                // fails, too, is the node down.
                let now = shared.clock.now();
                let hung = shared.line().lane.hangs(now);
                shared.line().session = None;
                shared.broken(Link::Opening, &fault);
                if let Some(hung) = hung {
                    shared.line().lane.still_hangs(now.before(hung));
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
                let news = !matches!(shared.line().lane.link(), Link::Down(_));
                shared.broken(Link::Down(fault.clone()), &fault);
                if news {
                    shared.tell(Event::Down(fault));
                }
                sleep(pause(failures, getrandom::u32().unwrap_or(0))).await;
                failures += 1;
                let now = shared.clock.now();
                shared.line().lane.forget(now);
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

/// A connection that is ready, and what the server has said of itself on it.
struct Opened {
    session: Session,
    stream: Arc<Stream>,
    life: Life,
}

async fn open(shared: &Shared) -> Result<Opened, Fault> {
    let limit = shared.manners.connect_within();
    let stage = Cell::new(Stage::default());
    let opening = async {
        let until = Moment::now() + limit;
        match introduce(shared, until, &stage, true).await {
            // There are proxies that hang up on a word which they do not know.
            Err((_, Unheard(true))) => introduce(shared, until, &stage, false).await,
            introduced => introduced,
        }
    };
    match timeout(limit, opening).await {
        Ok(outcome) => outcome.map_err(|(fault, _)| fault),
        Err(_) => Err(stage.get().spent(limit)),
    }
}

/// Whether a connection has ended without a word.
struct Unheard(bool);

async fn introduce(
    shared: &Shared,
    until: Moment,
    stage: &Cell<Stage>,
    hello: bool,
) -> Result<Opened, (Fault, Unheard)> {
    let dialled = dial(&shared.target, until, stage).await;
    let mut socket = dialled.map_err(|fault| (fault, Unheard(false)))?;
    let mut replies = Replies::default();
    let mut login = Login {
        socket: &mut socket,
        replies: &mut replies,
        heard: false,
        resp3: false,
    };
    let marker_key = &shared.manners.marker_key;
    match login.run(&shared.target, marker_key, hello).await {
        Ok(life) => {
            let resp3 = login.resp3;
            Ok(Opened {
                stream: socket.stream(),
                session: Session::new(socket, replies, &life, resp3),
                life,
            })
        }
        Err(fault) => {
            let unheard = !login.heard && fault.kind() == FaultKind::ConnectionLost;
            Err((fault, Unheard(unheard)))
        }
    }
}

/// Serves requests until the connection ends, and says why it did.
async fn serve(shared: &Shared, opened: Opened) -> Fault {
    let Opened {
        mut session,
        stream,
        life,
    } = opened;
    shared.tell(Event::Met(life));
    {
        let mut line = shared.line();
        line.lane.repaired(shared.clock.now());
        line.ears.connected();
        session.listen(&mut line.ears);
        line.session = Some(session);
    }
    let give_up = shared.manners.give_up();
    let mut check = interval(give_up / 4);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first look also sends what has waited for the connection.
    let mut due = shared.receive();
    loop {
        if let Err(fault) = due {
            return fault;
        }
        if shared.has_more() {
            // The engine and the other nodes first.
            yield_now().await;
            due = shared.receive();
            continue;
        }
        let (interest, watched) = shared.attention();
        due = tokio::select! {
            biased;
            ready = stream.ready(interest) => match ready {
                Ok(_) => shared.receive(),
                Err(error) => Err(socket_fault(error)),
            },
            () = shared.wake.notified() => shared.receive(),
            _ = check.tick(), if watched => shared.check_silence(give_up),
        };
    }
}
