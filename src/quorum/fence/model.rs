//! An exhaustive search over the token rule (P9): every order in which grants, raises, hints and
//! their answers can be carried out, with keys that vanish and data that is lost at any time.
//!
//! The client in it is the [`Fence`] that the library uses, and its nodes count by the same
//! arithmetic as the in-memory ones. What is not in it needs no place: a message that is lost is
//! one that is never carried out, and a client that gives up is one that does nothing more. A
//! release is no more than a key that vanishes, with or without a hint. A key vanishes when that
//! makes a difference: just before somebody else takes it, or before a raise looks for it.
//!
//! The four rules that look right and are not, and the clock that is asked only where the counter
//! is missing, are kept as variants; the search must find what is wrong with them.

use super::*;
use crate::node::counter::Now;
use crate::quorum::search;

mod cases;

const NODES: usize = 3;

/// How the client comes to its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The library's.
    Right,
    /// T is the quorum-th largest reply: a quorum stores it, without any raise.
    QuorumthLargest,
    /// T is the largest reply of a quorum; nothing is raised.
    NoRaise,
    /// T is raised on any majority, whether or not it granted.
    AnyMajority,
    /// The granting nodes are raised, whether or not the key is still ours.
    Unconditional,
}

/// When a node looks at its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Floor {
    EachGrant,
    /// Only where there is no counter.
    OnlyIfMissing,
}

/// What a restarted node has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Everything,
    /// The key, and what was counted since the start.
    LastWrites,
}

/// What is searched.
#[derive(Clone, Debug)]
struct Scenario {
    rule: Rule,
    floor: Floor,
    /// Rounds, each by a client of its own.
    actors: usize,
    /// The counters at the start; zero is none.
    counters: [u64; NODES],
    /// How many numbers a grant reserves.
    block: u64,
    /// Clients that are done spread the largest counter they saw.
    hints: bool,
    /// Raises may fail without an answer, and be carried out all the same.
    failures: bool,
    /// How many counters may jump ahead: a clock that ticks.
    jumps: u8,
    /// How many nodes may lose their data, each once, and what.
    losses: u8,
    loss: Loss,
    time: Time,
    /// States after which the search stops; what it has not found by then it says nothing about.
    cap: usize,
}

/// Time in ticks of a second. Without a horizon there is none: everything may take any time.
#[derive(Clone, Copy, Debug)]
struct Time {
    horizon: u8,
    /// By how much each node's clock is ahead.
    skew: [u8; NODES],
    /// By how much the clock of a node that lost its data is behind after that.
    back: u8,
    /// A restarted node has no vote for so long.
    restart_delay: u8,
    /// A round decides within this time of its start.
    budget: u8,
    max_ttl: u8,
}

