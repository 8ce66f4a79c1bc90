//! The nodes: requests go in, events come out.
//!
//! ```text
//!   submit(id, order, ask) ─► [ lane: one queue a node ] ─► connection ─► server
//!   flush()                                                     │
//!   Inbox ◄────────── Answer { id } · Met · Wiped · Lost · Down ┘
//! ```
//!
//! **Invariant:** what is submitted to a node for one key reaches the server in the order of
//! submission, over one connection, or not at all. A release can therefore follow its grant
//! without waiting for the grant's answer (P2). A node knows nothing of quorums.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Instant;

pub(crate) mod aside;
pub(crate) mod connect;
#[cfg(any(test, feature = "test-util"))]
pub(crate) mod counter;
pub(crate) mod ears;
pub(crate) mod fault;
pub(crate) mod hook;
pub(crate) mod inspect;
pub(crate) mod lane;
#[cfg(any(test, feature = "test-util"))]
pub(crate) mod memory;
mod reach;
pub(crate) mod redis;
pub(crate) mod script;
pub(crate) mod socket;
pub(crate) mod survey;
pub(crate) mod tls;
pub(crate) mod token;
pub(crate) mod wire;

pub use fault::{Fault, FaultKind};
pub use hook::{Connected, Credentials};
pub(crate) use token::OwnerToken;

/// Names a request in its answer. One number may serve one request on each node.
pub(crate) type AskId = u64;

/// The id of requests whose answer nobody waits for.
pub(crate) const NOBODY: AskId = 0;

/// The key and the owner token that a request is about, shared by the nodes of a round.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The number of the round whose token this is. It tells our requests apart as the token does,
    /// and is cheaper to look up.
    pub(crate) round: AskId,
    pub(crate) key: Arc<[u8]>,
    pub(crate) token: OwnerToken,
}

/// What a node can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Set the key where it is absent, and move its fencing counter on by a block of so many
    /// numbers. Where it is `announced`, those who listen are told.
    Grant {
        ttl_millis: u64,
        fence: Option<Fencing>,
        block: u64,
        announced: bool,
    },
    /// Raise the fencing counter to `to` where the key is ours. Never behind a release.
    Raise { to: u64, fence: Fencing },
    /// Give the key a later expiry where it is ours; with `restore`, set it where it is absent.
    Extend {
        ttl_millis: u64,
        restore: bool,
        fence: Option<Fencing>,
    },
    /// Delete the key where it is ours. Of no use after `until`: the key has run out by then.
    Release {
        until: Instant,
        fence: Option<Fencing>,
    },
}

impl Ask {
    /// Whether the answer is worth nothing from a node that has lost its data meanwhile: the
    /// marker is read behind it.
    pub(crate) fn rests_on_data(&self) -> bool {
        matches!(self, Ask::Grant { .. } | Ask::Extend { .. })
    }
}

/// What a node needs to know to write a fencing counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fencing {
    /// The counter should be at least this; zero where nothing is known of it.
    pub(crate) hint: u64,
    /// How long it is kept after its last grant.
    pub(crate) retention_millis: u64,
    /// Nothing further ahead of the node's clock than this is believed.
    pub(crate) max_ttl_millis: u64,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The key is set, and the fencing counter is now this.
    Granted { counter: Option<u64> },
    /// The fencing counter is at least what was asked for, or (`false`) the key is not ours, or
    /// the value is too far ahead of the node's clock.
    Raised(bool),
    /// Somebody else's token is there, which begins like this, for so long yet.
    Held {
        left: Option<Duration>,
        rival: Option<u32>,
    },
    /// The key is ours, with its new expiry.
    Renewed,
    /// The key was absent and is set again.
    Restored,
    /// The key is absent, and was left so.
    Absent,
    /// The key was ours and is gone, or was not ours; so many connections listen for it.
    Released { deleted: bool, listeners: u32 },
    /// No answer of use.
    Failed(Fault),
}

impl Reply {
    /// To the release of what was never sent.
    const WITHDRAWN: Reply = Reply::Released {
        deleted: false,
        listeners: 0,
    };

