//! A look at the keys of the nodes, for people: what is under these names, which names there are,
//! and the one deletion that asks for no owner token.
//!
//! ```text
//!   read(keys) ─► GET, PTTL ──┐
//!   scan(start) ─► SCAN … ────┼─► every node at once, over connections of their own
//!   delete(key) ─► force.lua ─┘
//! ```
//!
//! None of it goes through the engine: a client that was not used yet has none, and to start it
//! would write the marker to each node. So a look disturbs no lock either.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use redis::Value;

use super::wire::server_fault;
use super::{Fault, FaultKind, OwnerToken};

mod server;

pub(crate) use server::ServerInspector;

/// What the nodes say, one answer a node, in the order of the configuration. Nothing is asked
/// before the first poll; a drop ends the asking.
pub(crate) type Answers<T> = BoxFuture<'static, Vec<T>>;

/// Asks all nodes at once.
pub(crate) trait Inspector: Send + Sync {
    /// How the nodes are called.
    fn names(&self) -> Vec<String>;

    /// What is under each of `keys`, and beside it the fencing counter if `counters` says so. One
    /// trip for each [`BATCH`] of keys.
    fn read(&self, keys: Arc<[Vec<u8>]>, counters: bool) -> Answers<Vec<Result<Reading, Fault>>>;

    /// The keys that begin as `scan` says and end in `}`.
    fn scan(&self, scan: Scan) -> Answers<Names>;

    /// Writes a label beside a lock of this owner, or takes it away; says where it did.
    fn label(&self, order: LabelOrder) -> Answers<Result<bool, Fault>>;

    /// Deletes the key if a lock is there, and says what was.
    fn delete(&self, key: Arc<[u8]>) -> Answers<Result<Content, Fault>>;
}

/// The most keys that one trip asks for.
pub(crate) const BATCH: usize = 128;

/// What one step of a scan looks at: Redis 7.0 on a busy machine took 0.4 ms for it.
pub(crate) const STEP: usize = 500;

/// Which keys to look for, and how long.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) start: Arc<[u8]>,
    /// It ends with so many keys, or bytes of keys, or after this time.
    pub(crate) most: usize,
    pub(crate) most_bytes: usize,
    pub(crate) within: Duration,
}

/// The keys that one node has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Names {
    pub(crate) keys: BTreeSet<Vec<u8>>,
    pub(crate) end: End,
}

/// How a scan ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// Every key that was there for the whole of it has been seen.
    Complete,
    /// At a limit.
    Cut,
    Failed(Fault),
}

impl Names {
    pub(super) fn failed(fault: Fault) -> Self {
        Names {
            keys: BTreeSet::new(),
            end: End::Failed(fault),
        }
    }
}

/// What `label.lua` is to do.
#[derive(Clone, Debug)]
pub(crate) struct LabelOrder {
    /// The lock's key.
    pub(crate) key: Arc<[u8]>,
    pub(crate) owner: OwnerToken,
    /// Empty takes the label away.
    pub(crate) text: Arc<str>,
    pub(crate) lasts: Duration,
    /// What is left of the lock itself from now on, where that changes.
    pub(crate) lock_lasts: Option<Duration>,
}

/// A label, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) owner: OwnerToken,
    pub(crate) text: String,
}

/// What is under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A lock, and for how long yet; `None` for one that does not expire.
    Lock {
        owner: OwnerToken,
        left: Option<Duration>,
    },
    Absent,
    /// Something that is no lock of this library.
    Foreign,
}

/// A key and its counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) content: Content,
    /// `None` where there is none, or something that is no counter.
    pub(crate) counter: Option<u64>,
    /// `None` where there is none, or something that is no label.
    pub(crate) label: Option<Label>,
}

/// Reads the answers to GET, PTTL, GET of the label and, with a fourth, GET of the counter.
///
/// # Errors
/// What the node said instead.
pub(super) fn reading(values: &[Value]) -> Result<Reading, Fault> {
    let [owner, left, label, counter @ ..] = values else {
        return Err(FaultKind::Protocol.into());
    };
    Ok(Reading {
        content: content(owner, left)?,
        counter: match counter.first() {
            Some(Value::BulkString(digits)) => {
                let digits = std::str::from_utf8(digits).ok();
                digits.and_then(|digits| digits.parse().ok())
            }
            _ => None,
        },
        label: match label {
            Value::BulkString(text) => parse_label(text),
            _ => None,
        },
    })
}

/// The key of the label beside a lock.
pub(crate) fn label_key(lock: &[u8]) -> Vec<u8> {
    [lock, b":label"].concat()
}

