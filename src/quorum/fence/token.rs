//! The token itself.

use std::fmt;

/// A number that grows from one holder of a resource to the next.
///
/// A process that stood still may wake up after its lock has passed to somebody else, and no lock
/// service can stop it from writing then. The resource can: it keeps the highest token that it has
/// seen, and refuses writes with a smaller one.
///
/// Tokens of one resource never repeat, and of two holders the one that took the lock over has
/// the larger token. They have gaps, and are compared per resource: those of two resources say
/// nothing about each other. An extension keeps the token.
///
/// ```
/// use quorumlock::FencingToken;
///
/// let (paused, successor) = (FencingToken::from_u64(33), FencingToken::from_u64(34));
/// assert!(paused < successor);
/// assert_eq!(successor.to_string(), "34");
/// assert_eq!(u64::from(successor), 34);
/// assert!(FencingToken::NONE < paused);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct FencingToken(u64);

impl FencingToken {
    /// No token: what a guard has under `fencing = false`. As a number it is zero, which is
    /// smaller than every token that is ever granted, so a resource that has seen a real token
    /// refuses it.
    pub const NONE: FencingToken = FencingToken(0);

    /// The token with this number: for one that was stored or sent somewhere.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        FencingToken(number)
    }

    /// The token `steps` further on; none has none.
    pub(crate) const fn plus(self, steps: u64) -> Self {
        match self.0 {
            0 => self,
            number => FencingToken(number.saturating_add(steps)),
        }
    }

    /// The first of a block of `size` numbers, of which this is the last.
    pub(crate) const fn first_of(self, size: u64) -> Self {
        FencingToken(self.0.saturating_sub(size.saturating_sub(1)))
    }

    /// Whether this is [`FencingToken::NONE`].
    ///
    /// ```
    /// use quorumlock::FencingToken;
    /// assert!(FencingToken::NONE.is_none());
    /// assert!(!FencingToken::from_u64(1).is_none());
    /// ```
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> u64 {
        token.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
