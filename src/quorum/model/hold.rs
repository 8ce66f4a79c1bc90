//! A lease that a client holds, and its extensions.

use super::client::{Client, Phase};
use super::*;

#[derive(Clone, Hash)]
pub(super) struct Hold {
    pub(super) lease: Lease,
    pub(super) presence: Presence,
    /// Nodes that may have the key.
    pub(super) touched: NodeSet,
    pub(super) token: u64,
    /// Its first deadline.
    pub(super) first: Instant,
    /// Those that have begun.
    extensions: SmallVec<[Extending; 2]>,
}

#[derive(Clone, Hash)]
struct Extending {
    extension: Extension,
    present: Instant,
    decided: bool,
    /// The nodes on which an absent key was not to be set again.
    known: NodeSet,
    /// Somebody had deleted the lock everywhere when it began.
    hopeless: bool,
}

impl Hold {
    pub(super) fn granted(
        round: &Round,
        (deadline, counted): (Instant, NodeSet),
        token: u64,
    ) -> Self {
        Hold {
            lease: Lease::granted(round.started(), deadline, None, None),
            presence: Presence::granted(quorum(), round.granted(), counted, deadline),
            touched: round.owed(),
            token,
            first: deadline,
            extensions: SmallVec::new(),
        }
    }

    pub(super) fn is_held(&self, now: u8) -> bool {
        at(now) < self.lease.deadline()
    }

    pub(super) fn is_over(&self, now: u8) -> bool {
        matches!(self.lease.step(at(now)), lease::Step::Lost(_))
    }

    /// Whether an answer may still move its deadline, or another extension begin.
    pub(super) fn may_grow(&self, scenario: &Scenario) -> bool {
        let open = |extending: &Extending| extending.extension.answered() != quorum().all();
        self.extensions.iter().any(open) || self.extensions.len() < scenario.extensions.into()
    }

    fn may_extend(&self, scenario: &Scenario, now: u8) -> bool {
        let over = |last: &Extending| last.decided || at(now) >= last.extension.expires();
        !self.is_over(now)
            && self.extensions.len() < scenario.extensions.into()
            && self.extensions.last().is_none_or(over)
    }

    /// The node has lost its data: what it said before means nothing.
    pub(super) fn forget(&mut self, node: usize) {
        self.presence.forget(node);
        for extending in &mut self.extensions {
            extending.known.remove(node);
        }
    }

    /// The request went with its connection; that is no word of the node.
    pub(super) fn failed(&mut self, node: usize, number: u8) {
        let extending = &mut self.extensions[usize::from(number)];
        extending.extension.vote(node, Renewal::Failed);
    }

    /// Whether the lock turns out to be lost.
    ///
    /// # Errors
    /// What was deleted everywhere is renewed.
    pub(super) fn hear(
        &mut self,
        scenario: &Scenario,
        node: usize,
        (number, what): (u8, Extended),
        votes: bool,
        now: u8,
    ) -> Result<bool, String> {
        let gone = self.presence.is_missing(node);
        let extending = &mut self.extensions[usize::from(number)];
        let until = scenario.timing().deadline(extending.extension.started());
        let is_there = matches!(what, Extended::Renewed | Extended::Restored);
        let counts = is_there && self.presence.stands(node, until, votes, at(now))
            || scenario.rule == Rule::ExtensionCountsAnyNode;
        let renewal = match what {
            Extended::Renewed | Extended::Restored if !counts => Renewal::Uncounted,
            Extended::Restored if gone => Renewal::Mended,
            Extended::Renewed | Extended::Restored => Renewal::Renewed,
            Extended::Taken => Renewal::Taken,
            Extended::Absent if extending.known.contains(node) => Renewal::Deleted,
            Extended::Absent => Renewal::Failed,
        };
        extending.extension.vote(node, renewal);
        self.presence.heard(node);
        match renewal {
            Renewal::Renewed | Renewal::Mended | Renewal::Uncounted => self.presence.found(node),
            Renewal::Deleted => self.presence.missed(node, votes),
            Renewal::Taken => self.presence.taken(node),
            Renewal::Failed => {}
        }
        let present = match scenario.rule {
            Rule::ExtensionAfterDeadline => Instant::FAR,
            _ => extending.present,
        };
        let outcome = extending.extension.outcome(at(now), present);
        extending.decided |= outcome != Outcome::Held;
        match outcome {
            Outcome::Renewed { .. } => {
                if extending.hopeless {
                    return Err(String::from("what was deleted everywhere is renewed"));
                }
                let started = extending.extension.started();
                let deadline = scenario.timing().deadline(started);
                match scenario.rule {
                    Rule::ExtensionAfterDeadline => {
                        self.lease = Lease::granted(started, deadline, None, None);
                    }
                    _ => {
                        self.lease.renewed(at(now), started, deadline, None);
                    }
                }
                Ok(false)
            }
            Outcome::Deleted | Outcome::Taken => Ok(true),
            Outcome::Held | Outcome::Unknown => Ok(false),
        }
    }
}

impl Client {
    pub(super) fn may_extend(&self, scenario: &Scenario, now: u8) -> bool {
        matches!(&self.phase, Phase::Holding(hold) if hold.may_extend(scenario, now))
    }

    /// Asks for an extension; `hopeless` where somebody has deleted the lock everywhere.
    pub(super) fn extend(&mut self, scenario: &Scenario, now: u8, hopeless: bool) {
        let Phase::Holding(hold) = &mut self.phase else {
            return;
        };
        let known = match scenario.rule {
            Rule::HealingWithoutDeletedVotes => NodeSet::EMPTY,
            _ => hold.presence.known(quorum()),
        };
        let number = hold.extensions.len() as u8;
        hold.lease.begin();
        hold.extensions.push(Extending {
            extension: Extension::begin(at(now), quorum(), scenario.timing()),
            present: hold.lease.deadline(),
            decided: false,
            known,
            hopeless,
        });
        for node in 0..NODES {
            hold.touched.insert(node);
            hold.presence.asked(node);
        }
        for node in 0..NODES {
            let restore = !known.contains(node);
            self.send(node, Ask::Extend { number, restore });
        }
    }
}
