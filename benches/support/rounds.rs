//! Contenders that take turns.
//!
//! ```text
//! round 0 (warm-up)   B A C
//! round 1             A C B      one letter = one slice: `tasks` tasks repeat the
//! round 2             C B A      contender's operation until the slice is over
//! ```

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};

use super::{
    measure::{cpu_time, load_average, seed},
    report::{Report, Slice},
};

/// The pause after a slice, in which replies that nobody waits for come in.
const SETTLE: Duration = Duration::from_millis(5);

type Operation = dyn Fn(String) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync;

/// Does the operation for so many tasks, on keys with this prefix, until then; each latency, and
/// the number of failures.
type Whole = dyn Fn(usize, &str, Instant) -> (Vec<Duration>, usize) + Send + Sync;

/// One way of doing the measured operation.
#[derive(Clone)]
pub struct Contender {
    name: String,
    work: Work,
}

#[derive(Clone)]
enum Work {
    /// Each task repeats this.
    Each(Arc<Operation>),
    /// One thread does this, for all tasks at once.
    Whole(Arc<Whole>),
}

impl Contender {
    /// `operation` gets a key that nobody has used before, and says whether it did its work.
    pub fn new<F, Fut>(name: &str, operation: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            work: Work::Each(Arc::new(move |key| Box::pin(operation(key)))),
        }
    }

    /// `work` does a whole slice: for so many tasks, on keys with this prefix, until then.
    pub fn whole<F>(name: &str, work: F) -> Self
    where
        F: Fn(usize, &str, Instant) -> (Vec<Duration>, usize) + Send + Sync + 'static,
    {
        Self {
            name: name.to_owned(),
            work: Work::Whole(Arc::new(work)),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does the operation once.
    pub async fn once(&self, key: String) -> bool {
        match &self.work {
            Work::Each(operation) => operation(key).await,
            Work::Whole(work) => work(1, &key, Instant::now()).1 == 0,
        }
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Tasks that repeat the operation at the same time.
    pub tasks: usize,
    /// Rounds that count; one more goes before them to warm up.
    pub rounds: usize,
    /// How long one contender's turn in a round lasts.
    pub slice: Duration,
}

/// Lets the contenders take turns as planned, on the runtime of the caller. The first one is what
/// the others are compared with.
///
/// The order is shuffled in each round. Its seed is in the report, and `QUORUMLOCK_BENCH_SEED`
/// sets it.
pub async fn interleave(plan: Plan, contenders: &[Contender]) -> Report {
    let seed = seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut report = Report::new(plan, seed, contenders.iter().map(Contender::name));
    report.load_before = load_average();
    for round in 0..=plan.rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        order.shuffle(&mut rng);
        for turn in order {
            let prefix = format!("bench:{seed:x}:{}:{round}:{turn}", plan.tasks);
            let slice = run_slice(plan, &contenders[turn], &prefix).await;
            if round > 0 {
                report.add(turn, slice);
            }
        }
    }
    report.load_after = load_average();
    report
}

async fn run_slice(plan: Plan, contender: &Contender, prefix: &str) -> Slice {
    let cpu = cpu_time();
    let begin = Instant::now();
    let end = begin + plan.slice;
    let task = |task| {
        let (contender, prefix) = (contender.clone(), format!("{prefix}:{task}"));
        tokio::spawn(async move { repeat(&contender, &prefix, end).await })
    };
    let tasks: Vec<_> = match &contender.work {
        Work::Each(_) => (0..plan.tasks).map(task).collect(),
        Work::Whole(work) => {
            let (work, prefix) = (Arc::clone(work), prefix.to_owned());
            let whole = move || work(plan.tasks, &prefix, end);
            vec![tokio::task::spawn_blocking(whole)]
        }
    };
    let mut latencies = Vec::new();
    let mut failures = 0;
    for task in tasks {
        let (own_latencies, own_failures) = task.await.expect("a task of the bench");
        latencies.extend(own_latencies);
        failures += own_failures;
    }
    let wall = begin.elapsed();
    tokio::time::sleep(SETTLE).await;
    Slice::new(latencies, failures, wall, cpu_time().saturating_sub(cpu))
}

/// Repeats the operation until `end`; each latency, and the number of failures.
async fn repeat(contender: &Contender, prefix: &str, end: Instant) -> (Vec<Duration>, usize) {
    let mut latencies = Vec::new();
    let mut failures = 0;
    let mut begin = Instant::now();
    // Once at least, so that no slice is empty.
    loop {
        let done = contender
            .once(format!("{prefix}:{}", latencies.len()))
            .await;
        failures += usize::from(!done);
        let now = Instant::now();
        latencies.push(now - begin);
        begin = now;
        if now >= end {
            return (latencies, failures);
        }
    }
}
