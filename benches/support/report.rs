//! Medians over rounds, and ratios to the first contender.

use std::{fmt, time::Duration};

use super::rounds::Plan;

/// What one contender did in its turn of one round.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    p50: f64,
    p99: f64,
    per_second: f64,
    cpu_per_op: f64,
    failures: usize,
}

impl Slice {
    /// Sums a turn up. `latencies` must not be empty.
    pub fn new(
        mut latencies: Vec<Duration>,
        failures: usize,
        wall: Duration,
        cpu: Duration,
    ) -> Self {
        latencies.sort_unstable();
        let count = latencies.len();
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Self {
            p50: micros(latencies[count / 2]),
            p99: micros(latencies[count * 99 / 100]),
            per_second: count as f64 / wall.as_secs_f64(),
            cpu_per_op: micros(cpu) / count as f64,
            failures,
        }
    }
}

/// One figure of a slice.
type Figure = fn(&Slice) -> f64;

/// The columns of the table.
const COLUMNS: [(&str, Figure); 4] = [
    ("p50 µs", |slice| slice.p50),
    ("p99 µs", |slice| slice.p99),
    ("ops/s", |slice| slice.per_second),
    ("CPU µs/op", |slice| slice.cpu_per_op),
];

/// All slices of one run; displays as a Markdown table.
///
/// A figure is the median over the rounds. A ratio is the median of the ratios within each round,
/// so that a machine that grows busy in the middle of a run does not bend it.
#[derive(Debug)]
pub struct Report {
    plan: Plan,
    seed: u64,
    names: Vec<String>,
    slices: Vec<Vec<Slice>>,
    pub(super) load_before: String,
    pub(super) load_after: String,
}

impl Report {
    pub(super) fn new<'a>(plan: Plan, seed: u64, names: impl Iterator<Item = &'a str>) -> Self {
        let names: Vec<String> = names.map(str::to_owned).collect();
        Self {
            plan,
            seed,
            slices: vec![Vec::new(); names.len()],
            names,
            load_before: String::new(),
            load_after: String::new(),
        }
    }

    pub(super) fn add(&mut self, contender: usize, slice: Slice) {
        self.slices[contender].push(slice);
    }

    /// A figure's median over the rounds, and its ratio to the first contender's.
    fn figure(&self, contender: usize, of: Figure) -> (f64, f64) {
        let own = &self.slices[contender];
        let ratios = own
            .iter()
            .zip(&self.slices[0])
            .map(|(own, first)| of(own) / of(first));
        (median(own.iter().map(of)), median(ratios))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            tasks,
            rounds,
            slice,
        } = self.plan;
        writeln!(
            f,
            "{tasks} task(s), {rounds} rounds of {slice:?}, seed {}, load {} → {}\n",
            self.seed, self.load_before, self.load_after
        )?;
        write!(f, "| {:<16} |", "")?;
        for (title, _) in COLUMNS {
            write!(f, " {title:>9} | {:>6} |", "ratio")?;
        }
        writeln!(f, " failed |")?;
        writeln!(f, "|---|{}---:|", "---:|---:|".repeat(COLUMNS.len()))?;
        for (contender, name) in self.names.iter().enumerate() {
            write!(f, "| {name:<16} |")?;
            for (_, of) in COLUMNS {
                let (value, ratio) = self.figure(contender, of);
                write!(f, " {value:>9.1} | {ratio:>6.2} |")?;
            }
            let failures: usize = self.slices[contender].iter().map(|s| s.failures).sum();
            writeln!(f, " {failures:>6} |")?;
        }
        Ok(())
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}
