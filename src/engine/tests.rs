use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::coordinator::{AttemptId, Outcome, Secret};
use crate::queue::spec;
use crate::quorum::{Failed, Shortfall, Timing, Wait};
use crate::status::NodeStatus;

/// A store in which every round fails as soon as it begins: all nodes are down.
#[derive(Default)]
struct Down {
    outcomes: VecDeque<Outcome>,
}

impl LeaseStore for Down {
    fn acquire(&mut self, _: Instant, attempt: AttemptId, _: &Arc<[u8]>, _: &Timing) {
        self.outcomes.push_back(Outcome::Failed {
            attempt,
            failed: Failed {
                why: Shortfall::Unavailable,
                contest: None,
                listening: false,
                freed: false,
                trip: Duration::from_millis(1),
            },
            votes: Vec::new(),
        });
    }
    fn adopt(&mut self, _: Instant, _: AttemptId, _: &Arc<[u8]>, _: Secret, _: &Timing) {}
    fn secret(&self, _: LeaseId) -> Option<Secret> {
        None
    }
    fn forget(&mut self, _: LeaseId) -> Option<Secret> {
        None
    }
    fn abandon(&mut self, _: Instant, _: AttemptId) {}
    fn extend(&mut self, _: Instant, _: LeaseId, _: &Timing, _: Instant, _: tracing::Span) {}
    fn release(&mut self, _: Instant, _: LeaseId, _: &Timing) {}
    fn outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }
    fn has_news(&self) -> bool {
        !self.outcomes.is_empty()
    }
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
    fn turn(&mut self, _: Instant) {}
    fn flush(&mut self) {}
    fn listen(&mut self, _: &Arc<[u8]>) {}
    fn idle(&mut self, _: Instant, _: &Arc<[u8]>) {}
    fn rivals(&self, _: &[u8]) -> u32 {
        0
    }
    fn trip(&self) -> Duration {
        Duration::from_millis(1)
    }
    fn unreleased(&self) -> usize {
        0
    }
    fn pending(&self) -> usize {
        0
    }
    fn nodes(&mut self, _: Instant) -> Vec<NodeStatus> {
        Vec::new()
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

#[test]
fn a_round_that_fails_at_once_is_dealt_with_in_the_same_turn() {
    let (quorum, clock) = (Quorum::of(3), Clock::Boot);
    let mut engine = Engine::new(Down::default(), quorum, clock, Box::new(|| 0));
    let (reply, mut outcome) = oneshot::channel();
    let acquire = Command::Acquire {
        id: 1,
        spec: spec(2),
        wait: Wait::Forever,
        adopts: None,
        handle: Handle::new(Arc::default()),
        reply,
    };
    engine.command(at(0), acquire);
    engine.turn(at(0));
    assert!(matches!(outcome.try_recv(), Err(TryRecvError::Empty)));
    assert_eq!(engine.next_timeout(), Some(at(20)), "the next round");
    engine.turn(at(20));
    let error = outcome.try_recv().unwrap().map(|_| ()).unwrap_err();
    assert_eq!(error.attempt().map(|attempt| attempt.rounds()), Some(2));
}
