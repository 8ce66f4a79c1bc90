//! The JSON form of a report, where it is not that of its fields.

use std::time::Duration;

use serde::Serializer;
use serde::ser::{SerializeMap, SerializeStruct};

use crate::node::Fault;
use crate::status::NodeState;

fn whole(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

pub(super) fn millis<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => to.serialize_some(&whole(span.as_millis())),
        None => to.serialize_none(),
    }
}

pub(super) fn micros<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => to.serialize_some(&whole(span.as_micros())),
        None => to.serialize_none(),
    }
}

pub(super) fn whole_micros<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(whole(span.as_micros()))
}

/// `{"kind": "Timeout", "text": "timed out (no answer for 80 ms)"}`
pub(super) fn fault<S: Serializer>(fault: &Option<Fault>, to: S) -> Result<S::Ok, S::Error> {
    let Some(fault) = fault else {
        return to.serialize_none();
    };
    let mut out = to.serialize_struct("Fault", 2)?;
    out.serialize_field("kind", &format!("{:?}", fault.kind()))?;
    out.serialize_field("text", &fault.to_string())?;
    out.end()
}

/// One word.
pub(super) fn state<S: Serializer>(state: &NodeState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.word())
}

/// `{"ttl": "10s", …}`
pub(super) fn settings<S: Serializer>(
    settings: &[(&'static str, String)],
    to: S,
) -> Result<S::Ok, S::Error> {
    let mut out = to.serialize_map(Some(settings.len()))?;
    for (name, value) in settings {
        out.serialize_entry(name, value)?;
    }
    out.end()
}

/// As [`settings`].
pub(super) fn proposals<S: Serializer>(
    proposals: &[(&'static str, String)],
    to: S,
) -> Result<S::Ok, S::Error> {
    settings(proposals, to)
}
