//! The report as an operator reads it: at most 100 columns, no colours.

use std::fmt;
use std::time::Duration;

use super::node::NodeReport;
use super::report::Report;
use crate::text::{cut, tail};

/// The widest line.
const WIDTH: usize = 100;

/// The longest name of a node that is shown whole; of a longer one the end, where the port is.
const NAME: usize = 24;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} nodes, quorum {}; {} with a vote now, {} of them may fail",
            self.nodes.len(),
            self.quorum,
            self.votes,
            self.may_fail
        )?;
        let settings = self.settings.iter();
        let settings: Vec<_> = settings
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        wrapped(f, "", &settings.join(", "))?;
        writeln!(f)?;
        let head = [
            "node", "server", "role", "up", "vote", "data", "eviction", "acl",
        ];
        rows(f, &head, self.nodes.iter().map(identity).collect())?;
        writeln!(f)?;
        let head = ["node", "p50", "p99", "clock rate", "offset", "client sees"];
        rows(f, &head, self.nodes.iter().map(pace).collect())?;
        match self.clock_spread {
            Some(Duration::ZERO) => {
                writeln!(f, "the clocks of the nodes agree, as far as can be told")?;
            }
            Some(spread) => writeln!(f, "clocks of the nodes apart by {} or more", short(spread))?,
            None => {}
        }
        writeln!(f)?;
        if self.findings.is_empty() {
            return writeln!(f, "nothing to report");
        }
        for finding in &self.findings {
            let place = finding.node.as_deref();
            let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
            let severity = finding.severity;
            let first = format!("{severity:<9}{place}{}", finding.measured);
            wrapped(f, "         ", &first)?;
            wrapped(f, "         ", &format!("         → {}", finding.remedy))?;
            for (name, value) in &finding.proposals {
                writeln!(f, "           {name} = {}", toml(value))?;
            }
        }
        Ok(())
    }
}

/// A value as in a TOML file.
fn toml(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(_) => value.to_owned(),
        Err(_) => format!("\"{value}\""),
    }
}

/// Who a node is.
fn identity(node: &NodeReport) -> Vec<String> {
    let known = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    let server = match (&node.product, &node.version) {
        (Some(product), Some(version)) => Some(format!("{product} {version}").trim().to_owned()),
        (product, version) => product.clone().or_else(|| version.clone()),
    };
    let vote = match node.votes_in {
        _ if node.votes => "yes".to_owned(),
        Some(left) => format!("in {}", span(left)),
        None => "no".to_owned(),
    };
    let data = match (node.aof, node.rdb) {
        (Some(true), Some(true)) => "aof+rdb",
        (Some(true), _) => "aof",
        (_, Some(true)) => "rdb",
        (Some(false), Some(false)) => "none",
        _ => "?",
    };
    let acl = match (node.missing.is_empty(), node.permissions_known) {
        (false, _) => "lacking",
        (true, true) => "ok",
        (true, false) => "?",
    };
    let mut row = vec![tail(&node.name, NAME)];
    row.extend([
        known(server.map(|server| cut(&server, 14))),
        known(node.role.as_deref().map(|role| cut(role, 8))),
        known(node.uptime.map(span)),
        vote,
        data.to_owned(),
        known(node.eviction.as_deref().map(|policy| cut(policy, 15))),
        acl.to_owned(),
    ]);
    row
}

/// How fast a node and its clock are.
fn pace(node: &NodeReport) -> Vec<String> {
    let time = |span: Option<Duration>| span.map_or("–".to_owned(), short);
    let clock = node.clock.as_ref();
    let rate = clock.and_then(|clock| Some((clock.rate_ppm?, clock.rate_doubt_ppm?)));
    let rate = rate.map_or("–".to_owned(), |(rate, doubt)| match doubt < 10_000.0 {
        true => format!("{rate:+.0} ± {doubt:.0} ppm"),
        false => format!("{:+.1} ± {:.1} %", rate / 1e4, doubt / 1e4),
    });
    let offset = clock.map_or("–".to_owned(), |clock| {
        let (offset, doubt) = (clock.offset_ms, clock.offset_doubt_ms);
        match offset.abs().max(doubt) < 10_000.0 {
            true => format!("{offset:+.1} ± {doubt:.1} ms"),
            false => format!("{:+.1} ± {:.1} s", offset / 1e3, doubt / 1e3),
        }
    });
    let mut row = vec![tail(&node.name, NAME), time(node.p50), time(node.p99)];
    row.extend([rate, offset, node.state.word().to_owned()]);
    row
}

/// Prints columns as wide as their widest cell.
fn rows(f: &mut fmt::Formatter<'_>, head: &[&str], rows: Vec<Vec<String>>) -> fmt::Result {
    let long = |text: &str| text.chars().count();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| long(cell)).max();
        widest.unwrap_or(0).max(long(head[column]))
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head = head.iter().map(|&name| name.to_owned()).collect();
    for row in std::iter::once(head).chain(rows.iter().cloned()) {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        writeln!(f, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}

/// Prints text in lines of at most [`WIDTH`], all but the first with an indent.
fn wrapped(f: &mut fmt::Formatter<'_>, indent: &str, text: &str) -> fmt::Result {
    let mut line = String::new();
    for word in text.split(' ') {
        let long = line.chars().count() + word.chars().count() + 1;
        if long > WIDTH && !line.trim().is_empty() {
            writeln!(f, "{}", line.trim_end())?;
            line = indent.to_owned();
        }
        line.push_str(word);
        line.push(' ');
    }
    writeln!(f, "{}", line.trim_end())
}

/// A round trip: three digits that count.
pub(super) fn short(span: Duration) -> String {
    let micros = span.as_micros();
    match micros {
        0..10_000 => format!("{:.2} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

/// An age: its largest unit.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
