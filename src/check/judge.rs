//! From what was measured to what an operator should know. Pure: it asks nobody.
//!
//! ```text
//!   surveys ─► node reports ─► nodes.rs   what is wrong with one node
//!                           ─► set.rs     votes, independence, clocks apart
//!                           ─► timing.rs  settings that do not fit, with ones that do
//! ```

use std::cmp::Reverse;
use std::time::Duration;

use super::clocks::{self, Clocks};
use super::finding::Finding;
use super::node::{ClockReading, NodeReport};
use super::report::Report;
use crate::clock::Instant;
use crate::config::{Settings, show};
use crate::node::survey::{Marker, Role, Survey};
use crate::quorum::{GuardMode, Quorum, Reading, Roster, Standing};
use crate::status::{NodeState, NodeStatus};

mod nodes;
mod proposal;
mod set;
mod timing;

/// All that a judgement stands on.
pub(super) struct Seen<'a> {
    pub(super) settings: &'a Settings,
    pub(super) names: &'a [String],
    pub(super) surveys: &'a [Survey],
    pub(super) statuses: &'a [NodeStatus],
    pub(super) now: Instant,
    /// This machine's wall clock at a moment of its boot-time clock.
    pub(super) wall: Option<(Instant, Duration)>,
}

/// What the judges of one aspect look at, beside the reports of the nodes.
struct Case<'a> {
    seen: &'a Seen<'a>,
    nodes: &'a [NodeReport],
    /// For each node the earlier one that is the same server.
    twins: &'a [Option<usize>],
    quorum: Quorum,
    /// How far the clocks of the nodes are apart, at least.
    spread: Option<Duration>,
}

/// Judges what was seen.
pub(super) fn judge(seen: &Seen<'_>) -> Report {
    let quorum = Quorum::of(seen.names.len());
    let standings = standings(seen, quorum);
    let clocks: Vec<_> = seen
        .surveys
        .iter()
        .map(|survey| clocks::compare(&survey.samples))
        .collect();
    let base = base(seen, &clocks);
    let nodes: Vec<_> = (0..seen.names.len())
        .map(|index| node(seen, index, standings[index], clocks[index], base))
        .collect();
    let twin = |standing: &Standing| match standing {
        Standing::Twin { of } => Some(*of),
        _ => None,
    };
    let twins: Vec<_> = standings.iter().map(twin).collect();
    let case = Case {
        seen,
        nodes: &nodes,
        twins: &twins,
        quorum,
        spread: spread(&clocks),
    };
    let mut findings = Vec::new();
    set::judge(&case, &mut findings);
    nodes::judge(&case, &mut findings);
    timing::judge(&case, &mut findings);
    findings.sort_by_key(|finding: &Finding| Reverse(finding.severity));
    let votes = nodes.iter().filter(|node| node.votes).count();
    let spread = case.spread;
    let note = super::finding::Severity::Note;
    Report {
        format: 1,
        good: findings.iter().all(|finding| finding.severity == note),
        quorum: quorum.needed(),
        votes,
        may_fail: votes.saturating_sub(quorum.needed()),
        clock_spread: spread,
        settings: judged(seen.settings),
        nodes,
        findings,
    }
}

/// Whose vote would count, by the rules of a client that met all nodes now.
fn standings(seen: &Seen<'_>, quorum: Quorum) -> Vec<Standing> {
    let settings = seen.settings;
    let mut roster = Roster::new(quorum, settings.guard_mode(), settings.restart_delay);
    for (index, survey) in seen.surveys.iter().enumerate() {
        let Some(marker) = survey.marker else {
            continue;
        };
        let node_time = survey.samples.iter().find_map(|sample| sample.node_time);
        let millis = node_time.map_or(0, |time| time.as_millis());
        let (marker, age) = match marker {
            // A client would write it now.
            Marker::Absent => (0, 0),
            Marker::Since(since) => (since, millis.saturating_sub(since.into())),
        };
        let reading = Reading {
            run_id: survey.facts.run_id.clone(),
            uptime: survey.facts.uptime,
            marker,
            marker_age: Duration::from_millis(age.try_into().unwrap_or(u64::MAX)),
        };
        roster.read(index, reading, seen.now);
    }
    let all = 0..quorum.nodes();
    all.map(|index| roster.standing(index, seen.now)).collect()
}

/// What is taken off each offset: our wall clock, or else the first node's.
fn base(seen: &Seen<'_>, clocks: &[Option<Clocks>]) -> i128 {
    let middle = |clocks: &Clocks| (clocks.offset.0 + clocks.offset.1) / 2;
    match seen.wall {
        Some((at, wall)) => {
            i128::try_from(wall.as_nanos()).unwrap_or(0) - i128::from(at.as_nanos())
        }
        None => clocks.iter().flatten().map(middle).next().unwrap_or(0),
    }
}

