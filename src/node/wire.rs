//! Requests as commands, and answers as replies. The format is written down in DESIGN.md; clients
//! of two releases share the nodes, so it changes only with its version.

use std::time::Duration;

use redis::{Cmd, Pipeline, ServerError, Value};

use super::lane::{Entry, Work};
use super::script::{EXTEND, MARKER, RELEASE, Script};
use super::{Ask, Fault, FaultKind, Life, Order, OwnerToken, Reply};

/// The scripts that a connection has spelled out once already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spelled {
    extend: bool,
    release: bool,
}

/// What the answer to an entry means for the lane.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// Tell who asked.
    Reply(Reply),
    /// The same, with the node's own time since 1970.
    Timed(Reply, Duration),
    /// Refused: ask whose key it is.
    Inspect,
    /// The server does not know the script: spell it out.
    SpellOut,
}

/// Appends the commands of `entry`.
pub(crate) fn encode(entry: &Entry, spelled: &mut Spelled, pipeline: &mut Pipeline) {
    let Order { key, token } = &*entry.order;
    match entry.work {
        Work::Ask(Ask::Grant { ttl_millis }) => {
            let mut set = Cmd::with_capacity(6, key.len() + OwnerToken::DIGITS + 40);
            set.arg("SET").arg(&**key).arg(token.as_bytes());
            set.arg("NX").arg("PX").arg(ttl_millis);
            pipeline.add_command(set);
        }
        Work::Ask(Ask::Extend {
            ttl_millis,
            restore,
        }) => {
            let short = std::mem::replace(&mut spelled.extend, true) && !entry.spelled_out;
            let mut eval = script(&EXTEND, short, key);
            eval.arg(token.as_bytes()).arg(ttl_millis);
            eval.arg(if restore { "1" } else { "0" });
            pipeline.add_command(eval);
        }
        Work::Ask(Ask::Release { .. }) => {
            let short = std::mem::replace(&mut spelled.release, true) && !entry.spelled_out;
            let mut eval = script(&RELEASE, short, key);
            eval.arg(token.as_bytes());
            pipeline.add_command(eval);
        }
        Work::Inspect => {
            pipeline.cmd("GET").arg(&**key).cmd("PTTL").arg(&**key);
        }
    }
}

fn script(script: &Script, short: bool, key: &[u8]) -> Cmd {
    let mut eval = Cmd::with_capacity(7, key.len() + OwnerToken::DIGITS + 100);
    if short {
        eval.arg("EVALSHA").arg(&script.sha);
    } else {
        eval.arg("EVAL").arg(script.text);
    }
    eval.arg(1).arg(key);
    eval
}

/// Takes the values of `entry` off `values`, and reads them.
pub(crate) fn decode(entry: &Entry, values: &mut impl Iterator<Item = Value>) -> Answer {
    let Some(first) = values.next() else {
        return Answer::Reply(Reply::Failed(shapeless("nothing")));
    };
    match entry.work {
        Work::Ask(Ask::Grant { .. }) => granted(first),
        Work::Ask(Ask::Extend { .. }) => extended(&first),
        Work::Ask(Ask::Release { .. }) => released(&first),
        Work::Inspect => Answer::Reply(inspected(entry, first, values.next())),
    }
}

fn granted(value: Value) -> Answer {
    match value {
        Value::Okay => Answer::Reply(Reply::Granted),
        Value::Nil => Answer::Inspect,
        other => failed(&other),
    }
}

fn extended(value: &Value) -> Answer {
    let Value::Array(parts) = value else {
        return failed(value);
    };
    let [Value::Int(what), Value::Int(seconds), Value::Int(micros)] = parts.as_slice() else {
        return failed(value);
    };
    let reply = match what {
        1 => Reply::Renewed,
        2 => Reply::Restored,
        0 => Reply::Absent,
        -1 => Reply::Held { left: None },
        _ => return failed(value),
    };
    match (u64::try_from(*seconds), u64::try_from(*micros)) {
        (Ok(seconds), Ok(micros)) => {
            let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
            Answer::Timed(reply, time)
        }
        _ => failed(value),
    }
}

fn released(value: &Value) -> Answer {
    match value {
        Value::Int(1) => Answer::Reply(Reply::Released(true)),
        Value::Int(0) => Answer::Reply(Reply::Released(false)),
        other => failed(other),
    }
}

/// Whose key it was that refused us. One that vanished meanwhile was held all the same.
fn inspected(entry: &Entry, owner: Value, left: Option<Value>) -> Reply {
    let left = match left {
        Some(Value::Int(millis)) => u64::try_from(millis).ok().map(Duration::from_millis),
        _ => None,
    };
    match owner {
        Value::BulkString(text) => match OwnerToken::parse(&text) {
            Some(token) if token == entry.order.token => Reply::Granted,
            Some(_) => Reply::Held { left },
            None => Reply::Failed(FaultKind::NotALock.into()),
        },
        Value::Nil => Reply::Held { left: None },
        other => Reply::Failed(fault(&other)),
    }
}

