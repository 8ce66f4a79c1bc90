//! What an operator watches, by the [`metrics`](https://docs.rs/metrics) facade: feature `metrics`.
//!
//! The library counts; whatever recorder the program has installed collects: for Prometheus
//! `metrics-exporter-prometheus`, as `examples/prometheus.rs` shows. Without a recorder nothing is
//! counted, and it costs next to nothing.
//!
//! **Install the recorder before the first lock is asked for.** A client finds its counters once,
//! when its thread starts, since to look them up each time would cost more than all else here.
//! One that has started without a recorder counts nothing to its end. A recorder of one thread
//! (`metrics::with_local_recorder`) hears nothing: the client counts on threads of its own.
//!
//! Call [`describe`] once after the recorder is there, so that it knows units and help.
//!
//! | metric | kind | labels | what it counts |
//! |---|---|---|---|
//! | `quorumlock_acquires_total` | counter | `outcome`: granted, contended, unavailable, rejected, too_slow, cancelled, closed | acquisitions that have ended |
//! | `quorumlock_acquire_wait_seconds` | histogram | | how long the granted ones have waited |
//! | `quorumlock_acquire_rounds` | histogram | | rounds until the answer; 0 where the lock was handed on inside the client |
//! | `quorumlock_waiters` | gauge | | acquisitions that are going on, in line or asking |
//! | `quorumlock_rounds_total` | counter | `outcome`: granted, contended, unavailable, rejected, too_slow | rounds that were decided |
//! | `quorumlock_grants_total` | counter | `margin`: 0, 1, … | grants, by how many nodes above the quorum agreed |
//! | `quorumlock_fencing_second_trips_total` | counter | | rounds that had to bring fencing counters together, by a second trip |
//! | `quorumlock_late_grants_released_total` | counter | | nodes that granted when their round was over; the release is behind it already |
//! | `quorumlock_node_round_trip_seconds` | histogram | `node` | from the start of a round or an extension to the node's answer: what `node_timeout` is compared with |
//! | `quorumlock_node_failures_total` | counter | `node`, `kind` | requests that the node did not take, or answered with an error |
//! | `quorumlock_node_state` | gauge | `node`, `state`: connecting, ready, suspect, restarting, excluded, down | how many clients of the process see the node so |
//! | `quorumlock_held_locks` | gauge | | locks that are held |
//! | `quorumlock_hold_seconds` | histogram | | how long a holder had its lock, when it has let go or lost it |
//! | `quorumlock_handoffs_total` | counter | | locks that were handed on inside the client |
//! | `quorumlock_extensions_total` | counter | `outcome`: renewed, unconfirmed, lost | extensions that were decided |
//! | `quorumlock_extension_lag_seconds` | histogram | | how late an extension began after it was due |
//! | `quorumlock_extension_validity_left_seconds` | histogram | | what was left of the old validity when an extension had its quorum: how near a loss was |
//! | `quorumlock_losses_total` | counter | `cause`: expired, deleted, taken, frozen, max_hold | locks that were lost before their holder let go |
//! | `quorumlock_flush_bytes` | histogram | | bytes that go to a node in one piece |
//! | `quorumlock_flush_requests` | histogram | | requests that go to a node in one piece |
//!
//! The margin of a grant is counted when its last node has answered, or has lost its connection:
//! the decision falls before, at the quorum-th grant. An attached lease is no acquisition, but its
//! round is a round. A kind of failure appears with the first one; all other series are there
//! from the start, at zero. Node states are as fresh as the last thing that the client did.
//!
//! `node` is the address as the settings name it, without a secret. No label holds the name of a
//! resource or an owner: their number has no bound.
//!
//! ```
//! # #[cfg(feature = "test-util")] {
//! // Before the first lock: metrics_exporter_prometheus::PrometheusBuilder::new().install()?
//! quorumlock::metrics::describe();
//! assert!(quorumlock::metrics::names().any(|name| name == "quorumlock_losses_total"));
//! # }
//! ```

// Without the feature, values come here and end here.
#![cfg_attr(not(feature = "metrics"), allow(dead_code))]

mod groups;
mod list;
mod meter;

pub(crate) use groups::{
    Ended, Extended, Extending, Flush, Holding, Margin, Node, Queueing, Rounds,
};

/// Whether anything is counted.
pub(crate) const ON: bool = cfg!(feature = "metrics");

/// Tells the recorder the unit and the meaning of each metric.
#[cfg(feature = "metrics")]
pub fn describe() {
    use self::list::{Kind, Unit};

    for metric in list::ALL {
        let unit = match metric.unit {
            Unit::Count => ::metrics::Unit::Count,
            Unit::Seconds => ::metrics::Unit::Seconds,
            Unit::Bytes => ::metrics::Unit::Bytes,
        };
        match metric.kind {
            Kind::Counter => ::metrics::describe_counter!(metric.name, unit, metric.help),
            Kind::Gauge => ::metrics::describe_gauge!(metric.name, unit, metric.help),
            Kind::Histogram => ::metrics::describe_histogram!(metric.name, unit, metric.help),
        }
    }
}

/// The name of every metric, in the order of the table above.
#[cfg(feature = "metrics")]
pub fn names() -> impl Iterator<Item = &'static str> {
    list::ALL.iter().map(|metric| metric.name)
}
