//! Whether the times in the settings fit the nodes, the network and the clocks.

use std::time::Duration;

use super::{Case, proposal};
use crate::check::finding::{Finding, Severity};
use crate::check::node::ClockReading;
use crate::check::table::short;
use crate::config::show;
use crate::quorum::GuardMode;

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    node_timeout(case, findings);
    ttl(case, findings);
    rates(case, findings);
    margin(case, findings);
    restart_delay(case, findings);
}

/// A round takes one trip, and two where counters differ or a key is held: they must fit into
/// `node_timeout`. Proposed are four trips, as reserve for a worse day than today.
const TRIPS_NEEDED: u32 = 2;
const TRIPS_PROPOSED: u32 = 4;

/// The p99 of each node that answers, the shortest first, with its name.
fn trips<'a>(case: &Case<'a>) -> Vec<(Duration, &'a str)> {
    let nodes = case.nodes.iter();
    let mut trips: Vec<_> = nodes
        .filter_map(|node| Some((node.p99?, node.name.as_str())))
        .collect();
    trips.sort_unstable();
    trips
}

/// What a round takes: until the node answers that completes a quorum.
fn round(case: &Case<'_>) -> Option<Duration> {
    let trips = trips(case);
    let deciding = trips.get(case.quorum.needed() - 1)?;
    Some(deciding.0.saturating_mul(TRIPS_NEEDED))
}

fn node_timeout(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let settings = case.seen.settings;
    let Ok(timing) = settings.timing(None) else {
        return;
    };
    let timeout = timing.node_timeout();
    let all = trips(case);
    let slow = all
        .iter()
        .filter(|(p99, _)| p99.saturating_mul(TRIPS_NEEDED) > timeout);
    let slow: Vec<_> = slow.collect();
    let Some((slowest, name)) = slow.last() else {
        return;
    };
    let quick = all.len() - slow.len();
    let severity = match quick < case.quorum.needed() {
        true => Severity::Critical,
        false => Severity::Warning,
    };
    let who = match slow.len() {
        1 => (*name).to_owned(),
        more => format!("{more} nodes, {name} the slowest of them,"),
    };
    let measured = format!(
        "node_timeout is {}, and two round trips to {who} take up to {}: late answers count as none",
        show(timeout),
        short(slowest.saturating_mul(TRIPS_NEEDED))
    );
    let remedy = "raise it, or bring the nodes nearer";
    let wanted = rounded(slowest.saturating_mul(TRIPS_PROPOSED));
    let proposals = proposal::node_timeout(settings, wanted);
    let finding = Finding::new(severity, measured, remedy).about("node_timeout");
    findings.push(finding.propose(proposals));
}

/// Up to the next ten milliseconds.
fn rounded(span: Duration) -> Duration {
    let tens = span.as_millis() / 10 + 1;
    Duration::from_millis(u64::try_from(tens * 10).unwrap_or(u64::MAX))
}

/// Half of a TTL at least should be left to work in after a round that was as slow as any.
fn ttl(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let settings = case.seen.settings;
    let Some(round) = round(case) else { return };
    let spent = settings.drift.allowance(settings.ttl).saturating_add(round);
    let left = settings.ttl.saturating_sub(spent);
    if left >= settings.min_validity && left >= settings.ttl / 2 {
        return;
    }
    let severity = match left.is_zero() || left < settings.min_validity {
        true => Severity::Critical,
        false => Severity::Warning,
    };
    let measured = format!(
        "of a ttl of {} a round of {} and the drift allowance leave {}",
        show(settings.ttl),
        short(round),
        short(left)
    );
    let wanted = settings.min_validity.saturating_mul(2);
    let wanted = wanted.max(round.saturating_mul(proposal::TIMEOUTS_A_TTL));
    let finding = Finding::new(severity, measured, "raise it").about("ttl");
    findings.push(finding.propose(proposal::ttl(settings, wanted)));
}