fn spread(clocks: &[Option<Clocks>]) -> Option<Duration> {
    let offsets: Vec<_> = clocks
        .iter()
        .flatten()
        .map(|clocks| clocks.offset)
        .collect();
    let last_begin = offsets.iter().map(|offset| offset.0).max()?;
    let first_end = offsets.iter().map(|offset| offset.1).min()?;
    let apart = u64::try_from((last_begin - first_end).max(0)).unwrap_or(u64::MAX);
    (offsets.len() > 1).then(|| Duration::from_nanos(apart))
}

fn node(
    seen: &Seen<'_>,
    index: usize,
    standing: Standing,
    clocks: Option<Clocks>,
    base: i128,
) -> NodeReport {
    let survey = &seen.surveys[index];
    let facts = &survey.facts;
    let state = seen.statuses.get(index);
    let state = state.map_or(NodeState::Idle, |status| status.state.clone());
    let guard = seen.settings.guard_mode();
    // The client may have seen the node restart, which the node itself does not tell.
    let left = match (&state, standing) {
        (NodeState::Restarting { left }, _) => Some(*left),
        (_, Standing::Young { until }) => Some(until.since(seen.now)),
        _ => None,
    };
    let left = left.filter(|_| guard != GuardMode::Off);
    let replica = matches!(facts.role, Some(Role::Replica { .. }));
    let fit = survey.fault.is_none() && !replica && survey.missing.is_empty();
    let stands = !matches!(standing, Standing::Twin { .. } | Standing::Unread);
    let mut trips: Vec<_> = survey
        .samples
        .iter()
        .map(|s| s.received.since(s.sent))
        .collect();
    trips.sort_unstable();
    NodeReport {
        name: seen.names[index].clone(),
        fault: survey.fault.clone(),
        state,
        votes: fit && stands && left.is_none(),
        votes_in: left.filter(|_| fit && stands),
        product: facts.product.clone(),
        version: facts.version.clone(),
        role: facts.role.as_ref().map(|role| match role {
            Role::Master => "master".to_owned(),
            Role::Replica { .. } => "replica".to_owned(),
            Role::Other(role) => role.clone(),
        }),
        follows: follows(seen, index),
        run_id: facts.run_id.clone(),
        uptime: facts.uptime,
        aof: facts.aof,
        rdb: facts.rdb,
        max_memory: facts.max_memory,
        eviction: facts.eviction.clone(),
        missing: survey.missing.clone(),
        permissions_known: !survey.unsure,
        round_trips: trips.len(),
        p50: rank(&trips, 50),
        p99: rank(&trips, 99),
        clock: clocks.map(|clocks| reading(clocks, survey, base, seen.settings)),
    }
}

/// The master of a replica: by its replication id, which both share, else by its address.
fn follows(seen: &Seen<'_>, index: usize) -> Option<String> {
    let facts = &seen.surveys[index].facts;
    let Some(Role::Replica { of }) = &facts.role else {
        return None;
    };
    let same = |other: &Survey| {
        other.facts.role == Some(Role::Master)
            && facts.replication_id.is_some()
            && other.facts.replication_id == facts.replication_id
    };
    let listed = seen.surveys.iter().position(same);
    let named = seen.names.iter().position(|name| name == of);
    let master = listed.or(named).and_then(|master| seen.names.get(master));
    Some(master.unwrap_or(of).clone())
}

fn reading(clocks: Clocks, survey: &Survey, base: i128, settings: &Settings) -> ClockReading {
    let (least, most) = clocks.offset;
    // To what can be told apart: microseconds, and tenths of a millionth. Doubts are rounded up.
    let micros = |nanos: i128| nanos as f64 / 1e3;
    ClockReading {
        offset_ms: micros((least + most) / 2 - base).round() / 1e3,
        offset_doubt_ms: micros((most - least) / 2).ceil() / 1e3,
        rate_ppm: clocks.rate.map(|rate| (rate.0 * 10.0).round() / 10.0),
        rate_doubt_ppm: clocks.rate.map(|rate| (rate.1 * 10.0).ceil() / 10.0),
        stepped: clocks::step(&survey.samples, settings.drift_parts().0),
    }
}

/// The smallest sample that `percent` % do not exceed.
fn rank(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The settings that are judged, as in a TOML file.
fn judged(settings: &Settings) -> Vec<(&'static str, String)> {
    let (factor, margin) = settings.drift_parts();
    let timing = settings.timing(None).ok();
    let node_timeout = timing.map(|timing| timing.node_timeout());
    vec![
        ("ttl", show(settings.ttl)),
        ("max_ttl", show(settings.max_ttl)),
        ("node_timeout", show(node_timeout.unwrap_or_default())),
        ("drift.factor", factor.to_string()),
        ("drift.margin", show(margin)),
        ("min_validity", show(settings.min_validity)),
        ("restart_delay", show(settings.restart_delay)),
        (
            "restart_guard",
            match settings.guard_mode() {
                GuardMode::Auto => "auto",
                GuardMode::Strict => "strict",
                GuardMode::Off => "off",
            }
            .to_owned(),
        ),
        ("fencing", settings.fencing.to_string()),
    ]
}

#[cfg(test)]
mod tests;
