//! Statuses, listings and forced releases as an operator reads them: at most 100 columns.

use std::fmt;
use std::time::Duration;

use super::force::ForcedRelease;
use super::list::Listing;
use super::owner::OwnerId;
use super::status::Status;
use super::verdict::{KeyState, LockState, NodeKey};
use crate::error::Printable;
use crate::text::{cut, tail};

/// The widest line.
const WIDTH: usize = 100;

/// The longest name of a node that is shown whole; of a longer one the end, where the port is.
const NODE: usize = 40;

/// The longest resource in a head, and in a listing.
const NAME: usize = 44;
const LISTED: usize = 48;

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, needed) = (self.nodes.len(), self.quorum.needed());
        writeln!(
            f,
            "lock {}: {}",
            resource(&self.resource, NAME),
            word(&self.state)
        )?;
        let quorum = format!(
            "quorum {needed} of {all} nodes, node list {}",
            self.fingerprint
        );
        match &self.state {
            LockState::Held { owner, nodes, left } => {
                let (left, nodes) = (remaining(*left), several(*nodes, "node"));
                writeln!(f, "by {owner}… on {nodes}, {left} unless extended")?;
                if let Some(label) = &self.label {
                    writeln!(f, "{}", cut(&plain(label), WIDTH))?;
                }
            }
            LockState::Free => writeln!(f, "nobody holds it")?,
            LockState::Split => writeln!(f, "nobody has a quorum, and no quorum is free")?,
            LockState::Unknown => writeln!(f, "too few nodes answered to tell")?,
        }
        match self.token {
            Some(token) => writeln!(f, "{quorum}, fencing counter {token}")?,
            None => writeln!(f, "{quorum}")?,
        }
        writeln!(f)?;
        nodes(f, &self.nodes, false)
    }
}

impl fmt::Display for ForcedRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = resource(&self.resource, NAME);
        writeln!(f, "lock {name}: {}", self.summary())?;
        for (owner, count) in self.owners.iter().take(self.nodes.len()) {
            let held = match *count >= self.needed() {
                true => "a quorum: it held the lock",
                false => "no quorum",
            };
            let nodes = several(*count, "node");
            writeln!(f, "taken from {owner}… on {nodes}, {held}")?;
        }
        writeln!(f)?;
        nodes(f, &self.nodes, true)
    }
}

impl ForcedRelease {
    fn summary(&self) -> String {
        let failed = |node: &&NodeKey| matches!(node.state, KeyState::Failed(_));
        let silent = self.nodes.iter().filter(failed).count();
        let (deleted, all) = (self.deleted(), self.nodes.len());
        format!(
            "deleted on {deleted} of {all} nodes (quorum {}), {silent} failed",
            self.needed()
        )
    }

    /// The text of an error.
    pub(super) fn unconfirmed(&self) -> String {
        let name = resource(&self.resource, NAME);
        let mut text = format!("lock {name} may still be held: {}", self.summary());
        let mut before = " (";
        for node in &self.nodes {
            if let KeyState::Failed(fault) = &node.state {
                text.push_str(&format!("{before}{}: {fault}", node.node));
                before = "; ";
            }
        }
        if before != " (" {
            text.push(')');
        }
        text
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let under = match self.prefix.is_empty() {
            true => String::new(),
            false => format!(" under {}", resource(&self.prefix, 30)),
        };
        let (all, held) = (several(self.locks.len(), "lock"), self.held().count());
        let (count, needed) = (self.nodes.len(), self.needed());
        writeln!(
            f,
            "{all}{under}, {held} held by quorum ({needed} of {count} nodes)"
        )?;
        if !self.complete {
            writeln!(
                f,
                "INCOMPLETE: nodes failed, or a limit was reached; there may be more"
            )?;
        }
        writeln!(f, "node list {}", self.fingerprint)?;
        for (node, fault) in self.faults() {
            writeln!(
                f,
                "{}",
                cut(&format!("{}: {fault}", tail(node, NODE)), WIDTH)
            )?;
        }
        if self.locks.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        let head = ["resource", "state", "nodes", "left", "owner", "label"];
        let labelled = self.locks.iter().any(|lock| lock.label.is_some());
        let label = if labelled { "label" } else { "" };
        let mut rows =
            vec![[head[0], head[1], head[2], head[3], head[4], label].map(str::to_owned)];
        rows.extend(self.locks.iter().map(|lock| {
            let left = match lock.state {
                LockState::Held { left, .. } => left.map_or("for ever".into(), short),
                _ => "–".to_owned(),
            };
            let owner = lock.owner().map_or("–".to_owned(), abbreviated);
            [
                resource(&lock.resource, LISTED),
                word(&lock.state).to_owned(),
                format!("{}/{count}", lock.copies),
                left,
                owner,
                lock.label.as_deref().map(plain).unwrap_or_default(),
            ]
        }));
        table(f, &rows)
    }
}

fn nodes(f: &mut fmt::Formatter<'_>, nodes: &[NodeKey], before: bool) -> fmt::Result {
    let what = if before { "key before" } else { "key" };
    let mut rows = vec![["node", what].map(str::to_owned)];
    rows.extend(nodes.iter().map(|node| {
        let state = match &node.state {
            KeyState::Lock { owner, left } => format!("{owner}…  {}", remaining(*left)),
            KeyState::Absent => "none".to_owned(),
            KeyState::Foreign => "foreign data, not a lock: left alone".to_owned(),
            KeyState::Failed(fault) => format!("unknown: {fault}"),
        };
        let node = tail(&node.node, NODE);
        // Two columns, and two spaces between them.
        let state = cut(&state, WIDTH - NODE - 2);
        [node, state]
    }));
    table(f, &rows)
}

/// Prints columns as wide as their widest cell.
fn table<const N: usize>(f: &mut fmt::Formatter<'_>, rows: &[[String; N]]) -> fmt::Result {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        writeln!(f, "{}", cut(line.join("  ").trim_end(), WIDTH))?;
    }
    Ok(())
}

pub(super) fn word(state: &LockState) -> &'static str {
    match state {
        LockState::Held { .. } => "held",
        LockState::Free => "free",
        LockState::Split => "split",
        LockState::Unknown => "unknown",
    }
}

/// A name in quotes, escaped where it is no text, so that it can be told byte for byte; a long one
/// is cut, and says so.
fn resource(name: &[u8], most: usize) -> String {
    let text = Printable(name).to_string();
    match text.chars().count() > most {
        true => format!("{} ({} bytes)", cut(&text, most - 14), name.len()),
        false => text,
    }
}

fn several(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn abbreviated(owner: OwnerId) -> String {
    format!("{owner}…")
}

fn remaining(left: Option<Duration>) -> String {
    match left {
        Some(left) => format!("{} left", short(left)),
        None => "does not expire".to_owned(),
    }
}

/// Anybody's text, which must not steer a terminal.
fn plain(label: &str) -> String {
    label.escape_debug().to_string()
}

/// In the unit that people think in.
fn short(span: Duration) -> String {
    let millis = span.as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..100_000 => format!("{:.1} s", span.as_secs_f64()),
        _ => format!("{} s", span.as_secs()),
    }
}

#[cfg(test)]
mod tests;
