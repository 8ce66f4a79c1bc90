//! What is done, and which figures of it are shown.

use crate::contenders::{Contender, Language, PLAIN};

/// What is done.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Scenario {
    /// Pairs on fresh keys, by so many tasks at once.
    Distinct(usize),
    /// One key, wanted by eight tasks of one process, which keep it for so many microseconds.
    Tasks(u64),
    /// One key, wanted by one task in each of eight processes.
    Processes,
    /// The same, with MONITOR on a node, which counts what clients send and makes it slower.
    Monitored,
    /// One task, one node 20 ms late.
    Slow,
    /// One task, one node stopped.
    Hung,
}

pub const SCENARIOS: [Scenario; 9] = [
    Scenario::Distinct(1),
    Scenario::Distinct(64),
    Scenario::Distinct(1_000),
    Scenario::Tasks(1_000),
    Scenario::Tasks(0),
    Scenario::Processes,
    Scenario::Monitored,
    Scenario::Slow,
    Scenario::Hung,
];

/// A column: the key of its figure, its title, decimals, and whether the ratio stands behind it.
pub type Column = (&'static str, &'static str, usize, bool);

const PAIRS: &[Column] = &[
    ("p50", "p50 µs", 0, true),
    ("p99", "p99 µs", 0, true),
    ("rate", "pairs/s", 0, true),
    ("failed", "failed", 0, false),
];

const TASKS: &[Column] = &[
    ("hand_overs", "hand-overs/s", 1, true),
    ("free", "lies free %", 0, false),
    ("min", "per task min", 0, false),
    ("max", "max", 0, false),
    ("longest", "longest wait ms", 0, true),
    ("failed", "refused", 0, false),
    ("overlaps", "two holders", 0, false),
];

/// Where nobody does anything, the lock always lies free.
const EMPTY: &[Column] = &[
    ("hand_overs", "hand-overs/s", 1, true),
    ("holds", "acquisitions/s", 0, true),
    ("min", "per task min", 0, false),
    ("max", "max", 0, false),
    ("longest", "longest wait ms", 0, true),
    ("failed", "refused", 0, false),
];

const PROCESSES: &[Column] = &[
    ("hand_overs", "hand-overs/s", 1, true),
    ("gap", "gap p50 µs", 0, true),
    ("min", "per process min", 0, false),
    ("max", "max", 0, false),
    ("longest", "longest wait ms", 0, true),
    ("calls", "calls per hand-over and node", 1, true),
    ("failed", "refused", 0, false),
    ("overlaps", "two holders", 0, false),
];

const MONITORED: &[Column] = &[
    ("sent", "sent per hand-over and node", 1, true),
    ("sent_hold", "sent per acquisition and node", 1, true),
];

const BAD_NODE: &[Column] = &[
    ("healthy50", "healthy p50 µs", 0, false),
    ("p50", "p50 µs", 0, false),
    ("times50", "p50 by healthy", 2, false),
    ("times99", "p99 by healthy", 2, false),
    ("pairs", "pairs seen", 0, false),
    ("failed", "failed", 0, false),
];

impl Scenario {
    /// For keys and messages.
    pub fn name(self) -> String {
        match self {
            Self::Distinct(tasks) => format!("distinct-{tasks}"),
            Self::Tasks(section_us) => format!("tasks-{section_us}us"),
            Self::Processes => "processes".to_owned(),
            Self::Monitored => "monitored".to_owned(),
            Self::Slow => "slow".to_owned(),
            Self::Hung => "hung".to_owned(),
        }
    }

    pub fn title(self) -> String {
        match self {
            Self::Distinct(1) => "Acquire and release, fresh keys, 1 task".to_owned(),
            Self::Distinct(tasks) => format!("Acquire and release, fresh keys, {tasks} tasks"),
            Self::Tasks(0) => "One key, 8 tasks in one process, empty critical section".to_owned(),
            Self::Tasks(_) => "One key, 8 tasks in one process, 1 ms critical section".to_owned(),
            Self::Processes => {
                "One key, 8 processes with a task each, 1 ms critical section".to_owned()
            }
            Self::Monitored => "Commands that clients send for that".to_owned(),
            Self::Slow => "One of five nodes 20 ms late, 1 task, fresh keys".to_owned(),
            Self::Hung => "One of five nodes hung, 1 task, fresh keys".to_owned(),
        }
    }

    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Distinct(_) => PAIRS,
            Self::Tasks(0) => EMPTY,
            Self::Tasks(_) => TASKS,
            Self::Processes => PROCESSES,
            Self::Monitored => MONITORED,
            Self::Slow | Self::Hung => BAD_NODE,
        }
    }

    /// Whether its figures depend on how busy the machine is.
    pub fn is_timed(self) -> bool {
        self != Self::Monitored
    }

    /// A thousand tasks are asked of the Rust libraries only. Tokens make no difference to waiting.
    pub fn admits(self, contender: &Contender) -> bool {
        match self {
            Self::Distinct(1_000) => contender.language == Language::Rust,
            Self::Distinct(_) => true,
            _ => contender.name != PLAIN,
        }
    }
}
