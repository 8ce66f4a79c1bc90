//! One client: a round at a time, decided by the library.

use super::hold::Hold;
use super::*;

/// What lies between a client and a server.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Link {
    /// There is a connection, and the client knows to whom. Without one, requests wait.
    pub(super) met: bool,
    /// The marker that was read on it.
    pub(super) marker: u64,
    pub(super) queue: SmallVec<[(Owner, Ask); 3]>,
    pub(super) answers: SmallVec<[(Owner, Reply); 3]>,
}

#[derive(Clone, Hash)]
pub(super) enum Phase {
    Idle,
    Asking(Asking),
    Holding(Hold),
}

#[derive(Clone, Hash)]
pub(super) struct Asking {
    pub(super) round: Round,
    fence: Option<Fence>,
}

#[derive(Clone, Hash)]
pub(super) struct Client {
    pub(super) number: usize,
    pub(super) roster: Roster,
    pub(super) links: [Link; NODES],
    pub(super) phase: Phase,
    /// Rounds that have begun.
    pub(super) rounds: u8,
}

impl Client {
    pub(super) fn new(number: usize, scenario: &Scenario) -> Self {
        Client {
            number,
            roster: Roster::new(quorum(), scenario.guard(), scenario.restart_delay()),
            links: Default::default(),
            phase: Phase::Idle,
            rounds: 0,
        }
    }

    /// The present round's.
    pub(super) fn owner(&self) -> Owner {
        self.number as u8 + 2 * self.rounds
    }

    pub(super) fn send(&mut self, node: usize, ask: Ask) {
        let owner = self.owner();
        self.links[node].queue.push((owner, ask));
    }

    pub(super) fn may_begin(&self, scenario: &Scenario) -> bool {
        matches!(self.phase, Phase::Idle) && self.rounds < scenario.rounds
    }

    pub(super) fn begin(&mut self, scenario: &Scenario, now: u8) {
        self.rounds += 1;
        let mut round = Round::begin(at(now), quorum(), scenario.timing());
        for node in 0..NODES {
            round.hand(node);
            self.send(node, Ask::Grant);
        }
        let reach = u64::MAX;
        let fence = scenario.fencing.then(|| Fence::new(quorum(), reach));
        self.phase = Phase::Asking(Asking { round, fence });
    }

    /// A connection to `node`: whoever it is, it says so.
    pub(super) fn meet(&mut self, scenario: &Scenario, node: usize, reading: Reading, now: u8) {
        let before = self.roster.run_id(node).map(str::to_owned);
        let restarted = before.is_some() && before != reading.run_id;
        self.links[node].met = true;
        self.links[node].marker = reading.marker;
        self.roster.read(node, reading, at(now));
        if let Phase::Holding(hold) = &mut self.phase
            && restarted
        {
            hold.forget(node);
        }
        self.judge(scenario, now);
    }

    /// The connection to `node` has ended: what was sent has failed, releases are owed.
    pub(super) fn cut(&mut self, scenario: &Scenario, node: usize, now: u8) {
        let link = &mut self.links[node];
        if !link.met {
            return;
        }
        link.met = false;
        let sent = link.queue.iter().map(|(_, ask)| *ask);
        let answers = link.answers.drain(..).map(|(_, reply)| match reply {
            Reply::Granted { .. } | Reply::Refused { .. } => Ask::Grant,
            Reply::Raised { to, .. } => Ask::Raise { to },
            Reply::Extended { number, .. } => Ask::Extend {
                number,
                restore: false,
            },
        });
        let failed: SmallVec<[Ask; 4]> = answers.chain(sent).collect();
        link.queue.retain(|(_, ask)| *ask == Ask::Release);
        for ask in failed {
            match (&mut self.phase, ask) {
                (Phase::Asking(asking), Ask::Grant) => asking.round.vote(node, Vote::Failed),
                (Phase::Asking(asking), Ask::Raise { .. }) => {
                    if let Some(fence) = &mut asking.fence {
                        fence.unraised(node);
                    }
                }
                (Phase::Holding(hold), Ask::Extend { number, .. }) => {
                    hold.failed(node, number);
                }
                _ => {}
            }
        }
        self.judge(scenario, now);
    }

