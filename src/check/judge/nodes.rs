//! What is wrong with one node.

use super::Case;
use crate::check::finding::{Finding, Severity};
use crate::check::node::NodeReport;
use crate::node::{Fault, FaultKind};
use crate::quorum::GuardMode;

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    for node in case.nodes {
        let name = node.name.as_str();
        let one = [
            fault(node),
            eviction(node),
            permissions(node),
            cluster(case, node),
        ];
        findings.extend(one.into_iter().flatten().map(|finding| finding.at(name)));
    }
    forgetful(case, findings);
}

/// A node that cannot be used. That a majority is left is another judge's business.
fn fault(node: &NodeReport) -> Option<Finding> {
    let fault = node.fault.as_ref()?;
    let severity = match fault.kind() {
        FaultKind::Permission => return None,
        _ => Severity::Warning,
    };
    Some(Finding::new(severity, fault.to_string(), remedy(fault)))
}

fn remedy(fault: &Fault) -> &'static str {
    match fault.kind() {
        FaultKind::Timeout => "see whether the server runs, and whether a firewall drops packets",
        FaultKind::ConnectionRefused => "start the server, or correct the address in nodes",
        FaultKind::Unresolved => "correct the host name in nodes, or the name service",
        FaultKind::Tls => "see that the port speaks TLS, and that ca_file holds its authority",
        FaultKind::Auth => "correct the user name or the password of this node",
        FaultKind::Loading => "wait until it has loaded its data, or its master is back",
        FaultKind::NotALock => "another program uses these keys: choose a prefix of your own",
        FaultKind::WrongSlot => "list independent servers, not the nodes of a Redis Cluster",
        FaultKind::Protocol => "see that the address is that of a Redis or Valkey server",
        _ => "look at the server and at its log",
    }
}

/// A policy other than noeviction drops locks that are held.
fn eviction(node: &NodeReport) -> Option<Finding> {
    let policy = node
        .eviction
        .as_deref()
        .filter(|&policy| policy != "noeviction")?;
    let remedy = "set maxmemory-policy to noeviction on the server";
    match node.max_memory {
        Some(0) => {
            let measured = format!("maxmemory-policy is {policy}, without a maxmemory to act at");
            Some(Finding::new(Severity::Note, measured, remedy))
        }
        _ => {
            let measured = format!(
                "maxmemory-policy is {policy}: locks that are held are dropped \
                 when memory is short"
            );
            Some(Finding::new(Severity::Critical, measured, remedy))
        }
    }
}

fn permissions(node: &NodeReport) -> Option<Finding> {
    if node.missing.is_empty() {
        return None;
    }
    let rules = node.missing.join(" ");
    let measured = format!("the user lacks permissions that a lock needs: {rules}");
    let remedy = format!("ACL SETUSER the user of this node: {rules}");
    Some(Finding::new(Severity::Critical, measured, remedy))
}

fn cluster(case: &Case<'_>, node: &NodeReport) -> Option<Finding> {
    let index = case
        .nodes
        .iter()
        .position(|other| other.name == node.name)?;
    if case.seen.surveys[index].facts.cluster != Some(true) {
        return None;
    }
    let measured = "part of a Redis Cluster: it serves only the locks whose slot it owns";
    let remedy = "list independent servers, with cluster-enabled no";
    Some(Finding::new(Severity::Warning, measured, remedy))
}

/// Without the guard, only an append-only file that is written out at each write remembers all.
fn forgetful(case: &Case<'_>, findings: &mut Vec<Finding>) {
    if case.seen.settings.guard_mode() != GuardMode::Off {
        return;
    }
    for (node, survey) in case.nodes.iter().zip(case.seen.surveys) {
        let always = survey
            .facts
            .fsync
            .as_deref()
            .is_none_or(|fsync| fsync == "always");
        if node.aof == Some(false) || (node.aof == Some(true) && !always) {
            let measured = "restart_guard is off, and a restart of this node can forget a lock";
            let remedy = "set restart_guard to auto, or appendonly yes with appendfsync always on \
                          the server";
            let finding = Finding::new(Severity::Critical, measured, remedy);
            let value = vec![("restart_guard", "auto".to_owned())];
            findings.push(finding.at(&node.name).about("restart_guard").propose(value));
        }
    }
}
