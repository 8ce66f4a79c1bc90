//! A seeded world in one thread: several processes with the real client code, servers and
//! networks in memory, virtual time. **Unstable:** it serves this library's own tests, and
//! changes with them.
//!
//! ```text
//!   step: poll a task │ let a server work │ turn an engine │ move the clock
//!         in this order of preference, one thing at a time, each with its number
//! ```
//!
//! Every source of chance is closed, so that one seed gives one history, to the byte:
//!
//! - owner tokens: drawn from the seed, for each process;
//! - jitter of retries and of repeated extensions: from the seed, for each process;
//! - jitter of reconnects, network latency, run ids: from the seed, for each server and link;
//! - the order of tasks: first woken, first polled; engines and servers by their number;
//! - clocks: all hang on one that the world moves; servers differ by rates and steps as told;
//! - hash maps: none is iterated where the order shows;
//! - whatever a test decides by chance: [`World::chance`].

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use super::cluster::Cluster;
use super::{Clock, Node};
use crate::client::Client;
use crate::clock::{self, Instant};
use crate::config::{Config, ConfigError};
use crate::node::memory::audit::Offences;
use crate::node::memory::chance;
use crate::node::memory::faults::Reset;
use crate::node::memory::journal::Journal;

mod executor;
mod look;
mod network;
mod process;
mod time;
mod verbs;

use executor::Executor;
pub use executor::{Sleep, Task};
use process::Process;
pub use verbs::{Link, Server, is_held};

/// Names a process of the world, in the order of their making.
pub type ProcessId = usize;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A task was polled.
    Polled,
    /// The engine of a process had its turn.
    Turned,
    /// A server carried out what had arrived.
    Served,
    /// The clock was moved to the next moment at which something is due.
    Advanced,
    /// There is nothing left to happen before the limit.
    Idle,
}

/// The world. Clones are handles on the same one.
#[derive(Clone)]
pub struct World(Rc<Inner>);

struct Inner {
    clock: Clock,
    cluster: Cluster,
    journal: Journal,
    executor: Executor,
    processes: RefCell<Vec<Process>>,
    chance: RefCell<chance::Chance>,
    checks: RefCell<Vec<Check>>,
    seed: u64,
    /// A test has done something to a server.
    touched: Cell<bool>,
    /// What the servers have noticed.
    offences: Offences,
}

type Check = Rc<dyn Fn(&World) -> Result<(), String>>;

impl World {
    /// A world of `nodes` servers, without a log.
    #[must_use]
    pub fn new(seed: u64, nodes: usize) -> Self {
        World::with(seed, nodes, false, Journal::default())
    }

    /// The same, with a log of all that happens.
    #[must_use]
    pub fn logged(seed: u64, nodes: usize) -> Self {
        World::with(seed, nodes, false, Journal::kept())
    }

    /// One whose last address leads to the first server, too; with a log if it is `logged`.
    #[must_use]
    pub fn with_twins(seed: u64, nodes: usize, logged: bool) -> Self {
        let journal = if logged {
            Journal::kept()
        } else {
            Journal::default()
        };
        World::with(seed, nodes, true, journal)
    }

    fn with(seed: u64, nodes: usize, twins: bool, journal: Journal) -> Self {
        let mut chance = chance::Chance::new(seed);
        let clock = Clock::new();
        let hands = clock::Clock::Manual(clock.hands.clone());
        let mut cluster = Cluster::by(nodes, hands, chance.draw(), &journal);
        if twins {
            cluster = cluster.with_twins();
        }
        let offences = Offences::default();
        for (index, node) in cluster.nodes.iter().enumerate() {
            let twice = twins && (index == 0 || index + 1 == nodes);
            let mut server = node.server.lock();
            server.audit.begin(offences.clone(), twice);
        }
        World(Rc::new(Inner {
            cluster,
            clock,
            journal,
            executor: Executor::default(),
            processes: RefCell::default(),
            chance: RefCell::new(chance),
            checks: RefCell::default(),
            seed,
            touched: Cell::new(true),
            offences,
        }))
    }

