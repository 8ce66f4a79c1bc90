//! Medians over the rounds and ratios to quorumlock, as Markdown.
//!
//! A ratio is the median of the ratios within each round, so that a machine that grows busy in the
//! middle of a run does not bend it.

use std::{collections::HashMap, fmt::Write, time::Duration};

use crate::{
    contenders::ALL,
    figures::Figures,
    scenario::{SCENARIOS, Scenario},
};

/// What is said about a run.
#[derive(Debug, Default)]
pub struct About {
    pub seed: u64,
    pub rounds: usize,
    pub quick: bool,
    pub cores: usize,
    pub load_before: String,
    pub load_after: String,
    pub server: String,
    pub date: String,
    pub took: Duration,
    pub versions: Vec<String>,
    pub left_out: Vec<(&'static str, String)>,
}

/// All turns of one run, by scenario and contender, one for each round.
#[derive(Debug, Default)]
pub struct Report(HashMap<(Scenario, &'static str), Vec<Result<Figures, String>>>);

impl Report {
    pub fn add(&mut self, scenario: Scenario, name: &'static str, seen: Result<Figures, String>) {
        self.0.entry((scenario, name)).or_default().push(seen);
    }

    /// The median over the rounds; none, where nothing was seen.
    pub fn median(&self, scenario: Scenario, name: &'static str, key: &str) -> Option<f64> {
        let turns = self.0.get(&(scenario, name))?;
        median(
            turns
                .iter()
                .flatten()
                .filter_map(|seen| seen.get(key).copied()),
        )
    }

    fn ratio(&self, scenario: Scenario, name: &'static str, key: &str) -> Option<f64> {
        let own = self.0.get(&(scenario, name))?;
        let first = self.0.get(&(scenario, ALL[0].name))?;
        let both = own.iter().zip(first).filter_map(|(own, first)| {
            let (own, first) = (own.as_ref().ok()?, first.as_ref().ok()?);
            Some(own.get(key)? / first.get(key)?)
        });
        median(both)
    }

    pub fn markdown(&self, about: &About) -> String {
        let mut text = about.head();
        for scenario in SCENARIOS {
            self.table(scenario, &mut text);
        }
        text.push_str(NOTES);
        text
    }

    fn table(&self, scenario: Scenario, text: &mut String) {
        let columns = scenario.columns();
        let titles = columns
            .iter()
            .map(|&(_, title, _, ratio)| format!("{title}{}", if ratio { " (ratio)" } else { "" }));
        let titles: Vec<String> = titles.collect();
        let rule = "---:|".repeat(columns.len());
        let _ = write!(
            text,
            "\n## {}\n\n| | {} |\n|---|{rule}\n",
            scenario.title(),
            titles.join(" | ")
        );
        let mut notes = String::new();
        for contender in ALL {
            let name = contender.name;
            let Some(turns) = self.0.get(&(scenario, name)) else {
                continue;
            };
            let cells = columns.iter().map(|&(key, _, decimals, with_ratio)| {
                let value = show(self.median(scenario, name, key), decimals);
                if with_ratio {
                    format!("{value} ({})", ratio_text(self.ratio(scenario, name, key)))
                } else {
                    value
                }
            });
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
            for why in turns.iter().filter_map(|turn| turn.as_ref().err()) {
                let _ = writeln!(notes, "\n{name}: a turn came to nothing: {why}.");
            }
        }
        text.push_str(&notes);
    }
}

impl About {
    /// Whether the load before the run took more than half of the cores.
    fn was_busy(&self) -> bool {
        let load = self.load_before.split(' ').next().map(str::parse::<f64>);
        matches!(load, Some(Ok(load)) if load > self.cores as f64 / 2.0)
    }

    fn head(&self) -> String {
        let mut text = String::from("# quorumlock beside its peers\n\n");
        let quick = if self.quick { " --quick" } else { "" };
        let _ = writeln!(
            text,
            "Written by `scripts/bench peers{quick}`, which takes about {} s; the same order again:\n\
             `QUORUMLOCK_BENCH_SEED={} scripts/bench peers{quick}`.\n",
            self.took.as_secs(),
            self.seed
        );
        let _ = writeln!(
            text,
            "{}; rounds in shuffled order: {}; seed {}; {} cores, load {} before and {} after.",
            self.date, self.rounds, self.seed, self.cores, self.load_before, self.load_after
        );
        if self.was_busy() {
            text.push_str(BUSY);
        }
        let _ = writeln!(text, "\n- Five of: {}", self.server);
        for version in &self.versions {
            let _ = writeln!(text, "- {version}");
        }
        for (name, why) in &self.left_out {
            let _ = writeln!(text, "- Left out: {name}: {why}");
        }
        text
    }
}

const BUSY: &str = "
**The machine had other work to do when this began. Run it again on a quiet one before you make
anything of the figures.**
";

const NOTES: &str = "
## How to read it

Figures are medians over the rounds. A ratio is to quorumlock: the median of the ratios within each
round, which holds better than a figure on a machine that does other things too. The load is that
of the machine, this run included.

- Each contender is at its defaults: quorumlock gives out fencing tokens and extends what it holds,
  distributed-lock-redis extends, the others do neither. The TTL is 10 s where there is no default.
- Each turn has processes of its own, which connect, warm up and begin together. A caller asks again
  at once when it has let go.
- *Hand-overs* go to another task, or to another process. *Lies free* is the share of the time in
  which no task was in its critical section. *Refused* counts the calls that ended without the lock,
  or a release that failed: a caller then asks again. distributed-lock-redis never waits, so a
  random pause of up to 200 ms goes before the next try, as rslock and pottery make it themselves.
- *Longest wait* counts the waits that the end of a turn cut off: it is at least that.
- *Gap* is the time from one holder's end to the next one's beginning, at hand-overs alone: who hands
  over seldom may still do it quickly. *Per task* and *per process* are acquisitions in a turn.
- *Two holders* counts grants that came before the last holder had left its critical section.
- *Calls* are by `INFO commandstats` and count those inside scripts, too; *sent* is what MONITOR on
  one node shows of clients, in a turn of its own, since that makes the node slower.
- The bad node is beside four good ones; the healthy figure is of the same process before, for the
  slow node over the same proxy. *By healthy* is the figure divided by the healthy one: below 1 where
  the servers share their cores, since four are less work than five.
- Why some hardly hand over, by their sources: node-redlock keeps what a split vote gave it until its
  ten retries are used up, and takes its own key for somebody else's meanwhile.
  distributed-lock-redis takes nothing back after a failed try, and releases only where a grant was
  counted; the rest runs out after its 30 s.
";

fn show(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Two digits behind the first zeroes are all that a ratio is good for.
fn ratio_text(ratio: Option<f64>) -> String {
    let Some(ratio) = ratio else {
        return "–".to_owned();
    };
    let digits = match ratio {
        ratio if ratio >= 100.0 => 0,
        ratio if ratio >= 10.0 => 1,
        ratio if ratio >= 0.1 || ratio == 0.0 => 2,
        ratio if ratio >= 0.01 => 3,
        ratio if ratio >= 0.001 => 4,
        _ => 5,
    };
    format!("{ratio:.digits$}×")
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[count / 2]),
        count => Some(f64::midpoint(values[count / 2 - 1], values[count / 2])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        let mut report = Report::default();
        for (ours, theirs) in [(10.0, 20.0), (100.0, 300.0), (1.0, 4.0)] {
            let figures = |value| Ok(Figures::from([("p50", value)]));
            report.add(Scenario::Slow, ALL[0].name, figures(ours));
            report.add(Scenario::Slow, ALL[1].name, figures(theirs));
        }
        assert_eq!(
            report.median(Scenario::Slow, ALL[1].name, "p50"),
            Some(20.0)
        );
        assert_eq!(report.ratio(Scenario::Slow, ALL[1].name, "p50"), Some(3.0));
    }

    #[test]
    fn a_turn_that_came_to_nothing_is_told_and_not_counted() {
        let mut report = Report::default();
        report.add(Scenario::Hung, ALL[1].name, Err("no answer".to_owned()));
        assert_eq!(report.median(Scenario::Hung, ALL[1].name, "p50"), None);
        let text = report.markdown(&About::default());
        let told = format!("{}: a turn came to nothing: no answer.", ALL[1].name);
        assert!(text.contains(&told), "{text}");
    }

    #[test]
    fn a_busy_machine_is_told_of() {
        let about = |load: &str| About {
            load_before: load.to_owned(),
            cores: 2,
            ..About::default()
        };
        assert!(about("1.20 3.00 3.00").head().contains("other work"));
        assert!(!about("0.80 3.00 3.00").head().contains("other work"));
        assert!(!about("–").head().contains("other work"));
    }
}
