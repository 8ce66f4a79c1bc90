//! Replies off a stream of bytes, as they come: whole ones are taken out, the rest waits for more.
//!
//! Finding where a reply ends takes no value of it apart, so that one that comes in pieces is not
//! begun anew with each piece. What a lock's commands are answered with is read here; redis-rs
//! reads whatever else a server may say.

use redis::Value;

use crate::node::connect::redis_fault;
use crate::node::{Fault, FaultKind};

/// A buffer of bytes that a server has sent.
#[derive(Debug)]
pub(crate) struct Replies {
    bytes: Vec<u8>,
    /// Where the reply that is next begins.
    start: usize,
    /// How far it has been looked through.
    seen: usize,
    /// How many elements of it are still to come, itself included.
    missing: usize,
    /// Where what was received ends.
    end: usize,
}

/// How much is read at once: a few hundred replies.
const ROOM: usize = 32 << 10;

/// No reply to what we ask is longer, whatever somebody has put under a key of ours.
const LIMIT: usize = 16 << 20;

/// Errors and headers are short lines. Without a bound a line is looked through again and again.
const LINE: usize = 64 << 10;

/// How deep lists are read here. redis-rs has a limit of its own.
const DEPTH: u32 = 4;

impl Default for Replies {
    fn default() -> Self {
        Replies {
            bytes: vec![0; ROOM],
            start: 0,
            seen: 0,
            missing: 0,
            end: 0,
        }
    }
}

impl Replies {
    /// Where the next bytes go; [`Replies::received`] must follow. Never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.seen -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == 0 && self.bytes.len() > ROOM {
            self.bytes = vec![0; ROOM];
        } else if self.end == self.bytes.len() {
            self.bytes.resize(2 * self.end, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes have been put there.
    pub(crate) fn received(&mut self, count: usize) {
        self.end = self.bytes.len().min(self.end + count);
    }

    /// Takes the next reply out, if all of it is here.
    ///
    /// # Errors
    /// This is no RESP, or more than anything that we asked for. There is no going on.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Fault> {
        if !self.is_whole()? {
            return match self.end - self.start > LIMIT {
                true => Err(unintelligible("a reply without end")),
                false => Ok(None),
            };
        }
        let mut whole = &self.bytes[self.start..self.seen];
        let value = match simple(&mut whole, DEPTH) {
            Some(value) => value,
            None => redis::parse_redis_value(&self.bytes[self.start..self.seen])
                .map(bare)
                .map_err(|error| redis_fault(&error))?,
        };
        self.start = self.seen;
        Ok(Some(value))
    }

    /// Looks for the end of the reply at `start`, from where the last look ended.
    fn is_whole(&mut self) -> Result<bool, Fault> {
        if self.seen == self.start {
            self.missing = 1;
        }
        while self.missing > 0 {
            let rest = &self.bytes[self.seen..self.end];
            let Some((&kind, line)) = rest.split_first() else {
                return Ok(false);
            };
            if !b"+-:$*_,#(=!~>%|".contains(&kind) {
                return Err(unintelligible("something that is no reply"));
            }
            let Some(length) = line.windows(2).position(|two| two == b"\r\n") else {
                return match line.len() > LINE {
                    true => Err(unintelligible("a line without end")),
                    false => Ok(false),
                };
            };
            let header = 1 + length + 2;
            let children = match kind {
                b'$' | b'=' | b'!' => {
                    let body = count(&line[..length])?.map_or(0, |count| count + 2);
                    if rest.len() < header + body {
                        return Ok(false);
                    }
                    self.seen += body;
                    0
                }
                b'*' | b'~' | b'>' => count(&line[..length])?.unwrap_or(0),
                b'%' => 2 * count(&line[..length])?.unwrap_or(0),
                // What it says something about follows.
                b'|' => 2 * count(&line[..length])?.unwrap_or(0) + 1,
                _ => 0,
            };
            self.seen += header;
            self.missing = self.missing - 1 + children;
        }
        Ok(true)
    }
}

/// The length of a string or a list; `None` for the ones that are not there.
fn count(digits: &[u8]) -> Result<Option<usize>, Fault> {
    match number(digits) {
        Some(-1) => Ok(None),
        Some(count @ 0..) => match usize::try_from(count) {
            Ok(count) if count <= LIMIT => Ok(Some(count)),
            _ => Err(unintelligible("a reply without end")),
        },
        _ => Err(unintelligible("something that is no reply")),
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Takes a value off `bytes`, if it is of the simple kinds. It is whole.
fn simple(bytes: &mut &[u8], depth: u32) -> Option<Value> {
    let (&kind, rest) = bytes.split_first()?;
    let length = rest.windows(2).position(|two| two == b"\r\n")?;
    let (line, mut rest) = (&rest[..length], &rest[length + 2..]);
    let value = match kind {
        b'+' if line == b"OK" => Value::Okay,
        b':' => Value::Int(number(line)?),
        b'_' => Value::Nil,
        b'$' => match usize::try_from(number(line)?) {
            Ok(length) => {
                let text = rest.get(..length)?;
                rest = rest.get(length..)?.strip_prefix(b"\r\n")?;
                Value::BulkString(text.to_vec())
            }
            Err(_) => Value::Nil,
        },
        b'*' => {
            let count = usize::try_from(number(line)?).ok()?;
            let depth = depth.checked_sub(1)?;
            // Each is three bytes at least, so this is no more than what has come.
            let mut values = Vec::with_capacity(count.min(rest.len()));
            for _ in 0..count {
                values.push(simple(&mut rest, depth)?);
            }
            Value::Array(values)
        }
        _ => return None,
    };
    *bytes = rest;
    Some(value)
}

/// The value without what the server says about it and nobody has asked for.
fn bare(value: Value) -> Value {
    match value {
        Value::Attribute { data, .. } => bare(*data),
        Value::Array(values) => Value::Array(values.into_iter().map(bare).collect()),
        value => value,
    }
}

fn unintelligible(what: &str) -> Fault {
    Fault::new(FaultKind::Protocol, format!("the server sent {what}"))
}

#[cfg(test)]
mod tests;
