//! One turn of one contender. Its workers are started for it and killed after it, so that nobody
//! runs beside another, and nothing of an earlier turn is under way.

use std::{thread, time::Duration};

use crate::{
    contenders::Contender,
    figures::{Figures, contended},
    nodes::{Calls, Monitor, Stopped},
    process::{Answer, Hold, Job, Order, Worker, now},
    proxy::Proxy,
    scenario::Scenario,
    servers::Servers,
};

/// How long connecting and warming up may take.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How long an answer may take beyond the time of the run: a pair with a hanging node, for one.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Between the order to run and the beginning, so that all processes begin together.
const LEAD_US: u64 = 50_000;

/// Tasks of one process that contend, and processes with a task each.
const TASKS: usize = 8;
const PROCESSES: usize = 8;

/// How long a process keeps the one key.
const SECTION_US: u64 = 1_000;

/// The one node that is slow or hangs.
const WORST: usize = 4;

const SLOWNESS: Duration = Duration::from_millis(20);

/// How long the parts of a turn last, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub warm: u64,
    pub distinct: u64,
    pub shared: u64,
    pub healthy: u64,
    pub slow: u64,
    pub hung: u64,
}

/// Where the work is done.
pub struct Field {
    pub servers: Servers,
    pub urls: Vec<String>,
    pub proxy: Proxy,
    pub times: Times,
}

impl Field {
    /// One turn; `key` is its own.
    pub fn turn(&self, contender: &Contender, of: Scenario, key: &str) -> Result<Figures, String> {
        match of {
            Scenario::Distinct(tasks) => self.distinct(contender, tasks, key),
            Scenario::Tasks(section_us) => {
                let worker = self.started(contender, &self.urls, 1, key)?;
                self.shared(&mut [worker], TASKS, section_us, key)
            }
            Scenario::Processes => self.processes(contender, key),
            Scenario::Monitored => self.monitored(contender, key),
            Scenario::Slow => self.slow(contender, key),
            Scenario::Hung => self.hung(contender, key),
        }
    }

    /// What a contender's worker says of itself.
    pub fn version(&self, contender: &Contender) -> Result<String, String> {
        let mut worker = Worker::start(contender)?;
        tell_to_connect(&mut worker, &self.urls, 0, 1, "probe")?;
        connected(&mut worker)
    }

    fn started(
        &self,
        contender: &Contender,
        urls: &[String],
        tasks: usize,
        key: &str,
    ) -> Result<Worker, String> {
        let mut worker = Worker::start(contender)?;
        let warm = format!("{key}:warm");
        tell_to_connect(&mut worker, urls, self.times.warm, tasks, &warm)?;
        connected(&mut worker)?;
        Ok(worker)
    }

    fn distinct(&self, contender: &Contender, tasks: usize, key: &str) -> Result<Figures, String> {
        let mut worker = self.started(contender, &self.urls, tasks, key)?;
        pairs(&mut worker, tasks, self.times.distinct, key)
    }

    /// One key for the tasks of these workers, and what came of it.
    fn shared(
        &self,
        workers: &mut [Worker],
        tasks: usize,
        section_us: u64,
        key: &str,
    ) -> Result<Figures, String> {
        let job = Job {
            key: key.to_owned(),
            tasks,
            ms: self.times.shared,
            at: now() + LEAD_US,
            shared: true,
            section_us,
        };
        for worker in &mut *workers {
            worker.tell(&Order::Run(job.clone()))?;
        }
        let mut seen: Vec<Vec<Hold>> = Vec::new();
        let mut failures = 0;
        for worker in &mut *workers {
            match worker.answer(limit(job.ms))? {
                Answer::Holds { holds, failed } => {
                    seen.push(holds);
                    failures += failed;
                }
                other => return Err(format!("unexpected: {other:?}")),
            }
        }
        let takers = workers.len().max(tasks);
        let mut figures = contended(&seen, takers, job.at, job.ms * 1_000);
        figures.insert("failed", failures as f64);
        Ok(figures)
    }

    fn processes(&self, contender: &Contender, key: &str) -> Result<Figures, String> {
        let mut workers = self.several(contender, key)?;
        let before = Calls::read(&self.urls)?;
        let mut figures = self.shared(&mut workers, 1, SECTION_US, key)?;
        let calls = Calls::read(&self.urls)?.since(&before);
        let each = figures["handed"] * self.urls.len() as f64;
        figures.insert("calls", calls as f64 / each);
        Ok(figures)
    }

