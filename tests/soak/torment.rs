//! What is done to nodes, network and workers, drawn by chance.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::helpers::*;
use crate::support::*;

pub const NODES: usize = 5;
const WORKERS: usize = 4;

/// A restarted node has its vote back after this: the restart guard's 3 s, and its whole seconds.
const OF_AGE: Duration = Duration::from_millis(4200);

/// How many nodes may be under the restart guard at one time. With more, a set whose nodes are all
/// young could be taken for one that was newly built, which the guard's `auto` does not promise.
const YOUNG: usize = 2;

/// How many nodes may be in trouble of any kind, as a rule: with more nobody gets the lock.
const IN_TROUBLE: usize = 2;

/// What ends a trouble.
#[derive(Clone, Copy, Debug)]
enum Cure {
    Heal,
    Resume,
    RestartEmpty,
    RestartWithData,
    SetClockRight,
}

/// Five servers behind proxies, the workers, and what is wrong at the moment.
pub struct Scene {
    pub cluster: Cluster,
    pub proxies: Vec<Proxy>,
    clocks: Option<Vec<Clock>>,
    notes: PathBuf,
    workers: Vec<Worker>,
    stopped: Option<(usize, Instant)>,
    troubles: [Option<(Cure, Instant)>; NODES],
    restarts: Vec<Instant>,
    dice: Dice,
    /// How often each kind of fault came.
    pub done: std::collections::BTreeMap<&'static str, usize>,
}

impl Scene {
    /// Nodes whose clocks can be set are never restarted: of a loss of data beside clocks that
    /// differ nothing is promised.
    pub fn new(notes: PathBuf, clocks: Option<Vec<Clock>>) -> Scene {
        let cluster = Cluster::with(NODES, |node, server| {
            let server = server.aof(true);
            match &clocks {
                Some(clocks) => clocks[node].of(server),
                None => server,
            }
        });
        let mut scene = Scene {
            proxies: Proxy::in_front_of_all(cluster.ports()),
            cluster,
            clocks,
            notes,
            workers: Vec::new(),
            stopped: None,
            troubles: [None; NODES],
            restarts: Vec::new(),
            dice: Dice::new(),
            done: std::collections::BTreeMap::new(),
        };
        scene.workers = (0..WORKERS).map(|_| scene.worker()).collect();
        scene
    }

    fn worker(&self) -> Worker {
        let urls: Vec<_> = self.proxies.iter().map(Proxy::url).collect();
        let notes = self.notes.to_str().expect("a plain path");
        let vars = [("WORKER_URLS", &*urls.join(" ")), ("WORKER_NOTES", notes)];
        Worker::start("worker::worker", &vars)
    }

    /// For so long, one thing after the other; then everything is well again.
    pub fn run(&mut self, span: Duration) {
        let end = Instant::now() + span;
        while Instant::now() < end {
            std::thread::sleep(10 * MS + self.dice.span(90 * MS));
            self.cure(Instant::now());
            if self.dice.below(4) == 0 {
                self.trouble_a_worker();
            } else {
                self.trouble_a_node();
            }
        }
        self.cure(end + Duration::from_secs(3600));
    }

    /// Ends the workers.
    pub fn over(&mut self) {
        self.workers.clear();
    }

    fn count(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    /// Ends what has lasted long enough by `now`.
    fn cure(&mut self, now: Instant) {
        if let Some((worker, _)) = self.stopped.filter(|(_, until)| *until <= now) {
            self.workers[worker].signal(libc::SIGCONT);
            self.stopped = None;
        }
        for node in 0..NODES {
            let Some((cure, _)) = self.troubles[node].filter(|(_, until)| *until <= now) else {
                continue;
            };
            let server = &self.cluster[node];
            match cure {
                Cure::Heal => self.proxies[node].heal(),
                Cure::Resume => server.resume(),
                Cure::RestartEmpty => server.restart_empty(),
                Cure::RestartWithData => server.restart_with_data(),
                Cure::SetClockRight => self.clocks.iter().for_each(|clocks| clocks[node].set(0)),
            }
            if matches!(cure, Cure::RestartEmpty | Cure::RestartWithData) {
                self.restarts.push(Instant::now());
            }
            self.troubles[node] = None;
        }
    }

    fn trouble_a_worker(&mut self) {
        let worker = self.dice.below(WORKERS as u64) as usize;
        if self.stopped.is_some_and(|(stopped, _)| stopped == worker) {
            return;
        }
        if self.dice.below(2) == 0 {
            self.workers[worker].kill();
            self.workers[worker] = self.worker();
            self.count("worker killed");
        } else if self.stopped.is_none() {
            // Up to twice the lease: some are overtaken.
            let until = Instant::now() + self.dice.span(1200 * MS);
            self.workers[worker].signal(libc::SIGSTOP);
            self.stopped = Some((worker, until));
            self.count("worker stopped");
        }
    }

    fn trouble_a_node(&mut self) {
        let node = self.dice.below(NODES as u64) as usize;
        let in_trouble = self.troubles.iter().flatten().count();
        let enough = in_trouble >= IN_TROUBLE && self.dice.below(8) > 0;
        if self.troubles[node].is_some() || enough {
            return;
        }
        let kind = self.dice.below(9);
        let (what, cure) = match kind {
            0 | 1 => return self.kill_or_set_clock(node),
            2 | 3 => ("node stopped", Cure::Resume),
            4 => ("requests held", Cure::Heal),
            5 => ("replies held", Cure::Heal),
            6 => ("node cut off", Cure::Heal),
            7 => ("node late", Cure::Heal),
            _ => ("connections reset", Cure::Heal),
        };
        let proxy = &self.proxies[node];
        match kind {
            2 | 3 => self.cluster[node].pause(),
            4 => proxy.hold_requests(),
            5 => proxy.hold_replies(),
            6 => proxy.blackhole(),
            7 => proxy.delay(MS + self.dice.span(60 * MS)),
            _ => match self.dice.below(3) {
                0 => proxy.reset_after_request(""),
                1 => proxy.reset_before_request(""),
                _ => proxy.reset(),
            },
        }
        let until = Instant::now() + 10 * MS + self.dice.span(900 * MS);
        self.troubles[node] = Some((cure, until));
        self.count(what);
    }

    fn kill_or_set_clock(&mut self, node: usize) {
        if let Some(clocks) = &self.clocks {
            // Up to three seconds either way: keys run out at once, or stay for longer.
            let seconds = self.dice.below(7).cast_signed() - 3;
            clocks[node].set(seconds);
            let until = Instant::now() + self.dice.span(900 * MS);
            self.troubles[node] = Some((Cure::SetClockRight, until));
            return self.count("clock set");
        }
        let down = self.troubles.iter().flatten();
        let down = down
            .filter(|(cure, _)| matches!(cure, Cure::RestartEmpty | Cure::RestartWithData))
            .count();
        self.restarts.retain(|at| at.elapsed() < OF_AGE);
        if down + self.restarts.len() >= YOUNG {
            return;
        }
        self.cluster[node].kill();
        let (what, cure) = match self.dice.below(2) {
            0 => ("node killed, back empty", Cure::RestartEmpty),
            _ => ("node killed, back with its data", Cure::RestartWithData),
        };
        let until = Instant::now() + self.dice.span(500 * MS);
        self.troubles[node] = Some((cure, until));
        self.count(what);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A stopped server or worker ends by SIGKILL, too.
        self.workers.clear();
    }
}
