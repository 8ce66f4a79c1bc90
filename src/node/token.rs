//! The owner token: a random value that signs one round's keys.

use std::fmt;

/// 20 random bytes, written as 40 hexadecimal digits. Fresh for every round (P1), so that a late
/// message of an old round can never be taken for the present one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OwnerToken([u8; OwnerToken::DIGITS]);

impl OwnerToken {
    /// The length of its text.
    pub(crate) const DIGITS: usize = 40;

    pub(crate) fn new(random: [u8; 20]) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; Self::DIGITS];
        for (pair, byte) in text.chunks_exact_mut(2).zip(random) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        OwnerToken(text)
    }

    /// The token that `text` spells; `None` where it is anything else, which means that the key
    /// is no lock of ours.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.try_into().ok()?;
        let hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.iter().all(hex).then_some(OwnerToken(digits))
    }

    /// How it begins: what tells contenders apart, and proves nothing.
    pub(crate) fn head(&self) -> u32 {
        let digits = self.as_bytes().get(..8).unwrap_or_default();
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        u32::from_str_radix(digits, 16).unwrap_or(0)
    }

    /// As it stands in the key.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Two digits are enough to tell owners apart in a log, and useless to a thief.
impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.0;
        write!(
            f,
            "OwnerToken({}{}…)",
            char::from(first),
            char::from(second)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_forty_digits_and_reads_back() {
        let token = OwnerToken::new([0xa7; 20]);
        assert_eq!(token.as_bytes(), "a7".repeat(20).as_bytes());
        assert_eq!(OwnerToken::parse(token.as_bytes()), Some(token));
    }

    #[test]
    fn other_values_are_no_token() {
        for text in [
            "",
            "a7",
            &"A7".repeat(20),
            &"g7".repeat(20),
            &"a7".repeat(21),
        ] {
            assert_eq!(OwnerToken::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn debug_shows_two_digits_only() {
        let token = OwnerToken::new([0xa7; 20]);
        assert_eq!(format!("{token:?}"), "OwnerToken(a7…)");
    }
}
