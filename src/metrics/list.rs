//! The list: every name, what it counts, and in which unit.

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// What is now. The clients of a process add up.
    Gauge,
    /// Many values, in buckets.
    Histogram,
}

/// What a value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Count,
    Seconds,
    Bytes,
}

/// One name, and what it means.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    /// In one sentence, for whoever scrapes it.
    pub(crate) help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    metric(name, Kind::Counter, Unit::Count, help)
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    metric(name, Kind::Gauge, Unit::Count, help)
}

const fn seconds(name: &'static str, help: &'static str) -> Metric {
    metric(name, Kind::Histogram, Unit::Seconds, help)
}

const fn metric(name: &'static str, kind: Kind, unit: Unit, help: &'static str) -> Metric {
    Metric {
        name,
        kind,
        unit,
        help,
    }
}

pub(super) const ACQUIRES: Metric = counter(
    "quorumlock_acquires_total",
    "Acquisitions that have ended, by outcome.",
);
pub(super) const ACQUIRE_WAIT: Metric = seconds(
    "quorumlock_acquire_wait_seconds",
    "How long acquisitions that were granted have waited.",
);
pub(super) const ACQUIRE_ROUNDS: Metric = metric(
    "quorumlock_acquire_rounds",
    Kind::Histogram,
    Unit::Count,
    "Rounds that an acquisition made until its answer, 0 if it was handed the lock.",
);
pub(super) const WAITERS: Metric = gauge(
    "quorumlock_waiters",
    "Acquisitions that are going on, in line or asking.",
);
pub(super) const ROUNDS: Metric = counter(
    "quorumlock_rounds_total",
    "Rounds of requests to all nodes that were decided, by outcome.",
);
pub(super) const GRANTS: Metric = counter(
    "quorumlock_grants_total",
    "Grants, by the number of nodes above the quorum that agreed.",
);
pub(super) const SECOND_TRIPS: Metric = counter(
    "quorumlock_fencing_second_trips_total",
    "Rounds that had to raise fencing counters, which takes a second round trip.",
);
pub(super) const LATE_GRANTS: Metric = counter(
    "quorumlock_late_grants_released_total",
    "Answers of nodes that granted when the round was over, and are being released.",
);
pub(super) const NODE_ROUND_TRIP: Metric = seconds(
    "quorumlock_node_round_trip_seconds",
    "From the start of a round or an extension to the node's answer.",
);
pub(super) const NODE_FAILURES: Metric = counter(
    "quorumlock_node_failures_total",
    "Requests that a node did not take or answered with an error, by kind.",
);
pub(super) const NODE_STATE: Metric = gauge(
    "quorumlock_node_state",
    "How many clients of this process see the node in this state.",
);
pub(super) const HELD_LOCKS: Metric = gauge("quorumlock_held_locks", "Locks that are held now.");
pub(super) const HOLD: Metric = seconds(
    "quorumlock_hold_seconds",
    "How long locks were held, by each holder.",
);
pub(super) const HANDOFFS: Metric = counter(
    "quorumlock_handoffs_total",
    "Locks that were handed on inside the client, without asking the nodes.",
);
pub(super) const EXTENSIONS: Metric = counter(
    "quorumlock_extensions_total",
    "Extensions that were decided, by outcome.",
);
pub(super) const EXTENSION_LAG: Metric = seconds(
    "quorumlock_extension_lag_seconds",
    "How late extensions began, after they were due.",
);
pub(super) const VALIDITY_LEFT: Metric = seconds(
    "quorumlock_extension_validity_left_seconds",
    "How much of the old validity was left when an extension had its quorum.",
);
pub(super) const LOSSES: Metric = counter(
    "quorumlock_losses_total",
    "Locks that were lost before their holder let go, by cause.",
);
pub(super) const FLUSH_BYTES: Metric = metric(
    "quorumlock_flush_bytes",
    Kind::Histogram,
    Unit::Bytes,
    "Bytes of the requests that go to a node in one piece.",
);
pub(super) const FLUSH_REQUESTS: Metric = metric(
    "quorumlock_flush_requests",
    Kind::Histogram,
    Unit::Count,
    "Requests that go to a node in one piece.",
);

/// Every metric.
pub(crate) const ALL: &[Metric] = &[
    ACQUIRES,
    ACQUIRE_WAIT,
    ACQUIRE_ROUNDS,
    WAITERS,
    ROUNDS,
    GRANTS,
    SECOND_TRIPS,
    LATE_GRANTS,
    NODE_ROUND_TRIP,
    NODE_FAILURES,
    NODE_STATE,
    HELD_LOCKS,
    HOLD,
    HANDOFFS,
    EXTENSIONS,
    EXTENSION_LAG,
    VALIDITY_LEFT,
    LOSSES,
    FLUSH_BYTES,
    FLUSH_REQUESTS,
];