    /// The oldest answer of `node`.
    ///
    /// # Errors
    /// The invariant that it breaks.
    pub(super) fn hear(&mut self, scenario: &Scenario, node: usize, now: u8) -> Result<(), String> {
        let (owner, reply) = self.links[node].answers.remove(0);
        if let Reply::Granted { marker, .. }
        | Reply::Refused { marker }
        | Reply::Extended {
            marker: Some(marker),
            ..
        } = reply
            && marker != self.links[node].marker
        {
            // Under the same connection: it has lost its data since.
            self.roster.wiped(node, at(now));
            if let Phase::Holding(hold) = &mut self.phase {
                hold.forget(node);
            }
        }
        if owner != self.owner() {
            return Ok(());
        }
        let votes = self.roster.counted(at(now)).contains(node);
        match (&mut self.phase, reply) {
            (Phase::Asking(asking), Reply::Granted { counter, .. }) => {
                asking.round.vote(node, Vote::Granted);
                if let Some(fence) = &mut asking.fence {
                    fence.granted(node, counter);
                }
            }
            (Phase::Asking(asking), Reply::Refused { .. }) => {
                asking.round.vote(node, Vote::Refused);
            }
            (Phase::Asking(asking), Reply::Raised { to, done }) => {
                if let Some(fence) = &mut asking.fence {
                    fence.raised(node, to, done);
                }
                if !done {
                    asking.round.revoke(node);
                }
            }
            (Phase::Holding(hold), Reply::Granted { .. }) => {
                hold.presence.found(node);
                let until = hold.first;
                hold.presence.stands(node, until, votes, at(now));
            }
            (Phase::Holding(hold), Reply::Extended { number, what, .. }) => {
                let over = hold.hear(scenario, node, (number, what), votes, now)?;
                if over {
                    self.release();
                }
            }
            _ => {}
        }
        self.judge(scenario, now);
        Ok(())
    }

    /// What the round amounts to by now.
    pub(super) fn judge(&mut self, scenario: &Scenario, now: u8) {
        loop {
            let counted = self.roster.counted(at(now));
            let Phase::Asking(asking) = &mut self.phase else {
                return;
            };
            match asking.verdict(scenario, now, counted) {
                Verdict::Open => return,
                Verdict::Failed(_) => return self.roll_back(scenario),
                Verdict::Granted { deadline } => {
                    let Some(raise) = self.agree(deadline, counted, now) else {
                        return;
                    };
                    let Agreement::Raise { to, nodes } = raise else {
                        return self.roll_back(scenario);
                    };
                    nodes
                        .iter()
                        .for_each(|node| self.send(node, Ask::Raise { to }));
                }
            }
        }
    }

    /// A quorum has granted: is there a token? What is to be done, if anything.
    fn agree(&mut self, deadline: Instant, counted: NodeSet, now: u8) -> Option<Agreement> {
        let Phase::Asking(asking) = &mut self.phase else {
            return None;
        };
        let round = &asking.round;
        let silent = quorum().all().minus(round.answered());
        let awaited = silent.or(round.granted().minus(counted));
        let token = match &mut asking.fence {
            None => 0,
            Some(fence) => match fence.decide(counted, awaited) {
                Agreement::Token(token) => token.into(),
                Agreement::Open if at(now) < round.expires() => return None,
                other => return Some(other),
            },
        };
        self.phase = Phase::Holding(Hold::granted(round, (deadline, counted), token));
        None
    }

    fn roll_back(&mut self, scenario: &Scenario) {
        let Phase::Asking(asking) = &self.phase else {
            return;
        };
        let owed = match scenario.rule {
            Rule::RollbackWhereGranted => asking.round.granted(),
            _ => asking.round.owed(),
        };
        self.let_go(owed);
    }

    /// Lets go of what it holds.
    pub(super) fn release(&mut self) {
        if let Phase::Holding(hold) = &self.phase {
            let touched = hold.touched;
            self.let_go(touched);
        }
    }

    /// Nobody listens any more; requests that were not sent never are.
    fn let_go(&mut self, nodes: NodeSet) {
        for node in 0..NODES {
            let link = &mut self.links[node];
            link.answers.clear();
            if !link.met {
                link.queue.retain(|(_, ask)| *ask == Ask::Release);
            }
        }
        nodes.iter().for_each(|node| self.send(node, Ask::Release));
        self.phase = Phase::Idle;
    }
}

impl Asking {
    fn verdict(&self, scenario: &Scenario, now: u8, counted: NodeSet) -> Verdict {
        let (round, timing) = (&self.round, scenario.timing());
        let verdict = round.verdict(at(now), counted);
        match (scenario.rule, verdict) {
            (Rule::ValidityFromDecision, Verdict::Granted { .. }) => Verdict::Granted {
                deadline: timing.deadline(at(now)),
            },
            (Rule::QuorumOfReachable, Verdict::Failed(_)) => {
                let reachable = round.granted().or(round.refused());
                let enough = !reachable.is_empty()
                    && Quorum::of(reachable.len()).reached_by(round.granted());
                match timing.validity(round.started(), at(now)) {
                    Some(_) if enough => Verdict::Granted {
                        deadline: timing.deadline(round.started()),
                    },
                    _ => verdict,
                }
            }
            _ => verdict,
        }
    }
}
