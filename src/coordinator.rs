//! Runs rounds: the core's decisions become requests, the nodes' answers become votes.
//!
//! ```text
//!   acquire ─┐               ┌─► Node::submit × N
//!   extend  ─┼─► coordinator ┤
//!   release ─┘    ▲    │     └─► Outcome: Acquired · Failed · Extended · Released
//!                 │    ▼
//!        answers, now  quorum::{Round, Extension, Roster}
//! ```
//!
//! This is the one place where clock, core and nodes meet. It is told the time and never reads
//! it. Above it nothing knows of Redis: the keeper and the queue speak to a [`LeaseStore`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tracing::{Span, debug, warn};

use crate::clock::Instant;
use crate::error::Vote as SeenVote;
use crate::hash::FastMap;
use crate::node::{self, AskId, Event, Inbox, Node, OwnerToken, Reply};
use crate::quorum::{Fence, FencingToken, NodeSet, Pace, Quorum, Roster, Timing, Trip};
use crate::status::NodeStatus;

mod acquire;
mod fencing;
mod grant;
mod hold;
mod listen;
mod meet;
mod meters;
mod pending;
mod rules;
mod store;
mod timers;
mod votes;
mod watch;

use listen::Listeners;
use meters::Meters;
use pending::{Attempt, Extending, Held, Pending, Releasing};
pub(crate) use rules::{Counters, Rules};
pub(crate) use store::{AttemptId, LeaseId, LeaseStore, Outcome, Secret};
pub(crate) use timers::Timers;
use watch::Sight;

/// Where owner tokens come from: the operating system, or a simulation's seed.
pub(crate) type Tokens = Box<dyn FnMut() -> Option<OwnerToken> + Send>;

/// Redlock over N nodes.
pub(crate) struct Coordinator {
    quorum: Quorum,
    roster: Roster,
    pace: Pace,
    /// How fencing counters are kept; `None` where there are none.
    counters: Option<Counters>,
    nodes: Vec<Box<dyn Node>>,
    names: Vec<Arc<str>>,
    meters: Meters,
    inbox: Inbox,
    tokens: Tokens,
    asks: FastMap<AskId, Pending>,
    /// The round of each attempt, to find it by when it is abandoned.
    attempts: FastMap<AttemptId, AskId>,
    held: FastMap<LeaseId, Held>,
    next_id: AskId,
    timers: Timers<AskId>,
    outcomes: VecDeque<Outcome>,
    down: NodeSet,
    /// Releases on their way, each counted once for each node.
    unanswered: usize,
    /// The life of each node, for people to look at; made at the first turn.
    sights: Vec<Sight>,
    looked: Instant,
    patience: Duration,
    listeners: Listeners,
    trip: Trip,
}

impl Coordinator {
    pub(crate) fn new(
        nodes: Vec<Box<dyn Node>>,
        inbox: Inbox,
        rules: Rules,
        tokens: Tokens,
    ) -> Self {
        let quorum = Quorum::of(nodes.len());
        Coordinator {
            quorum,
            roster: Roster::new(quorum, rules.guard, rules.restart_delay),
            pace: Pace::new(quorum, rules.drift),
            counters: rules.counters,
            meters: Meters::new(quorum, &nodes),
            names: nodes.iter().map(|node| node.name().into()).collect(),
            nodes,
            inbox,
            tokens,
            asks: FastMap::default(),
            attempts: FastMap::default(),
            held: FastMap::default(),
            next_id: node::NOBODY,
            timers: Timers::default(),
            outcomes: VecDeque::new(),
            down: NodeSet::EMPTY,
            unanswered: 0,
            sights: Vec::new(),
            looked: Instant::from_nanos(0),
            patience: rules.patience,
            listeners: Listeners::default(),
            trip: Trip::default(),
        }
    }

    /// How many agree to a grant.
    pub(crate) fn quorum(&self) -> Quorum {
        self.quorum
    }

    fn new_id(&mut self) -> AskId {
        self.next_id += 1;
        self.next_id
    }

    fn event(&mut self, node: usize, event: Event, now: Instant) {
        self.meters.stale |= !matches!(event, Event::Answer { .. } | Event::Note { .. });
        match event {
            Event::Answer { id, reply, time } => {
                self.sights[node].answered(&reply, now);
                self.count(node, id, &reply, now);
                self.compare_clocks(node, id, time, now);
                self.answer(node, id, reply, now);
            }
            Event::Met(life) => self.met(node, life, now),
            Event::Listening(key) => self.confirmed(node, &key),
            Event::Note { key, note } => self.noted(node, &key, note),
            Event::Wiped => {
                warn!(node = %self.names[node], "the node has lost its data");
                self.roster.wiped(node, now);
                self.forget_keys(node);
            }
            Event::Down(fault) => {
                let name = &self.names[node];
                match self.sights[node].is_news(now) {
                    true => warn!(node = %name, %fault, "the node is down"),
                    false => debug!(node = %name, %fault, "the node is down again"),
                }
                self.down.insert(node);
                self.deafen(node);
                for held in self.held.values_mut() {
                    held.presence.heard(node);
                }
                self.sights[node].down(fault, now);
            }
            Event::Lost { why, hung } => {
                self.deafen(node);
                self.sights[node].lost(why, hung, now);
            }
        }
    }

