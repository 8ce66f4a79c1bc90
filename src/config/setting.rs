//! The names of all settings, and the nearest one to a name that is none.

/// Every setting but `nodes`, which alone is a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Prefix,
    Ttl,
    MaxTtl,
    Wait,
    NodeTimeout,
    DriftFactor,
    DriftMargin,
    MinValidity,
    RetryDelay,
    RetryMaxDelay,
    RetryJitter,
    RetryAttempts,
    AutoExtend,
    ExtendEvery,
    MaxHold,
    CohortMaxHandoffs,
    CohortMaxTime,
    RestartGuard,
    RestartDelay,
    Fencing,
    FenceRetention,
}

/// The one setting that is a list.
pub(super) const NODES: &str = "nodes";

/// What begins the name of every variable that is ours.
pub(super) const ENV_PREFIX: &str = "QUORUMLOCK_";

/// What others call our settings. Slips of these find the setting too.
const ALSO_CALLED: [(&str, &str); 26] = [
    ("urls", NODES),
    ("servers", NODES),
    ("hosts", NODES),
    ("instances", NODES),
    ("addresses", NODES),
    ("key_prefix", "prefix"),
    ("namespace", "prefix"),
    ("lock_ttl", "ttl"),
    ("expiry", "ttl"),
    ("expire", "ttl"),
    ("lease", "ttl"),
    ("ttl_ms", "ttl"),
    ("wait_timeout", "wait"),
    ("acquire_timeout", "wait"),
    ("max_wait", "wait"),
    ("timeout", "node_timeout"),
    ("clock_drift_factor", "drift.factor"),
    ("retry_count", "retry.attempts"),
    ("retry_attempt", "retry.attempts"),
    ("retries", "retry.attempts"),
    ("max_attempts", "retry.attempts"),
    ("max_retries", "retry.attempts"),
    ("retry_interval", "retry.delay"),
    ("backoff", "retry.delay"),
    ("auto_renew", "auto_extend"),
    ("renew_every", "extend_every"),
];

impl Setting {
    /// In the order of the README's table.
    pub(super) const ALL: [Setting; 21] = [
        Setting::Prefix,
        Setting::Ttl,
        Setting::MaxTtl,
        Setting::Wait,
        Setting::NodeTimeout,
        Setting::DriftFactor,
        Setting::DriftMargin,
        Setting::MinValidity,
        Setting::RetryDelay,
        Setting::RetryMaxDelay,
        Setting::RetryJitter,
        Setting::RetryAttempts,
        Setting::AutoExtend,
        Setting::ExtendEvery,
        Setting::MaxHold,
        Setting::CohortMaxHandoffs,
        Setting::CohortMaxTime,
        Setting::RestartGuard,
        Setting::RestartDelay,
        Setting::Fencing,
        Setting::FenceRetention,
    ];

    /// The full name, as in a file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Setting::Prefix => "prefix",
            Setting::Ttl => "ttl",
            Setting::MaxTtl => "max_ttl",
            Setting::Wait => "wait",
            Setting::NodeTimeout => "node_timeout",
            Setting::DriftFactor => "drift.factor",
            Setting::DriftMargin => "drift.margin",
            Setting::MinValidity => "min_validity",
            Setting::RetryDelay => "retry.delay",
            Setting::RetryMaxDelay => "retry.max_delay",
            Setting::RetryJitter => "retry.jitter",
            Setting::RetryAttempts => "retry.attempts",
            Setting::AutoExtend => "auto_extend",
            Setting::ExtendEvery => "extend_every",
            Setting::MaxHold => "max_hold",
            Setting::CohortMaxHandoffs => "cohort.max_handoffs",
            Setting::CohortMaxTime => "cohort.max_time",
            Setting::RestartGuard => "restart_guard",
            Setting::RestartDelay => "restart_delay",
            Setting::Fencing => "fencing",
            Setting::FenceRetention => "fence_retention",
        }
    }

    /// The setting of this full name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Setting::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// The environment variable of a setting.
pub(super) fn variable(name: &str) -> String {
    format!(
        "{ENV_PREFIX}{}",
        name.replace('.', "_").to_ascii_uppercase()
    )
}

/// The full name of the setting that was most likely meant by `wrong`, a full name of no setting;
/// `None` where nothing is near.
pub(super) fn nearest(wrong: &str) -> Option<&'static str> {
    let names = || Setting::ALL.map(Setting::name).into_iter().chain([NODES]);
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    // The right key at the wrong level.
    if let Some(name) = names().find(|name| last(name) == last(wrong)) {
        return Some(name);
    }
    let wrong = flat(wrong);
    let known = names().map(|name| (name, name)).chain(ALSO_CALLED);
    near(&wrong, known.map(|(called, name)| (flat(called), name)))
}

/// Levels and spelling habits out of the way.
pub(super) fn flat(name: &str) -> String {
    name.replace(['.', '-'], "_").to_ascii_lowercase()
}

/// The candidate with the fewest slips, if more of it is right than wrong.
pub(super) fn near(
    wrong: &str,
    known: impl Iterator<Item = (String, &'static str)>,
) -> Option<&'static str> {
    // A name from a file or the environment may be of any length; no slip is longer than this.
    if wrong.len() > 64 {
        return None;
    }
    let counted = known.map(|(called, name)| (slips(wrong, &called), called.len(), name));
    let (slips, length, name) = counted.min_by_key(|(slips, ..)| *slips)?;
    (2 * slips <= length.max(wrong.len())).then_some(name)
}

/// How many letters were added, dropped, changed or swapped with their neighbour.
fn slips(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, &a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in right.iter().enumerate() {
            let mut cost = (above[j] + usize::from(a != b)).min(above[j + 1] + 1);
            cost = cost.min(row[j] + 1);
            if i > 0 && j > 0 && a == right[j - 1] && left[i - 1] == b {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_variables_are_unique() {
        let names = Setting::ALL.map(Setting::name);
        for (index, name) in names.iter().enumerate() {
            assert_eq!(Setting::named(name), Some(Setting::ALL[index]));
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1);
        }
        assert_eq!(variable("retry.max_delay"), "QUORUMLOCK_RETRY_MAX_DELAY");
    }

    #[test]
    fn every_other_name_leads_to_a_setting() {
        for (called, name) in ALSO_CALLED {
            assert!(name == NODES || Setting::named(name).is_some(), "{name}");
            assert_eq!(nearest(called), Some(name), "{called}");
        }
    }

    #[test]
    fn slips_find_what_was_meant() {
        for (wrong, meant) in [
            ("tll", Some("ttl")),
            ("retry_cout", Some("retry.attempts")),
            ("retry.dely", Some("retry.delay")),
            ("retry.ttl", Some("ttl")),
            ("delay", Some("retry.delay")),
            ("retry_max_delay", Some("retry.max_delay")),
            ("drift.max_ttl", Some("max_ttl")),
            ("node-timeout", Some("node_timeout")),
            ("Prefix", Some("prefix")),
            ("noeds", Some("nodes")),
            ("colour_of_the_sky", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong), meant, "{wrong}");
        }
        assert_eq!(nearest(&"t".repeat(100_000)), None);
    }

    #[test]
    fn slips_are_counted() {
        for (left, right, expected) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("tll", "ttl", 1),
            ("noeds", "nodes", 1),
            ("é", "e", 1),
        ] {
            assert_eq!(slips(left, right), expected, "{left} {right}");
        }
    }
}
