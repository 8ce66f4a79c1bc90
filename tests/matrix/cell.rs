//! One cell: a lock meets a fault in one phase, and what comes of it.

use std::time::{Duration, Instant};

use quorumlock::{
    AcquireError, Attempt, Client, ExtendError, FaultKind, Guard, Released, RestartGuard,
};
use tokio::time::{sleep, timeout};

use crate::expected::{Bound, Expected, Left, Outcome, expected};
use crate::fault::{Fault, Phase};
use crate::site::{LONG, NODE_TIMEOUT, NODES, SHORT, SLACK, Site, stored};
use crate::support::eventually_async;

/// How long an acquire waits where there is no quorum.
const WAIT: Duration = Duration::from_secs(1);

/// How soon an owed release has gone: a mute connection is given up after five node timeouts.
const SWEPT: Duration = Duration::from_secs(12);

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub fault: Fault,
    pub bad: usize,
    pub phase: Phase,
}

/// How it went.
struct Seen {
    outcome: Result<Outcome, String>,
    taken: Duration,
}

impl Cell {
    fn name(&self) -> String {
        format!("{:?}-{}-{:?}", self.fault, self.bad, self.phase)
    }

    fn ttl(&self) -> Duration {
        match self.phase {
            Phase::Hold => SHORT,
            _ if self.fault.is_guarded() => SHORT,
            _ => LONG,
        }
    }

    /// Runs it on `site`, and says what is not as expected.
    pub async fn run(self, site: &mut Site) -> Result<(), String> {
        let guard = match self.fault.is_guarded() {
            true => RestartGuard::Auto,
            false => RestartGuard::Off,
        };
        if self.fault.is_guarded() {
            site.come_of_age().await;
        }
        let config = site.config(self.ttl(), guard);
        let by_itself = self.phase == Phase::Hold;
        let config = config.auto_extend(by_itself).wait(WAIT);
        let client = Client::with_config(config).expect("usable settings");
        site.meets_all(&client, &format!("warm-{}", self.name()))
            .await;
        let seen = match self.phase {
            Phase::Acquire => self.acquire(site, &client).await,
            Phase::Hold => self.hold(site, &client).await,
            Phase::Extend => self.extend(site, &client).await,
            Phase::Release => self.release(site, &client).await,
        };
        site.heal(self.fault, self.bad);
        let expected = expected(self.fault, self.bad, self.phase);
        let left = self.sweep(site, expected.left).await;
        drop(client);
        self.compare(&seen, &expected)?;
        left.map_err(|text| format!("{}: {text}", self.name()))
    }

    async fn acquire(&self, site: &Site, client: &Client) -> Seen {
        let lock = client.lock(self.name());
        site.inflict(self.fault, self.bad, false);
        let mut begin = Instant::now();
        if self.bad * 2 < NODES {
            // At first sight of the fault, and once it is known.
            match lock.try_acquire().await {
                Ok(guard) => drop(guard.release().await),
                Err(error) => return Seen::new(begin, Err(error.to_string())),
            }
            if begin.elapsed() >= NODE_TIMEOUT {
                return Seen::new(begin, Ok(Outcome::Granted));
            }
            begin = Instant::now();
            let guard = lock.try_acquire().await;
            return Seen::new(begin, self.acquired(guard).await);
        }
        let guard = lock.acquire().await;
        let seen = Seen::new(begin, Ok(Outcome::Granted));
        let outcome = self.acquired(guard).await;
        Seen { outcome, ..seen }
    }

    async fn acquired(&self, outcome: Result<Guard, AcquireError>) -> Result<Outcome, String> {
        let told = |attempt: &Attempt| {
            let faults = attempt.votes()[..self.bad].iter();
            let faults: Vec<Option<FaultKind>> = faults.map(|vote| vote.vote.fault()).collect();
            match faults[..] {
                [Some(kind), ..] if faults.iter().all(|fault| *fault == Some(kind)) => Ok(kind),
                _ => Err(attempt.to_string()),
            }
        };
        match outcome {
            Ok(guard) => {
                drop(guard.release().await);
                Ok(Outcome::Granted)
            }
            Err(AcquireError::Unavailable(attempt)) => told(&attempt).map(Outcome::Unavailable),
            Err(AcquireError::Rejected(attempt)) => told(&attempt).map(Outcome::Rejected),
            Err(error) => Err(error.to_string()),
        }
    }