/// What the counter moves by in a second: more than the model's grants can in all.
const SECOND: u64 = 8;

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    now: u8,
    jumps: u8,
    losses: u8,
    nodes: [Server; NODES],
    actors: SmallVec<[Actor; 3]>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Server {
    counter: Option<u64>,
    /// Whose the key is.
    key: Option<u8>,
    /// Who was granted it, in order.
    owners: [Option<u8>; 3],
    lost_at: Option<u8>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Actor {
    /// `None` before it has begun.
    started: Option<u8>,
    fence: Fence,
    grants: [Grant; NODES],
    raises: Vec<Raise>,
    /// Hints on their way.
    hints: [u64; NODES],
    done: bool,
    /// The token, and the nodes that it rests on.
    token: Option<(u64, NodeSet)>,
    /// For [`Rule::AnyMajority`]: what is raised, and where it has been.
    target: u64,
    acknowledged: NodeSet,
    /// The largest counter it has seen: its hint.
    largest: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Grant {
    Sent,
    /// Carried out; the answer is on its way. `after` a loss of the node's data.
    Answered {
        counter: u64,
        after: bool,
    },
    /// The answer has come, or is of no use to anybody.
    Over {
        after: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Raise {
    node: u8,
    to: u64,
    answer: Option<bool>,
    /// Nobody listens: it has failed, as far as the client knows.
    unheard: bool,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin(u8),
    Grant(u8, u8),
    /// The key of another was gone by then.
    TakeOver(u8, u8),
    Answer(u8, u8),
    Raise(u8, u8),
    /// Our key was gone by then.
    RaiseTooLate(u8, u8),
    Raised(u8, u8),
    RaiseFails(u8, u8),
    /// The client is done, and sends its hints.
    Done(u8),
    Hint(u8, u8),
    Jump(u8),
    /// The clocks move on; before that, these nodes lose their data.
    Tick {
        losing: u8,
    },
}

impl search::World for World {
    type Scenario = Scenario;
    type Step = Step;

    fn first(scenario: &Scenario) -> Self {
        let timed = scenario.time.horizon > 0;
        let actor = Actor {
            started: (!timed).then_some(0),
            fence: Fence::new(Quorum::of(NODES), u64::MAX),
            grants: [Grant::Sent; NODES],
            raises: Vec::new(),
            hints: [0; NODES],
            done: false,
            token: None,
            target: 0,
            acknowledged: NodeSet::EMPTY,
            largest: 0,
        };
        let server = |counter: u64| Server {
            counter: (counter > 0).then_some(counter),
            ..Server::default()
        };
        World {
            now: 0,
            jumps: 0,
            losses: 0,
            nodes: scenario.counters.map(server),
            actors: SmallVec::from_elem(actor, scenario.actors),
        }
    }

    /// Everything that can happen next, as long as there may be another token.
    fn steps(&self, scenario: &Scenario) -> Vec<Step> {
        let mut steps = Vec::new();
        let yet = |actor: &&Actor| actor.may_have_a_token_yet();
        let with = self.actors.iter().filter(|actor| actor.token.is_some());
        let without = self.actors.iter().filter(yet).count();
        if without == 0 || with.count() + without < 2 {
            return steps;
        }
        for (a, actor) in self.actors.iter().enumerate() {
            // With a clock, one begins after the other is through: what rounds do to each other
            // while they overlap is searched without one.
            let before = a.checked_sub(1).map(|before| self.actors[before].started);
            let timed = scenario.time.horizon > 0;
            if !timed || before.is_none_or(|at| at.is_some_and(|at| self.now > at)) {
                actor.steps(a as u8, &self.nodes, scenario, &mut steps);
            }
        }
        for (n, node) in self.nodes.iter().enumerate() {
            let n = n as u8;
            if self.jumps < scenario.jumps && node.counter.is_some() {
                steps.push(Step::Jump(n));
            }
        }
        if self.now < scenario.time.horizon {
            let lossless = |n: usize| self.nodes[n].lost_at.is_none();
            let most = u32::from(scenario.losses - self.losses);
            steps.extend((0..1 << NODES).filter_map(|losing: u8| {
                let possible = (0..NODES).all(|n| losing >> n & 1 == 0 || lossless(n));
                (possible && losing.count_ones() <= most).then_some(Step::Tick { losing })
            }));
        }
        steps
    }

    /// What is wrong is wrong with a token that was granted by the step.
    fn after(&self, step: Step, scenario: &Scenario) -> Result<World, String> {
        let mut world = self.clone();
        match step {
            Step::Begin(a) => world.actors[usize::from(a)].started = Some(world.now),
            Step::Grant(a, n) => world.grant(a, n.into(), scenario),
            Step::TakeOver(a, n) => {
                world.nodes[usize::from(n)].key = None;
                world.grant(a, n.into(), scenario);
            }
            Step::Raise(a, index) => world.raise(a, index.into(), scenario),
            Step::RaiseTooLate(a, index) => {
                let node = world.actors[usize::from(a)].raises[usize::from(index)].node;
                world.nodes[usize::from(node)].key = None;
                world.raise(a, index.into(), scenario);
            }
            Step::Hint(a, n) => world.hint(a, n.into(), scenario),
            Step::Done(a) => {
                let actor = &mut world.actors[usize::from(a)];
                actor.done = true;
                actor.hints = [actor.largest; NODES];
                actor.stop_listening();
                actor.largest = 0;
            }
            Step::Jump(n) => {
                world.jumps += 1;
                let node = &mut world.nodes[usize::from(n)];
                node.counter = node.counter.map(|counter| counter + 2);
            }
            Step::Tick { losing } => world.tick(losing, scenario),
            Step::Answer(a, n) => return world.answer(a, n.into(), scenario),
            Step::Raised(a, index) => return world.raised(a, index.into(), scenario),
            Step::RaiseFails(a, index) => {
                let actor = &mut world.actors[usize::from(a)];
                let raise = &mut actor.raises[usize::from(index)];
                raise.unheard = true;
                actor.fence.unraised(raise.node.into());
                actor.tidy();
                return world.decide(a, scenario);
            }
        }
        Ok(world)
    }
}

impl World {
    fn clock(&self, n: usize, scenario: &Scenario) -> Now {
        let time = &scenario.time;
        if time.horizon == 0 {
            let (floor, limit) = (0, u64::MAX);
            return Now { floor, limit };
        }
        let back = self.nodes[n].lost_at.map_or(0, |_| time.back);
        let ticks = u64::from((self.now + time.skew[n]).saturating_sub(back));
        let floor = ticks * SECOND;
        let limit = floor + u64::from(time.max_ttl) * SECOND;
        Now { floor, limit }
    }

    fn grant(&mut self, a: u8, n: usize, scenario: &Scenario) {
        let mut clock = self.clock(n, scenario);
        let node = &mut self.nodes[n];
        let after = node.lost_at.is_some();
        let actor = &mut self.actors[usize::from(a)];
        actor.grants[n] = Grant::Over { after };
        if node.key.is_some() {
            return;
        }
        if scenario.floor == Floor::OnlyIfMissing && node.counter.is_some() {
            clock.floor = 0;
        }
        let counter = clock.granted(node.counter, 0, scenario.block).unwrap();
        node.counter = Some(counter);
        node.key = Some(a);
        let slot = node.owners.iter().position(Option::is_none).unwrap();
        node.owners[slot] = Some(a);
        if actor.listens() {
            actor.grants[n] = Grant::Answered { counter, after };
        }
    }

    fn raise(&mut self, a: u8, index: usize, scenario: &Scenario) {
        let raise = self.actors[usize::from(a)].raises[index];
        let clock = self.clock(raise.node.into(), scenario);
        let actor = &mut self.actors[usize::from(a)];
        let node = &mut self.nodes[usize::from(raise.node)];
        let checked = !matches!(scenario.rule, Rule::Unconditional | Rule::AnyMajority);
        let ours = node.key == Some(a) || !checked;
        let raised = clock.raised(node.counter, raise.to).filter(|_| ours);
        node.counter = raised.or(node.counter);
        actor.raises[index].answer = Some(raised.is_some());
        actor.tidy();
    }

    fn hint(&mut self, a: u8, n: usize, scenario: &Scenario) {
        let clock = self.clock(n, scenario);
        let hint = std::mem::take(&mut self.actors[usize::from(a)].hints[n]);
        let node = &mut self.nodes[n];
        node.counter = clock.raised(node.counter, hint).or(node.counter);
    }

    fn tick(&mut self, losing: u8, scenario: &Scenario) {
        for n in (0..NODES).filter(|n| losing >> n & 1 == 1) {
            let saved = Some(scenario.counters[n]).filter(|&counter| counter > 0);
            let node = &mut self.nodes[n];
            node.key = None;
            node.lost_at = Some(self.now);
            node.counter = saved.filter(|_| scenario.loss == Loss::LastWrites);
            self.losses += 1;
        }
        self.now += 1;
        for actor in &mut self.actors {
            // What was not carried out by now is lost: it would only take a key or count on.
            if actor
                .started
                .is_some_and(|at| self.now - at > scenario.time.budget)
            {
                actor.done = true;
                actor.raises.clear();
                actor.stop_listening();
                actor.grants = [Grant::Over { after: false }; NODES];
                actor.started = Some(0);
            }
        }
    }

    fn answer(mut self, a: u8, n: usize, scenario: &Scenario) -> Result<World, String> {
        let actor = &mut self.actors[usize::from(a)];
        if let Grant::Answered { counter, after } = actor.grants[n] {
            actor.grants[n] = Grant::Over { after };
            actor.fence.granted(n, counter);
            if scenario.hints {
                actor.largest = actor.largest.max(counter);
            }
        }
        self.decide(a, scenario)
    }

    fn raised(mut self, a: u8, index: usize, scenario: &Scenario) -> Result<World, String> {
        let actor = &mut self.actors[usize::from(a)];
        let raise = actor.raises.remove(index);
        if let Some(done) = raise.answer {
            if scenario.rule != Rule::AnyMajority {
                actor.fence.raised(raise.node.into(), raise.to, done);
            } else if done {
                actor.acknowledged.insert(raise.node.into());
            }
        }
        self.decide(a, scenario)
    }

    /// The client looks at what it has.
    fn decide(mut self, a: u8, scenario: &Scenario) -> Result<World, String> {
        let now = self.now;
        let mut counted = NodeSet::EMPTY;
        for (n, node) in self.nodes.iter().enumerate() {
            let after = matches!(
                self.actors[usize::from(a)].grants[n],
                Grant::Over { after: true }
            );
            let young = |lost: u8| now - lost < scenario.time.restart_delay;
            if !(after && node.lost_at.is_some_and(young)) {
                counted.insert(n);
            }
        }
        let actor = &mut self.actors[usize::from(a)];
        match actor.agreement(scenario.rule, counted) {
            Agreement::Token(token) => {
                let token = u64::from(token);
                let quorum = actor.quorum(scenario.rule, token, counted);
                actor.token = Some((token, quorum));
                actor.stop_listening();
                self.check(a, scenario.block)?;
            }
            Agreement::Raise { to, nodes } => {
                for node in nodes.iter() {
                    let (node, answer, unheard) = (node as u8, None, false);
                    actor.raises.push(Raise {
                        node,
                        to,
                        answer,
                        unheard,
                    });
                }
                actor.raises.sort_unstable();
            }
            Agreement::Open | Agreement::Impossible => {}
        }
        let actor = &mut self.actors[usize::from(a)];
        if actor.listens() && !actor.may_have_a_token_yet() {
            actor.stop_listening();
            actor.done = !scenario.hints;
        }
        Ok(self)
    }

    /// The token that `a` has now, against all others.
    fn check(&self, a: u8, block: u64) -> Result<(), String> {
        let Some((token, quorum)) = self.actors[usize::from(a)].token else {
            return Ok(());
        };
        for (b, other) in self.actors.iter().enumerate() {
            let Some((earlier, others)) = other.token.filter(|_| b != usize::from(a)) else {
                continue;
            };
            if token.abs_diff(earlier) < block {
                return Err(format!("{a} and {b} both have {token}"));
            }
            for n in quorum.and(others).iter() {
                let taken = |who: u8| self.nodes[n].owners.iter().position(|o| *o == Some(who));
                if (taken(a) < taken(b as u8)) != (token < earlier) {
                    return Err(format!(
                        "{a} has {token} and {b} has {earlier}, but not in the order in which \
                         they took node {n}"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Actor {
    fn listens(&self) -> bool {
        self.token.is_none() && !self.done
    }

    fn may_have_a_token_yet(&self) -> bool {
        let granted = self.fence.granting();
        let open = |n: &usize| !matches!(self.grants[*n], Grant::Over { .. });
        let possible = (0..NODES)
            .filter(|n| open(n) || granted.contains(*n))
            .count();
        self.listens() && possible >= Quorum::of(NODES).needed()
    }

    /// Answers that nobody hears make no difference any more.
    fn stop_listening(&mut self) {
        for grant in &mut self.grants {
            if let Grant::Answered { after, .. } = *grant {
                *grant = Grant::Over { after };
            }
        }
        self.raises
            .iter_mut()
            .for_each(|raise| raise.unheard = true);
        self.tidy();
        self.fence = Fence::new(Quorum::of(NODES), u64::MAX);
        (self.target, self.acknowledged) = (0, NodeSet::EMPTY);
    }

    fn tidy(&mut self) {
        self.raises
            .retain(|raise| !(raise.unheard && raise.answer.is_some()));
        self.raises.sort_unstable();
    }

    fn steps(&self, a: u8, nodes: &[Server], scenario: &Scenario, steps: &mut Vec<Step>) {
        if self.started.is_none() {
            steps.push(Step::Begin(a));
            return;
        }
        for n in 0..NODES as u8 {
            match self.grants[usize::from(n)] {
                Grant::Sent => {
                    steps.push(Step::Grant(a, n));
                    if nodes[usize::from(n)].key.is_some() {
                        steps.push(Step::TakeOver(a, n));
                    }
                }
                Grant::Answered { .. } => steps.push(Step::Answer(a, n)),
                Grant::Over { .. } => {}
            }
            if self.hints[usize::from(n)] > 0 {
                steps.push(Step::Hint(a, n));
            }
        }
        for (index, raise) in self.raises.iter().enumerate() {
            let index = index as u8;
            match raise.answer {
                None => {
                    steps.push(Step::Raise(a, index));
                    if nodes[usize::from(raise.node)].key == Some(a) {
                        steps.push(Step::RaiseTooLate(a, index));
                    }
                }
                Some(_) => steps.push(Step::Raised(a, index)),
            }
            if scenario.failures && !raise.unheard {
                steps.push(Step::RaiseFails(a, index));
            }
        }
        if scenario.hints && !self.done && self.largest > 0 {
            steps.push(Step::Done(a));
        }
    }

    fn agreement(&mut self, rule: Rule, counted: NodeSet) -> Agreement {
        let awaited = Quorum::of(NODES).all();
        if matches!(rule, Rule::Right | Rule::Unconditional) {
            return self.fence.decide(counted, awaited);
        }
        let granting = self.fence.granting().and(counted);
        let mut replies: Vec<u64> = granting
            .iter()
            .filter_map(|n| self.fence.known[n].map(|known| known.reply))
            .collect();
        replies.sort_unstable_by(|a, b| b.cmp(a));
        let needed = Quorum::of(NODES).needed();
        if replies.len() < needed {
            return Agreement::Open;
        }
        let largest = FencingToken::from_u64(replies[0]);
        match rule {
            Rule::QuorumthLargest => Agreement::Token(FencingToken::from_u64(replies[needed - 1])),
            Rule::NoRaise => Agreement::Token(largest),
            _ if self.target == 0 => {
                self.target = replies[0];
                let stores = |known: &Known| known.reply == replies[0];
                self.acknowledged = self.fence.select(granting, stores);
                let nodes = awaited.minus(self.acknowledged);
                match self.acknowledged.len() >= needed {
                    true => Agreement::Token(largest),
                    false => Agreement::Raise {
                        to: self.target,
                        nodes,
                    },
                }
            }
            _ if self.acknowledged.len() >= needed => {
                Agreement::Token(FencingToken::from_u64(self.target))
            }
            _ => Agreement::Open,
        }
    }

    /// The nodes that the token rests on.
    fn quorum(&self, rule: Rule, token: u64, counted: NodeSet) -> NodeSet {
        let granting = self.fence.granting().and(counted);
        match rule {
            Rule::Right | Rule::Unconditional => self.fence.storing(granting, token),
            Rule::QuorumthLargest => self.fence.select(granting, |known| known.reply >= token),
            Rule::NoRaise | Rule::AnyMajority => granting,
        }
    }
}
