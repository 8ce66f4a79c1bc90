//! Everything at one moment, and what can happen next.

use super::client::{Client, Phase};
use super::server::Server;
use super::*;
use crate::quorum::search::{self, Part};

#[derive(Clone, Hash)]
pub(super) struct World {
    pub(super) now: u8,
    pub(super) servers: [Server; NODES],
    pub(super) clients: SmallVec<[Part<Client>; 2]>,
    /// Requests of dead connections.
    pub(super) strays: SmallVec<[(usize, Owner, Ask); 2]>,
    losses: u8,
    breaks: u8,
    late: u8,
    /// The last holder's.
    pub(super) token: u64,
}

impl search::World for World {
    type Scenario = Scenario;
    type Step = Step;

    fn first(scenario: &Scenario) -> Self {
        let mut servers = [Server::new(); NODES];
        let mut clients: SmallVec<[Part<Client>; 2]> = SmallVec::new();
        for number in 0..scenario.clients {
            let mut client = Client::new(number, scenario);
            if number == 0 || !scenario.cold {
                for (node, server) in servers.iter_mut().enumerate() {
                    let now = scenario.begins;
                    client.meet(scenario, node, server.reading(node, now), now);
                }
            }
            clients.push(Part::new(client));
        }
        let mut world = World {
            now: scenario.begins,
            servers,
            clients,
            strays: SmallVec::new(),
            losses: 0,
            breaks: 0,
            late: 0,
            token: 0,
        };
        for &step in scenario.prefix {
            world = world.after(step, scenario).unwrap();
        }
        world
    }

    fn steps(&self, scenario: &Scenario) -> Vec<Step> {
        let mut steps = Vec::new();
        if !scenario.to_the_end && !self.is_open(scenario) {
            return steps;
        }
        for (c, client) in self.clients.iter().enumerate() {
            // The first one begins: the others are no different, but that they know less.
            let turn = c == 0 || self.clients[c - 1].rounds > 0;
            if turn && client.may_begin(scenario) {
                steps.push(Step::Begin(c));
            }
            self.steps_of(c, client, scenario, &mut steps);
        }
        steps.extend((0..self.strays.len()).map(Step::Stray));
        let used = self.clients[0].rounds > 0;
        for (n, server) in self.servers.iter().enumerate() {
            let whole = server.run == 0 && !server.lost;
            if used && whole && self.losses < scenario.losses && self.is_in_turn(n) {
                steps.push(Step::Restart(n));
            }
            if scenario.deletes && !server.deleted && self.holds(0) {
                steps.push(Step::Delete(n));
            }
            if used && scenario.drift > 0 && !server.drifted && server.key.is_some() {
                steps.push(Step::Gain(n));
            }
        }
        if self.now < scenario.horizon && used {
            steps.push(Step::Tick { but: None });
            let late = |n: &usize| scenario.drift > 0 && !self.servers[*n].drifted;
            let late = (0..NODES).filter(late);
            steps.extend(late.map(|n| Step::Tick { but: Some(n) }));
        }
        steps
    }

    fn after(&self, step: Step, scenario: &Scenario) -> Result<World, String> {
        let mut world = self.clone();
        world.act(step, scenario)?;
        for (c, before) in self.clients.iter().enumerate() {
            let held = |client: &Client| match &client.phase {
                Phase::Holding(hold) => Some(hold.token),
                _ => None,
            };
            if let (None, Some(token)) = (held(before), held(&world.clients[c]))
                && scenario.fencing
            {
                world.token_grows(token, c)?;
            }
            let valid = |world: &World| match &world.clients[c].phase {
                Phase::Holding(hold) => Some(hold.is_held(world.now)),
                _ => None,
            };
            if (valid(self), valid(&world)) == (Some(false), Some(true)) {
                return Err(format!("c{c}: an ended lease came back"));
            }
        }
        world.check(scenario)?;
        Ok(world)
    }
}

impl World {
    fn holds(&self, c: usize) -> bool {
        matches!(self.clients[c].phase, Phase::Holding(_))
    }

    /// Whether anything can still go wrong: somebody may come to hold the lock, or hold it for
    /// longer, and there is somebody else or an earlier token.
    fn is_open(&self, scenario: &Scenario) -> bool {
        let may_hold = |client: &Part<Client>| match &client.phase {
            Phase::Idle => client.may_begin(scenario),
            Phase::Asking(_) => true,
            Phase::Holding(hold) => hold.may_grow(scenario),
        };
        let may = self
            .clients
            .iter()
            .filter(|client| may_hold(client))
            .count();
        let does = |client: &&Part<Client>| matches!(&client.phase, Phase::Holding(hold) if hold.is_held(self.now));
        let does = self
            .clients
            .iter()
            .filter(|client| does(client) && !may_hold(client))
            .count();
        let others = scenario.clients == 1 || may + does > 1 || self.token > 0;
        may > 0 && others
    }

    /// Nodes are alike at first, and named in the order in which the first grant leaves for them:
    /// worlds that differ by names alone are one.
    fn is_in_turn(&self, n: usize) -> bool {
        let first = (2, Ask::Grant);
        let waits = |n: usize| {
            let mut queue = self.clients[0].links[n].queue.iter();
            queue.any(|(owner, ask)| (*owner, *ask) == first)
        };
        !waits(n) || (0..n).all(|before| !waits(before))
    }