    /// A process with one client, whose settings are those of `config`.
    ///
    /// # Errors
    /// A setting that cannot be used.
    pub fn client(&self, config: Config) -> Result<(ProcessId, Client), ConfigError> {
        let mut processes = self.0.processes.borrow_mut();
        let id = processes.len();
        let seed = self.0.chance.borrow_mut().draw();
        let process = Process::new(seed);
        let (client, number) = self.0.cluster.client_by(&config, process.start(), false)?;
        debug_assert_eq!(number as usize, id);
        processes.push(process);
        Ok((id, client))
    }

    /// The servers' keys and simple faults, as in the public double.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    /// One server, as the public double has it.
    #[must_use]
    pub fn node(&self, index: usize) -> Node {
        self.touch();
        self.0.cluster.node(index)
    }

    /// Runs `future` in `process`: it stands still when the process does.
    pub fn spawn<F>(&self, process: ProcessId, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
    {
        self.0.executor.spawn(Some(process), future)
    }

    /// Runs `future` outside of every process: what does things to the world.
    pub fn spawn_outside<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
    {
        self.0.executor.spawn(None, future)
    }

    /// Ends after `span` of the world's time.
    #[must_use]
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.0.executor.sleep(self.now().after(span))
    }

    /// The time since the world began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.clock.elapsed()
    }

    /// Somebody is about to do something to a server.
    fn touch(&self) {
        self.0.touched.set(true);
    }

    fn now(&self) -> Instant {
        self.0.clock.hands.now()
    }

    /// What the world was made from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// A uniform draw below `limit`.
    #[must_use]
    pub fn chance(&self, limit: u64) -> u64 {
        self.0.chance.borrow_mut().below(limit)
    }

    /// A draw from `least` up to `most`.
    #[must_use]
    pub fn span(&self, least: Duration, most: Duration) -> Duration {
        self.0.chance.borrow_mut().between(least, most)
    }

    /// Writes a line into the log.
    pub fn note(&self, line: impl FnOnce() -> String) {
        self.0.journal.write(self.now(), line);
    }

    /// The log, where it is kept.
    #[must_use]
    pub fn log(&self) -> String {
        self.0.journal.text()
    }

    /// Drops the tasks that run outside of the processes.
    pub fn end_outside(&self) {
        self.0.executor.clear_outside();
    }

    /// Drops all tasks and checks, which may have handles on the world: without this it would
    /// keep itself alive.
    pub fn end(&self) {
        self.0.checks.borrow_mut().clear();
        self.0.executor.clear();
        self.0.processes.borrow_mut().clear();
    }

    /// Calls `check` after every step: an invariant.
    pub fn always(&self, check: impl Fn(&World) -> Result<(), String> + 'static) {
        self.0.checks.borrow_mut().push(Rc::new(check));
    }

    /// Stops a process for `span`: neither its tasks nor its engine do anything meanwhile. The
    /// network goes on.
    pub fn freeze(&self, process: ProcessId, span: Duration) {
        let until = self.now().after(span);
        self.note(|| format!("c{process} stands still for {span:?}"));
        if let Some(process) = self.0.processes.borrow_mut().get_mut(process) {
            process.frozen_until = process.frozen_until.max(until);
        }
    }

    /// Until when a process stands still, or stood still the last time.
    #[must_use]
    pub fn frozen_until(&self, process: ProcessId) -> Duration {
        let processes = self.0.processes.borrow();
        let until = processes.get(process).map(|process| process.frozen_until);
        until.map_or(Duration::ZERO, |until| until.since(Clock::start()))
    }

    fn is_frozen(&self, process: ProcessId) -> bool {
        self.frozen_until(process) > self.elapsed()
    }
}