/// How a label stands on a node: the owner token, a space, the text.
pub(crate) fn parse_label(stored: &[u8]) -> Option<Label> {
    let (owner, rest) = stored.split_at_checked(OwnerToken::DIGITS)?;
    let text = rest.strip_prefix(b" ")?;
    Some(Label {
        owner: OwnerToken::parse(owner)?,
        text: String::from_utf8_lossy(text).into_owned(),
    })
}

/// Reads the answer of `label.lua`.
///
/// # Errors
/// What the node said instead.
pub(super) fn labelled(value: &Value) -> Result<bool, Fault> {
    match value {
        Value::Int(done) => Ok(*done == 1),
        Value::ServerError(error) => Err(server_fault(error)),
        _ => Err(FaultKind::Protocol.into()),
    }
}

fn content(owner: &Value, left: &Value) -> Result<Content, Fault> {
    let owner = match owner {
        Value::Nil => return Ok(Content::Absent),
        Value::BulkString(text) => match OwnerToken::parse(text) {
            Some(owner) => owner,
            None => return Ok(Content::Foreign),
        },
        Value::ServerError(error) => {
            let fault = server_fault(error);
            return match fault.kind() {
                FaultKind::NotALock => Ok(Content::Foreign),
                _ => Err(fault),
            };
        }
        _ => return Err(FaultKind::Protocol.into()),
    };
    match left {
        // It ran out between the two commands.
        Value::Int(-2) => Ok(Content::Absent),
        Value::Int(left) => {
            let left = u64::try_from(*left).ok().map(Duration::from_millis);
            Ok(Content::Lock { owner, left })
        }
        Value::ServerError(error) => Err(server_fault(error)),
        _ => Err(FaultKind::Protocol.into()),
    }
}

/// Reads the answer of `force.lua`.
///
/// # Errors
/// What the node said instead.
pub(super) fn deleted(value: &Value) -> Result<Content, Fault> {
    match value {
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(1), owner, left] => content(owner, left),
            [Value::Int(0)] => Ok(Content::Absent),
            [Value::Int(-1)] => Ok(Content::Foreign),
            _ => Err(FaultKind::Protocol.into()),
        },
        Value::ServerError(error) => Err(server_fault(error)),
        _ => Err(FaultKind::Protocol.into()),
    }
}

/// The pattern of SCAN for keys that begin like this and end in `}`.
pub(super) fn pattern(start: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(start.len() + 2);
    for &byte in start {
        if b"*?[]\\".contains(&byte) {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern.extend_from_slice(b"*}");
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7";

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn what_is_under_a_key_is_a_lock_or_nothing_or_foreign() {
        let owner = OwnerToken::parse(TOKEN.as_bytes()).unwrap();
        let lock = |left| Content::Lock { owner, left };
        let millis = Duration::from_millis;
        for (owner, left, expected) in [
            (text(TOKEN), 900, lock(Some(millis(900)))),
            (text(TOKEN), 0, lock(Some(millis(0)))),
            (text(TOKEN), -1, lock(None)),
            (text(TOKEN), -2, Content::Absent),
            (Value::Nil, -2, Content::Absent),
            (Value::Nil, 900, Content::Absent),
            (text("data"), -1, Content::Foreign),
        ] {
            let read = reading(&[owner, Value::Int(left), Value::Nil]).unwrap();
            assert_eq!((read.content, read.counter), (expected, None));
        }
        assert!(reading(&[text(TOKEN)]).is_err());
        assert!(reading(&[text(TOKEN), Value::Okay, Value::Nil]).is_err());
    }

    #[test]
    fn a_counter_that_is_none_is_left_out() {
        for (value, counter) in [
            (text("1048576"), Some(1 << 20)),
            (text("soup"), None),
            (Value::Nil, None),
        ] {
            let read = reading(&[Value::Nil, Value::Int(-2), Value::Nil, value]).unwrap();
            assert_eq!(read.counter, counter);
        }
    }

    #[test]
    fn a_label_says_whose_it_is_or_is_none() {
        let label = |value| {
            let read = reading(&[Value::Nil, Value::Int(-2), value]);
            read.unwrap().label
        };
        let good = label(text(&format!("{TOKEN} by hand"))).unwrap();
        assert_eq!(good.owner, OwnerToken::parse(TOKEN.as_bytes()).unwrap());
        assert_eq!(good.text, "by hand");
        for other in ["", "by hand", TOKEN, &format!("{TOKEN}by hand")] {
            assert_eq!(label(text(other)), None, "{other}");
        }
        assert_eq!(label(Value::Int(1)), None);
    }

    #[test]
    fn the_pattern_means_every_byte_as_it_stands() {
        assert_eq!(pattern(b"q:{a"), b"q:{a*}");
        assert_eq!(pattern(b"*[?]\\^-"), b"\\*\\[\\?\\]\\\\^-*}");
    }
}
