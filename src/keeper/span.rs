//! The spans of extensions. They say how it went when it is decided.

use tracing::Span;
use tracing::field::Empty;

use crate::error::Printable;

/// Of one that the holder asks for, inside whatever he is at.
pub(crate) fn by_hand(resource: &[u8]) -> Span {
    tracing::debug_span!(
        "extend",
        resource = %Printable(resource),
        outcome = Empty,
        votes = Empty,
        wait = Empty,
        validity = Empty,
    )
}

/// Of one that has fallen due. It has no parent: whose task happens to be at the engine has no
/// part in it.
pub(super) fn automatic(resource: &[u8]) -> Span {
    tracing::debug_span!(
        parent: None,
        "extend",
        resource = %Printable(resource),
        outcome = Empty,
        votes = Empty,
        wait = Empty,
        validity = Empty,
    )
}