    fn steps_of(&self, c: usize, client: &Client, scenario: &Scenario, steps: &mut Vec<Step>) {
        for (n, link) in client.links.iter().enumerate() {
            if !link.met {
                // A server nobody asks for anything is not met, but for one that has a key of ours.
                if !link.queue.is_empty() || self.holds(c) {
                    steps.push(Step::Meet(c, n));
                }
                continue;
            }
            if c == 0 && !self.is_in_turn(n) {
                continue;
            }
            if let Some((_, ask)) = link.queue.first() {
                steps.push(Step::Serve(c, n));
                let answered = *ask != Ask::Release && !matches!(client.phase, Phase::Idle);
                if answered && self.late < scenario.late && link.answers.is_empty() {
                    steps.push(Step::ServeLate(c, n));
                }
            }
            if !link.answers.is_empty() {
                steps.push(Step::Hear(c, n));
            }
            let busy = !link.queue.is_empty() || !link.answers.is_empty();
            if busy && self.breaks < scenario.breaks {
                steps.push(Step::Break(c, n));
            }
        }
        match &client.phase {
            Phase::Asking(asking) if at(self.now) >= asking.round.expires() => {
                steps.push(Step::GiveUp(c));
            }
            Phase::Holding(hold) if hold.is_over(self.now) => steps.push(Step::Lose(c)),
            Phase::Holding(_) if scenario.releases => steps.push(Step::Release(c)),
            _ => {}
        }
        if client.may_extend(scenario, self.now) {
            steps.push(Step::Extend(c));
        }
    }

    fn act(&mut self, step: Step, scenario: &Scenario) -> Result<(), String> {
        let now = self.now;
        match step {
            Step::Begin(c) => self.clients[c].change(|client| client.begin(scenario, now)),
            Step::Meet(c, n) => {
                let reading = self.servers[n].reading(n, now);
                self.clients[c].change(|client| client.meet(scenario, n, reading, now));
            }
            Step::Serve(c, n) => self.serve(scenario, (c, n), false)?,
            Step::ServeLate(c, n) => {
                self.late += 1;
                self.serve(scenario, (c, n), true)?;
            }
            Step::Hear(c, n) => self.clients[c].change(|client| client.hear(scenario, n, now))?,
            Step::GiveUp(c) => self.clients[c].change(|client| client.judge(scenario, now)),
            Step::Extend(c) => {
                let owner = self.clients[c].owner();
                let gone = |server: &Server| server.deleted && !server.holds(owner);
                let hopeless = self.servers.iter().all(gone);
                self.clients[c].change(|client| client.extend(scenario, now, hopeless));
            }
            Step::Release(c) | Step::Lose(c) => self.clients[c].change(Client::release),
            Step::Break(c, n) => self.cut(scenario, c, n),
            Step::Stray(index) => {
                let (n, owner, ask) = self.strays.remove(index);
                self.servers[n].serve(scenario, owner, ask, now);
            }
            Step::Restart(n) => self.lose(scenario, n),
            Step::Delete(n) => {
                self.servers[n].deleted = true;
                self.servers[n].key = None;
            }
            Step::Gain(n) => {
                self.servers[n].drift(1);
                self.servers[n].expire(now);
            }
            Step::Tick { but } => {
                if let Some(n) = but {
                    self.servers[n].drift(-1);
                }
                self.now += 1;
                let now = self.now;
                self.servers
                    .iter_mut()
                    .for_each(|server| server.expire(now));
            }
        }
        Ok(())
    }

    /// Carries out the oldest request of a link. The answer arrives at once, unless it is late or
    /// others are on their way before it.
    fn serve(
        &mut self,
        scenario: &Scenario,
        (c, n): (usize, usize),
        late: bool,
    ) -> Result<(), String> {
        let (now, server) = (self.now, &mut self.servers[n]);
        self.clients[c].change(|client| {
            let (owner, ask) = client.links[n].queue.remove(0);
            let reply = server.serve(scenario, owner, ask, now);
            let listens = owner == client.owner() && !matches!(client.phase, Phase::Idle);
            let Some(reply) = reply.filter(|_| listens) else {
                return Ok(());
            };
            client.links[n].answers.push((owner, reply));
            match late || client.links[n].answers.len() > 1 {
                true => Ok(()),
                false => client.hear(scenario, n, now),
            }
        })
    }

    /// A connection breaks: its bytes are lost, or carried out some time.
    fn cut(&mut self, scenario: &Scenario, c: usize, n: usize) {
        self.breaks += 1;
        let now = self.now;
        if scenario.strays {
            let queue = self.clients[c].links[n].queue.clone();
            let bytes = queue.iter().map(|(owner, ask)| (n, *owner, *ask));
            self.strays.extend(bytes);
        }
        self.clients[c].change(|client| client.cut(scenario, n, now));
    }

    /// A server restarts, which ends all connections; or it only loses its data.
    fn lose(&mut self, scenario: &Scenario, n: usize) {
        self.losses += 1;
        let now = self.now;
        self.servers[n].lose(scenario.loss, now);
        if scenario.loss == Loss::Flushed {
            return;
        }
        self.strays.retain(|(node, ..)| *node != n);
        for c in 0..self.clients.len() {
            self.clients[c].change(|client| client.cut(scenario, n, now));
        }
    }
}
