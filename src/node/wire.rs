//! Requests as commands, and answers as replies. The format is written down in DESIGN.md; clients
//! of two releases share the nodes, so it changes only with its version.

use std::time::Duration;

use redis::{Cmd, ServerError, Value};

use super::lane::{Entry, Work};
use super::script::MARKER;
use super::{Ask, Fault, FaultKind, Life, OwnerToken, Reply};

mod encode;
mod push;
mod reply;

pub(crate) use encode::{Spelled, encode, replies_to};
#[cfg(any(test, feature = "test-util"))]
pub(crate) use push::note;
pub(crate) use push::pushed;
pub(crate) use reply::Replies;

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

/// Takes the values of `entry` off `values`, and reads them.
pub(crate) fn decode(entry: &Entry, values: &mut impl Iterator<Item = Value>) -> Answer {
    let Some(first) = values.next() else {
        return Answer::Reply(Reply::Failed(shapeless("nothing")));
    };
    match entry.work {
        Work::Ask(Ask::Grant {
            fence: None,
            announced: false,
            ..
        }) => granted(first),
        Work::Ask(Ask::Grant { fence, .. }) => scripted(entry, first, fence.is_some()),
        Work::Ask(Ask::Raise { .. }) => raised(&first),
        Work::Ask(Ask::Extend { .. }) => extended(&first),
        Work::Ask(Ask::Release { .. }) => released(&first),
        Work::Inspect => Answer::Reply(inspected(entry, first, values.next())),
    }
}

fn granted(value: Value) -> Answer {
    match value {
        Value::Okay => Answer::Reply(Reply::Granted { counter: None }),
        Value::Nil => Answer::Inspect,
        other => failed(&other),
    }
}

/// The answer of `grant.lua`: a grant, with its counter where it has one, or whose key it is.
fn scripted(entry: &Entry, value: Value, fenced: bool) -> Answer {
    let Value::Array(parts) = value else {
        return failed(&value);
    };
    let (reply, time) = match parts.as_slice() {
        [Value::Int(1), Value::Int(counter), time @ ..] => match u64::try_from(*counter) {
            Ok(counter) => (
                Reply::Granted {
                    counter: fenced.then_some(counter),
                },
                node_time(time),
            ),
            Err(_) => return failed(&Value::Array(parts)),
        },
        [Value::Int(0), owner, left, time @ ..] => (
            inspected(entry, owner.clone(), Some(left.clone())),
            node_time(time),
        ),
        _ => return failed(&Value::Array(parts)),
    };
    match time {
        Some(time) => Answer::Timed(reply, time),
        None => failed(&Value::Array(parts)),
    }
}

/// A node's TIME: seconds and microseconds.
fn node_time(parts: &[Value]) -> Option<Duration> {
    let [Value::Int(seconds), Value::Int(micros)] = parts else {
        return None;
    };
    let seconds = Duration::from_secs(u64::try_from(*seconds).ok()?);
    Some(seconds + Duration::from_micros(u64::try_from(*micros).ok()?))
}

fn raised(value: &Value) -> Answer {
    match value {
        Value::Int(1) => Answer::Reply(Reply::Raised(true)),
        // The key is not ours, or the value is beyond belief.
        Value::Int(0 | -1) => Answer::Reply(Reply::Raised(false)),
        other => failed(other),
    }
}

fn extended(value: &Value) -> Answer {
    let Value::Array(parts) = value else {
        return failed(value);
    };
    let [Value::Int(what), time @ ..] = parts.as_slice() else {
        return failed(value);
    };
    let reply = match what {
        1 => Reply::Renewed,
        2 => Reply::Restored,
        0 => Reply::Absent,
        -1 => Reply::HELD,
        _ => return failed(value),
    };
    match node_time(time) {
        Some(time) => Answer::Timed(reply, time),
        None => failed(value),
    }
}

fn released(value: &Value) -> Answer {
    let Value::Array(parts) = value else {
        return failed(value);
    };
    let [Value::Int(deleted @ (0 | 1)), Value::Int(listeners)] = parts[..] else {
        return failed(value);
    };
    Answer::Reply(Reply::Released {
        deleted: deleted == 1,
        listeners: u32::try_from(listeners).unwrap_or(0),
    })
}

/// Whose key it was that refused us. One that vanished meanwhile was held all the same.
fn inspected(entry: &Entry, owner: Value, left: Option<Value>) -> Reply {
    let left = match left {
        Some(Value::Int(millis)) => u64::try_from(millis).ok().map(Duration::from_millis),
        _ => None,
    };
    match owner {
        Value::BulkString(text) => match OwnerToken::parse(&text) {
            Some(token) if token == entry.order.token => Reply::Granted { counter: None },
            Some(token) => Reply::Held {
                left,
                rival: Some(token.head()),
            },
            None => Reply::Failed(FaultKind::NotALock.into()),
        },
        Value::Nil => Reply::HELD,
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
        "WRONGTYPE" | "NOCOUNTER" => FaultKind::NotALock,
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
