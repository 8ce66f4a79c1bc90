//! What a server tells unasked.

use std::sync::Arc;
use std::time::Duration;

use redis::{PushKind, Value};

use crate::node::{Event, Note};

/// What a server tells unasked: that notes on a key arrive from now on, or a note.
pub(crate) fn pushed(value: Value) -> Option<Event> {
    let Value::Push { kind, data } = value else {
        return None;
    };
    let mut data = data.into_iter();
    let mut text = || match data.next() {
        Some(Value::BulkString(bytes)) => Some(bytes),
        _ => None,
    };
    let key: Arc<[u8]> = text()?.into();
    match kind {
        PushKind::Subscribe => Some(Event::Listening(key)),
        PushKind::Message => Some(Event::Note {
            key,
            note: note(&text()?),
        }),
        _ => None,
    }
}

/// A note: the version of the format, what has happened, and what belongs to it. What is not
/// understood says that something has happened all the same.
pub(crate) fn note(payload: &[u8]) -> Note {
    let text = std::str::from_utf8(payload).unwrap_or_default();
    let words: Vec<&str> = text.split(' ').collect();
    let taken = |rival: &str, left: &str| {
        Some(Note::Taken {
            rival: u32::from_str_radix(rival, 16).ok()?,
            left: Duration::from_millis(left.parse().ok()?),
        })
    };
    let note = match words[..] {
        ["1", "crowd", listeners] => listeners
            .parse()
            .ok()
            .map(|listeners| Note::Crowd { listeners }),
        ["1", "taken", rival, left] => taken(rival, left),
        _ => None,
    };
    note.unwrap_or(Note::Freed)
}