    /// Refused, and nothing is known of the one whose key it is.
    const HELD: Reply = Reply::Held {
        left: None,
        rival: None,
    };
}

/// What a node says of itself on a new connection (P10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Random for each process of a server; `None` where `INFO` is forbidden.
    pub(crate) run_id: Option<String>,
    /// In whole seconds; `None` where `INFO` is forbidden.
    pub(crate) uptime: Option<Duration>,
    /// When the set's marker was first written to this node, by its clock, in milliseconds.
    pub(crate) marker: u64,
    /// How long ago that was.
    pub(crate) marker_age: Duration,
}

/// What a node tells of a key to all who listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// It was let go.
    Freed,
    /// So many connections listen.
    Crowd { listeners: u32 },
    /// It was set by the owner whose token begins like this, for so long.
    Taken { rival: u32, left: Duration },
}

/// What comes from a node.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The answer to one request, and the node's own time where it came along (P5).
    Answer {
        id: AskId,
        reply: Reply,
        time: Option<Duration>,
    },
    /// A new connection is ready, to a server that says this of itself. Comes before any answer
    /// over that connection.
    Met(Life),
    /// From now on, and for as long as this connection lasts, notes on the key arrive.
    Listening(Arc<[u8]>),
    /// A note on a key that is listened for.
    Note { key: Arc<[u8]>, note: Note },
    /// The marker is gone from the node's data under a live connection. Comes before the answers
    /// that were given without it.
    Wiped,
    /// The connection has ended, of a node that hung for so long, if it did. The next one is tried
    /// at once.
    Lost { why: Fault, hung: Option<Duration> },
    /// There is no connection, for this reason. Told once for each outage.
    Down(Fault),
}

/// One server, as the coordinator sees it.
pub(crate) trait Node: Send {
    /// How it is called in errors and logs: never with a secret.
    fn name(&self) -> &str;

    /// Hands a request over, without blocking.
    ///
    /// # Errors
    /// The node will not take it: it is down, hangs, or has no place. Nothing was sent, and
    /// nothing will be. A release is always taken.
    fn submit(
        &mut self,
        id: AskId,
        order: &Arc<Order>,
        ask: Ask,
        now: Instant,
    ) -> Result<(), Fault>;

    /// Listens for notes on `key` from now on, over this connection and all that follow. What is
    /// submitted afterwards reaches the server after this.
    fn listen(&mut self, key: &Arc<[u8]>);

    /// Ends [`Node::listen`].
    fn ignore(&mut self, key: &Arc<[u8]>);

    /// For how long the node has been one that hangs: it gets no new requests.
    fn hangs(&self, now: Instant) -> Option<Duration>;

    /// All requests of this turn are in: what waits may be sent, in one piece.
    fn flush(&mut self);

    /// When [`Node::turn`] must be called at the latest: for nodes without a task of their own.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Does what is due at `now`.
    fn turn(&mut self, _now: Instant) {}
}

/// The answer to a request that was taken back before it was sent.
fn unsent() -> Fault {
    Fault::new(FaultKind::Timeout, "taken back before it was sent")
}

/// Where the events of all nodes arrive, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox {
    events: Arc<Mutex<VecDeque<(usize, Event)>>>,
    arrived: Arc<Notify>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(usize, Event)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, node: usize, event: Event) {
        self.lock().push_back((node, event));
        self.arrived.notify_one();
    }

    /// All of it at once, with one word to the engine.
    pub(crate) fn push_all(&self, node: usize, events: Vec<Event>) {
        if !events.is_empty() {
            let events = events.into_iter().map(|event| (node, event));
            self.lock().extend(events);
            self.arrived.notify_one();
        }
    }

    pub(crate) fn pop(&self) -> Option<(usize, Event)> {
        self.lock().pop_front()
    }

    /// What wakes the engine, for a node whose events come from another thread.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.arrived)
    }

    /// How many events are to be taken out.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is nothing to be taken out.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Ends when something has arrived since the last time it ended.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}