    fn answer(&mut self, node: usize, id: AskId, reply: Reply, now: Instant) {
        match self.asks.get(&id) {
            Some(Pending::Round(_)) => self.voted(id, node, reply, now),
            Some(Pending::Granted { .. }) => self.granted_late(id, node, &reply, now),
            Some(Pending::Extension(_)) => self.renewed(id, node, &reply, now),
            Some(Pending::Release(_)) => self.released(id, node, &reply, now),
            Some(Pending::Raise(_)) => self.raised(id, node, &reply, now),
            // The round is over, and its rollback follows behind the request (P2).
            None => {}
        }
    }
}

impl LeaseStore for Coordinator {
    fn acquire(&mut self, now: Instant, attempt: AttemptId, key: &Arc<[u8]>, timing: &Timing) {
        let Some(owner) = (self.tokens)() else {
            self.without_owner(attempt);
            return;
        };
        let fence = self
            .counters
            .map(|counters| Fence::new(self.quorum, counters.reach()));
        let ask = node::Ask::Grant {
            ttl_millis: timing.ttl_millis(),
            fence: self.fencing(0),
            block: self.block(),
            announced: self.attempted(key),
        };
        let secret = Secret {
            owner,
            fence: FencingToken::NONE,
        };
        self.begin_round(now, attempt, key, secret, (ask, fence), timing);
    }

    fn adopt(
        &mut self,
        now: Instant,
        attempt: AttemptId,
        key: &Arc<[u8]>,
        secret: Secret,
        timing: &Timing,
    ) {
        let ask = node::Ask::Extend {
            ttl_millis: timing.ttl_millis(),
            restore: false,
            fence: None,
        };
        self.begin_round(now, attempt, key, secret, (ask, None), timing);
    }

    fn secret(&self, lease: LeaseId) -> Option<Secret> {
        self.held.get(&lease).map(Held::secret)
    }

    fn forget(&mut self, lease: LeaseId) -> Option<Secret> {
        let held = self.held.remove(&lease)?;
        self.let_go(&held.order.key, self.looked);
        Some(held.secret())
    }

    fn abandon(&mut self, now: Instant, attempt: AttemptId) {
        if let Some(id) = self.attempts.remove(&attempt) {
            self.roll_back(id, now);
        }
    }

    fn extend(
        &mut self,
        now: Instant,
        lease: LeaseId,
        timing: &Timing,
        present: Instant,
        span: Span,
    ) {
        self.begin_extension(now, lease, timing, present, span);
    }

    fn release(&mut self, now: Instant, lease: LeaseId, timing: &Timing) {
        self.begin_release(now, lease, timing);
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn has_news(&self) -> bool {
        !self.outcomes.is_empty() || !self.inbox.is_empty()
    }

    fn next_timeout(&self) -> Option<Instant> {
        let nodes = self.nodes.iter().filter_map(|node| node.due()).min();
        let own = [self.timers.next(), self.listeners.next_timeout()];
        let others = [nodes, self.meters.due];
        own.into_iter().chain(others).flatten().min()
    }

    fn turn(&mut self, now: Instant) {
        self.look(now);
        for node in &mut self.nodes {
            node.turn(now);
        }
        self.tidy_listeners(now);
        while let Some((node, event)) = self.inbox.pop() {
            self.event(node, event, now);
        }
        while let Some(id) = self.timers.due(now) {
            match self.asks.get(&id) {
                Some(Pending::Round(_)) => self.judge(id, now),
                Some(Pending::Extension(_)) => self.judge_extension(id, now),
                Some(Pending::Release(_)) => self.give_release_up(id),
                Some(Pending::Granted { .. } | Pending::Raise(_)) | None => {}
            }
        }
        self.count_states(now);
    }

    fn flush(&mut self) {
        let asks = &self.asks;
        self.timers.tidy(asks.len(), |_, id| asks.contains_key(id));
        for node in &mut self.nodes {
            node.flush();
        }
    }

    fn listen(&mut self, key: &Arc<[u8]>) {
        self.begin_listening(key);
    }

    fn idle(&mut self, now: Instant, key: &Arc<[u8]>) {
        self.end_listening(key, now);
    }

    fn rivals(&self, key: &[u8]) -> u32 {
        self.known_rivals(key)
    }

    fn trip(&self) -> Duration {
        self.trip.mean()
    }

    fn unreleased(&self) -> usize {
        self.unanswered
    }

    fn pending(&self) -> usize {
        self.asks.len()
    }

    fn nodes(&mut self, now: Instant) -> Vec<NodeStatus> {
        self.statuses(now)
    }
}