    /// A guard on all five nodes, and clocks that are known.
    async fn held(&self, site: &Site, client: &Client) -> Guard {
        let lock = client.lock(self.name()).wait(NODE_TIMEOUT + SLACK);
        let guard = lock.acquire().await.expect("five good nodes");
        let probe = site.probe();
        let everywhere = || stored(&probe, &self.name()).len() == NODES;
        assert!(eventually_async(SLACK, everywhere).await);
        guard.extend().await.expect("five good nodes");
        // So that the last of the answers are in.
        sleep(Duration::from_millis(50)).await;
        guard
    }

    async fn hold(&self, site: &Site, client: &Client) -> Seen {
        let guard = self.held(site, client).await;
        let until = |guard: &Guard| Instant::now() + guard.remaining();
        let before = until(&guard);
        let begin = Instant::now();
        site.inflict(self.fault, self.bad, false);
        // From here on an extension that succeeds has begun after the fault.
        let later = Instant::now() + SHORT - Duration::from_millis(200);
        let renewed = async {
            while until(&guard) < later.max(before + Duration::from_millis(100)) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let outcome = tokio::select! {
            loss = guard.lost() => Ok(Outcome::Lost(loss)),
            () = renewed => Ok(Outcome::Held),
            () = sleep(SHORT + SLACK) => Err("neither held nor lost".to_owned()),
        };
        Seen::new(begin, outcome)
    }

    async fn extend(&self, site: &Site, client: &Client) -> Seen {
        let guard = self.held(site, client).await;
        site.inflict(self.fault, self.bad, true);
        let begin = Instant::now();
        let first = guard.extend().await;
        let taken = begin.elapsed();
        let outcome = match first {
            Ok(()) => Ok(Outcome::Extended),
            Err(ExtendError::Lost(loss)) => Ok(Outcome::Lost(loss)),
            Err(ExtendError::Unconfirmed) if !guard.is_held() => {
                Err("unconfirmed, and not held".to_owned())
            }
            Err(ExtendError::Unconfirmed) => match self.once_more(&guard).await {
                true => Ok(Outcome::ExtendedLater),
                false => Ok(Outcome::Unextended),
            },
            Err(error) => Err(error.to_string()),
        };
        Seen { outcome, taken }
    }

    async fn once_more(&self, guard: &Guard) -> bool {
        let tries = async {
            while guard.extend().await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(NODE_TIMEOUT + WAIT, tries).await.is_ok()
    }

    async fn release(&self, site: &Site, client: &Client) -> Seen {
        let guard = self.held(site, client).await;
        site.inflict(self.fault, self.bad, true);
        let begin = Instant::now();
        let outcome = match guard.release().await {
            Ok(Released::InTime) => Ok(Outcome::Released),
            Ok(Released::AlreadyLost(loss)) => Ok(Outcome::FoundGone(loss)),
            Err(_) => Ok(Outcome::Unreleased),
            other => Err(format!("{other:?}")),
        };
        Seen::new(begin, outcome)
    }

    /// Whether the keys go, or stay, as they should. The fault is over.
    async fn sweep(&self, site: &Site, left: Left) -> Result<(), String> {
        let probe = site.probe();
        let keys = || stored(&probe, &self.name());
        let bad: Vec<usize> = (0..self.bad).collect();
        let stay = match left {
            Left::UntilTtl if self.ttl() == LONG => bad,
            _ => Vec::new(),
        };
        let within = match self.ttl() == LONG {
            true => SWEPT,
            false => SHORT + SLACK,
        };
        match eventually_async(within, || keys() == stay).await {
            true => Ok(()),
            false => Err(format!("keys on {:?} instead of {stay:?}", keys())),
        }
    }

    fn compare(&self, seen: &Seen, expected: &Expected) -> Result<(), String> {
        let (name, taken) = (self.name(), seen.taken);
        let limit = match expected.bound {
            Bound::Prompt => NODE_TIMEOUT,
            Bound::Budget if self.phase == Phase::Acquire => WAIT + NODE_TIMEOUT + SLACK,
            Bound::Budget => NODE_TIMEOUT + SLACK,
            Bound::Validity => SHORT + SLACK,
        };
        match &seen.outcome {
            Ok(outcome) if *outcome == expected.outcome && taken < limit => Ok(()),
            Ok(outcome) => Err(format!(
                "{name}: {outcome:?} in {taken:?} instead of {:?} in {limit:?}",
                expected.outcome
            )),
            Err(text) => Err(format!("{name}: {text} instead of {:?}", expected.outcome)),
        }
    }
}

impl Seen {
    fn new(begin: Instant, outcome: Result<Outcome, String>) -> Seen {
        Seen {
            outcome,
            taken: begin.elapsed(),
        }
    }
}