    /// The same once more, while one node tells who sends what, which costs it time.
    fn monitored(&self, contender: &Contender, key: &str) -> Result<Figures, String> {
        let mut workers = self.several(contender, key)?;
        let monitor = Monitor::start(&self.urls[0]).map_err(|error| error.to_string())?;
        let seen = self.shared(&mut workers, 1, SECTION_US, key);
        let sent = monitor.stop().map_err(|error| error.to_string())? as f64;
        let mut figures = seen?;
        figures.insert("sent", sent / figures["handed"]);
        figures.insert(
            "sent_hold",
            sent / (figures["holds"] * self.times.shared as f64 / 1e3),
        );
        Ok(figures)
    }

    /// Eight of them, which start beside one another.
    fn several(&self, contender: &Contender, key: &str) -> Result<Vec<Worker>, String> {
        let mut workers = Vec::new();
        for process in 0..PROCESSES {
            let mut worker = Worker::start(contender)?;
            let own = format!("{key}:{process}:warm");
            tell_to_connect(&mut worker, &self.urls, self.times.warm, 1, &own)?;
            workers.push(worker);
        }
        for worker in &mut workers {
            connected(worker)?;
        }
        Ok(workers)
    }

    fn slow(&self, contender: &Contender, key: &str) -> Result<Figures, String> {
        let mut urls = self.urls.clone();
        urls[WORST] = self.proxy.url();
        self.proxy.delay(Duration::ZERO);
        let mut worker = self.started(contender, &urls, 1, key)?;
        let healthy = pairs(
            &mut worker,
            1,
            self.times.healthy,
            &format!("{key}:healthy"),
        )?;
        self.proxy.delay(SLOWNESS);
        let bad = pairs(&mut worker, 1, self.times.slow, &format!("{key}:slow"));
        self.proxy.delay(Duration::ZERO);
        Ok(against(&healthy, bad?))
    }

    fn hung(&self, contender: &Contender, key: &str) -> Result<Figures, String> {
        let mut worker = self.started(contender, &self.urls, 1, key)?;
        let healthy = pairs(
            &mut worker,
            1,
            self.times.healthy,
            &format!("{key}:healthy"),
        )?;
        let stopped = Stopped::new(&self.servers, WORST);
        let bad = pairs(&mut worker, 1, self.times.hung, &format!("{key}:hung"));
        drop(worker);
        drop(stopped);
        // It answers when it has dealt with what piled up.
        Calls::read(&self.urls)?;
        Ok(against(&healthy, bad?))
    }
}

fn tell_to_connect(
    worker: &mut Worker,
    urls: &[String],
    warm_ms: u64,
    tasks: usize,
    key: &str,
) -> Result<(), String> {
    worker.tell(&Order::Connect {
        urls: urls.to_vec(),
        warm_ms,
        tasks,
        key: key.to_owned(),
    })
}

fn connected(worker: &mut Worker) -> Result<String, String> {
    match worker.answer(START_LIMIT)? {
        Answer::Ready { ready } => Ok(ready),
        other => Err(format!("unexpected: {other:?}")),
    }
}

/// Pairs on fresh keys for some time.
fn pairs(worker: &mut Worker, tasks: usize, ms: u64, key: &str) -> Result<Figures, String> {
    // What is still under way from before comes in meanwhile.
    thread::sleep(Duration::from_millis(5));
    let job = Job {
        key: key.to_owned(),
        tasks,
        ms,
        at: now(),
        shared: false,
        section_us: 0,
    };
    worker.tell(&Order::Run(job))?;
    match worker.answer(limit(ms))? {
        Answer::Pairs {
            p50,
            p99,
            pairs,
            failed,
            wall_us,
        } => Ok(Figures::from([
            ("p50", p50),
            ("p99", p99),
            ("pairs", pairs as f64),
            ("rate", pairs as f64 * 1e6 / wall_us),
            ("failed", failed as f64),
        ])),
        other => Err(format!("unexpected: {other:?}")),
    }
}

/// The figures with a bad node, beside those of the same process without.
fn against(healthy: &Figures, mut bad: Figures) -> Figures {
    bad.insert("healthy50", healthy["p50"]);
    bad.insert("healthy99", healthy["p99"]);
    bad.insert("times50", bad["p50"] / healthy["p50"]);
    bad.insert("times99", bad["p99"] / healthy["p99"]);
    bad
}

fn limit(ms: u64) -> Duration {
    Duration::from_millis(ms) + ANSWER_LIMIT
}
