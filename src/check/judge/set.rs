//! The set as a whole: votes, independence, and clocks that are apart.

use std::time::Duration;

use super::{Case, proposal};
use crate::check::finding::{Finding, Severity};
use crate::check::table::short;

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    votes(case, findings);
    independence(case, findings);
    unknown(case, findings);
    apart(case, findings);
}

fn votes(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let (nodes, needed) = (case.quorum.nodes(), case.quorum.needed());
    let votes = case.nodes.iter().filter(|node| node.votes).count();
    let waiting: Vec<_> = case.nodes.iter().filter_map(|node| node.votes_in).collect();
    let waits = match waiting.iter().max() {
        Some(longest) => format!(
            "; {} more within {}: restarted lately",
            waiting.len(),
            short(*longest)
        ),
        None => String::new(),
    };
    if votes < needed {
        let measured = format!(
            "{votes} of {nodes} nodes have a vote, {needed} are needed: no lock can be had{waits}"
        );
        let remedy = match votes + waiting.len() >= needed {
            true => "wait, or mend the nodes that are named below",
            false => "mend the nodes that are named below",
        };
        findings.push(Finding::new(Severity::Critical, measured, remedy));
    } else if votes < nodes && votes == needed {
        let measured =
            format!("{votes} of {nodes} nodes have a vote, and all of them are needed{waits}");
        let remedy = "mend the nodes that are named below before another one fails";
        findings.push(Finding::new(Severity::Warning, measured, remedy));
    } else if votes < nodes && !waiting.is_empty() {
        let measured = format!("{votes} of {nodes} nodes have a vote{waits}");
        findings.push(Finding::new(Severity::Note, measured, "wait"));
    }
    if nodes == 1 {
        let measured = "one node: when it is down, no lock can be had, and nobody else vouches";
        let remedy = "use 3 or 5 independent nodes where that is too little";
        findings.push(Finding::new(Severity::Note, measured, remedy));
    } else if nodes % 2 == 0 {
        let measured = format!(
            "{nodes} nodes may lose no more of them than {} may",
            nodes - 1
        );
        let remedy = "take one away, or add one";
        findings.push(Finding::new(Severity::Note, measured, remedy));
    }
}

fn independence(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let pairs = case.nodes.iter().zip(case.twins);
    for (node, twin) in pairs {
        if let Some(other) = twin.and_then(|of| case.nodes.get(of)) {
            let measured = format!(
                "the same server as {}: together they have one vote",
                other.name
            );
            let remedy = "list each server once, by one address";
            let finding = Finding::new(Severity::Critical, measured, remedy);
            findings.push(finding.at(&node.name).about("nodes"));
        }
    }
    for node in case.nodes {
        let Some(master) = &node.follows else {
            continue;
        };
        let listed = case.nodes.iter().any(|other| &other.name == master);
        let measured = match listed {
            true => format!("a replica of {master}, which is in the list too: it has no vote"),
            false => format!("a replica of {master}, which is not in the list: it has no vote"),
        };
        let remedy = match listed {
            true => "list an independent master instead: REPLICAOF NO ONE makes one of it",
            false => "list its master, or an independent one",
        };
        let finding = Finding::new(Severity::Critical, measured, remedy);
        findings.push(finding.at(&node.name).about("nodes"));
    }
}

/// What could not be looked at, in one note for all nodes.
fn unknown(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let names = |which: &dyn Fn(usize) -> bool| {
        let nodes = case.nodes.iter().enumerate();
        let nodes = nodes.filter(|(index, node)| node.answers() && which(*index));
        let names: Vec<_> = nodes.map(|(_, node)| node.name.as_str()).collect();
        names.join(", ")
    };
    let silent = names(&|index| case.nodes[index].run_id.is_none());
    if !silent.is_empty() {
        let measured = format!(
            "INFO is not allowed on {silent}: the marker alone tells whether a node restarted, \
             and one server under two addresses counts as two"
        );
        let remedy = "allow +info, if you can";
        findings.push(Finding::new(Severity::Note, measured, remedy));
    }
    let unsure = names(&|index| !case.nodes[index].permissions_known);
    if !unsure.is_empty() {
        let measured = format!(
            "whether the user may do all that a lock needs is not known on {unsure}: ACL DRYRUN \
             is not allowed, or the server has none (before 7.0)"
        );
        let remedy = "compare its rules with those in the README, or acquire a lock";
        findings.push(Finding::new(Severity::Note, measured, remedy));
    }
}

/// Fencing tokens need clocks that agree to `max_ttl` less a second after a loss, and to
/// `max_ttl` in any case: no node stores a token that is further ahead of its own clock.
fn apart(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let Some(spread) = case.spread else { return };
    let settings = case.seen.settings;
    let (max_ttl, second) = (settings.max_ttl, Duration::from_secs(1));
    if !settings.fencing || spread <= second.min(max_ttl / 2) {
        return;
    }
    let severity = match spread {
        _ if spread.saturating_add(second) >= max_ttl => Severity::Critical,
        _ if spread > max_ttl / 2 => Severity::Warning,
        _ => Severity::Note,
    };
    let what = match severity {
        Severity::Critical => "no token can be agreed on across them",
        _ => "a set that lost all its data could give tokens that are too small for so long",
    };
    let clocks = case
        .nodes
        .iter()
        .filter_map(|node| Some((node, node.clock.as_ref()?)));
    let offset = |pair: &(&_, &crate::check::node::ClockReading)| pair.1.offset_ms;
    let by = |one: &f64, other: &f64| one.total_cmp(other);
    let last = clocks
        .clone()
        .max_by(|one, other| by(&offset(one), &offset(other)));
    let first = clocks.min_by(|one, other| by(&offset(one), &offset(other)));
    let name = |pair: Option<(&crate::check::node::NodeReport, _)>| {
        pair.map_or_else(String::new, |(node, _)| node.name.clone())
    };
    let measured = format!(
        "the clocks of {} and {} are {} apart: {what}",
        name(first),
        name(last),
        short(spread)
    );
    let remedy = "synchronise the clocks of the nodes (NTP); else raise max_ttl on every client";
    let mut finding = Finding::new(severity, measured, remedy).about("max_ttl");
    if severity > Severity::Note {
        let wanted = Duration::from_secs(2 * spread.as_secs() + 2).max(max_ttl);
        finding = finding.propose(proposal::max_ttl(settings, wanted));
    }
    findings.push(finding);
}