/// The rates that are certain: how far from ours a clock runs at least, in millionths.
fn rates<'a>(case: &Case<'a>, findings: &mut Vec<Finding>) {
    let settings = case.seen.settings;
    let (factor, margin) = settings.drift_parts();
    let allowed = factor * 1e6;
    let clocks = case.nodes.iter().filter_map(|node| {
        let clock = node.clock.as_ref()?;
        let (rate, doubt) = (clock.rate_ppm?, clock.rate_doubt_ppm?);
        Some((node, rate, doubt))
    });
    let mut unsure = Vec::new();
    for (node, rate, doubt) in clocks {
        let set = node
            .clock
            .as_ref()
            .is_some_and(|clock| was_set(clock, margin));
        if rate.abs() - doubt > allowed && !set {
            let way = if rate > 0.0 { "faster" } else { "slower" };
            let measured = format!(
                "its clock runs {:.1} % {way} than this machine's (± {:.1} %), and drift.factor \
                 allows for {} %",
                rate.abs() / 1e4,
                doubt / 1e4,
                factor * 100.0
            );
            let remedy = "mend the clock (chrony: maxslewrate), or raise drift.factor on every \
                          client";
            // Twice what was seen, in whole percents.
            let wanted = (rate.abs() / 1e4 * 2.0).ceil() / 100.0;
            let finding = Finding::new(Severity::Critical, measured, remedy);
            let finding = finding.at(&node.name).about("drift.factor");
            findings.push(finding.propose(proposal::drift(settings, wanted, margin)));
        } else if doubt > allowed {
            unsure.push(node.name.as_str());
        }
    }
    if !unsure.is_empty() {
        let measured = format!(
            "round trips to {} are too long to tell in a second whether their clocks run within \
             drift.factor",
            unsure.join(", ")
        );
        let remedy = "check from a machine that is nearer to them";
        findings.push(Finding::new(Severity::Note, measured, remedy).about("drift.factor"));
    }
}

/// Whether a clock was set while it was watched, rather than running at a wrong rate, which shows
/// as small steps all along: one step makes up most of the way that the clock has gone wrong.
fn was_set(clock: &ClockReading, margin: Duration) -> bool {
    // In seconds, of the one that the probe takes.
    let way = clock.rate_ppm.unwrap_or(0.0).abs() / 1e6;
    clock.stepped > margin && clock.stepped.as_secs_f64() * 2.0 >= way
}

/// Nodes let keys run out by whole milliseconds, and a clock may be set by a little at a time.
fn margin(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let settings = case.seen.settings;
    let (factor, margin) = settings.drift_parts();
    let least = Duration::from_millis(2);
    if margin < least {
        let measured = format!(
            "drift.margin is {}: the nodes round expiry to whole milliseconds",
            show(margin)
        );
        let finding = Finding::new(Severity::Warning, measured, "raise it");
        let proposals = proposal::drift(settings, factor, least);
        findings.push(finding.about("drift.margin").propose(proposals));
    }
    for node in case.nodes {
        let Some(clock) = &node.clock else { continue };
        if !was_set(clock, margin) {
            continue;
        }
        let measured = format!(
            "its clock was set by {} during the probe, and drift.margin allows for {}",
            short(clock.stepped),
            show(margin)
        );
        let remedy = "let the clock be slewed, not set (chrony: makestep at the start only)";
        let finding = Finding::new(Severity::Critical, measured, remedy);
        let mut finding = finding.at(&node.name).about("drift.margin");
        // No allowance is worth having for a clock that jumps by more.
        if clock.stepped < Duration::from_millis(100) {
            let wanted = Duration::from_millis(2 * clock.stepped.as_millis() as u64 + 2);
            finding = finding.propose(proposal::drift(settings, factor, wanted));
        }
        findings.push(finding);
    }
}

/// A key outlives its TTL on a slow clock, so the guard has to wait for that long.
fn restart_delay(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let settings = case.seen.settings;
    if settings.guard_mode() == GuardMode::Off {
        return;
    }
    let clocks = case.nodes.iter().filter_map(|node| node.clock.as_ref());
    let slow = clocks.filter_map(|clock| Some(-(clock.rate_ppm? + clock.rate_doubt_ppm?) / 1e6));
    let slowest = slow.fold(settings.drift_parts().0, f64::max);
    let least = proposal::forgotten_within(settings.max_ttl, slowest);
    if settings.restart_delay >= least {
        return;
    }
    let wanted = proposal::restart_delay(settings.max_ttl, slowest);
    let measured = format!(
        "restart_delay is {}, and by the slowest clock a key of max_ttl may be needed for {}",
        show(settings.restart_delay),
        short(least)
    );
    let finding = Finding::new(Severity::Critical, measured, "raise it").about("restart_delay");
    findings.push(finding.propose(vec![("restart_delay", show(wanted))]));
}