fn failed(value: &Value) -> Answer {
    match value {
        Value::ServerError(error) if needs_text(error) => Answer::SpellOut,
        other => Answer::Reply(Reply::Failed(fault(other))),
    }
}

/// Whether the script's text will do where its digest will not: the server has not got it, or the
/// user may run EVAL alone, which he would else find out when a lock is to be released.
fn needs_text(error: &ServerError) -> bool {
    let forbidden = || error.details().is_some_and(|text| text.contains("evalsha"));
    error.code() == "NOSCRIPT" || (error.code() == "NOPERM" && forbidden())
}

fn fault(value: &Value) -> Fault {
    match value {
        Value::ServerError(error) => server_fault(error),
        Value::Nil => shapeless("nil"),
        Value::Int(_) => shapeless("a number"),
        Value::Array(_) => shapeless("a list"),
        _ => shapeless("something else"),
    }
}

fn shapeless(what: &str) -> Fault {
    Fault::new(
        FaultKind::Protocol,
        format!("the server answered with {what}"),
    )
}

/// The class of an error reply. None of them says that somebody holds the key.
///
/// Servers before 7.0 wrap an error inside a script: `ERR Error running script …: -READONLY …`.
pub(crate) fn server_fault(error: &ServerError) -> Fault {
    let detail = error.details().unwrap_or_default();
    let inside = || {
        let mut words = detail.split_whitespace();
        words.find_map(|word| class(word.trim_start_matches('-')))
    };
    let kind = match class(error.code()) {
        Some(kind) => kind,
        None if denied(detail) => FaultKind::Permission,
        None => inside().unwrap_or(FaultKind::ServerError),
    };
    let text = format!("{} {detail}", error.code());
    if kind != FaultKind::Permission {
        return Fault::new(kind, text);
    }
    // What the server says names one command at a time, inside a script not even that.
    let short: String = text.chars().take(110).collect();
    Fault::new(kind, short + NEEDED)
}

/// Inside a script, Redis 7.0 and then Redis 7.2 and Valkey word a missing permission like this,
/// under the code `ERR`.
fn denied(detail: &str) -> bool {
    let wordings = ["can't run this command", "ACL failure in script"];
    wordings.iter().any(|wording| detail.contains(wording))
}

/// The permissions of whoever uses locks; `INFO` is welcome, and not needed.
const NEEDED: &str = "; needed: +eval +evalsha +set +get +del +pttl +pexpire +time, ~PREFIX*";

fn class(code: &str) -> Option<FaultKind> {
    Some(match code {
        "NOAUTH" | "WRONGPASS" | "DENIED" => FaultKind::Auth,
        "NOPERM" => FaultKind::Permission,
        "READONLY" => FaultKind::ReadOnly,
        "LOADING" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN" => FaultKind::Loading,
        "BUSY" => FaultKind::Busy,
        "OOM" => FaultKind::OutOfMemory,
        "MISCONF" | "NOREPLICAS" => FaultKind::Misconfigured,
        "WRONGTYPE" => FaultKind::NotALock,
        "MOVED" | "ASK" | "CROSSSLOT" => FaultKind::WrongSlot,
        _ => return None,
    })
}

/// The commands of the first exchange on a connection: who are you, and since when?
pub(crate) fn introduction(marker_key: &[u8]) -> [Cmd; 2] {
    let mut info = Cmd::new();
    info.arg("INFO").arg("server");
    let mut marker = Cmd::new();
    marker.arg("EVAL").arg(MARKER.text).arg(1).arg(marker_key);
    [info, marker]
}

/// Reads the answers to [`introduction`].
///
/// # Errors
/// The node cannot serve us: what it said about the marker. A forbidden `INFO` is none.
pub(crate) fn introduced(values: &[Value]) -> Result<Life, Fault> {
    let (info, marker) = match values {
        [info, marker] => (info, marker),
        _ => return Err(shapeless("too little")),
    };
    let (marker, now) = match marker {
        Value::Array(parts) => match parts.as_slice() {
            [marker, now] => (millis(marker)?, millis(now)?),
            _ => return Err(shapeless("a list")),
        },
        other => return Err(fault(other)),
    };
    let info = match info {
        Value::BulkString(text) => String::from_utf8_lossy(text).into_owned(),
        Value::VerbatimString { text, .. } => text.clone(),
        _ => String::new(),
    };
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    // A clock that was set back makes the uptime small or negative: young, either way.
    let uptime = field("uptime_in_seconds:").and_then(|text| text.parse::<i64>().ok());
    Ok(Life {
        run_id: field("run_id:").filter(|id| !id.is_empty()),
        uptime: uptime.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
        marker,
        marker_age: Duration::from_millis(now.saturating_sub(marker)),
    })
}

/// A marker or a time, in milliseconds as text.
pub(crate) fn millis(value: &Value) -> Result<u64, Fault> {
    let text = match value {
        Value::BulkString(text) => std::str::from_utf8(text).ok(),
        Value::SimpleString(text) => Some(text.as_str()),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        Fault::new(
            FaultKind::NotALock,
            "the marker key holds something that is not a marker",
        )
    })
}

#[cfg(test)]
mod tests;
