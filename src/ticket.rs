//! A lease on its way from one holder to the next.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::config::ConfigError;
use crate::coordinator::Secret;
use crate::node::OwnerToken;
use crate::quorum::FencingToken;

/// A lease that was detached from its guard: the seat that stays held while its buyer pays.
///
/// It is text ([`LeaseTicket::reveal`], [`FromStr`], and `serde` with that feature), so that it can
/// travel in a session, a message or a row. **It is a secret**: whoever has it can hold, extend
/// and release the lock. Its `Debug` shows neither owner nor end.
///
/// The ticket says how to prove the lease, and nothing of how long it lasts: that depends on when
/// it was extended last, and is asked of the nodes by [`Client::attach`](crate::Client::attach).
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::{Client, LeaseTicket};
///
/// let client = Client::in_memory(5);
/// let guard = client.lock("seat/12a").acquire().await?;
/// let ticket = guard.detach().await.unwrap();
///
/// // In another request, or another process:
/// let ticket: LeaseTicket = ticket.reveal().parse()?;
/// let guard = client.attach(&ticket).await?;
/// assert!(guard.is_held());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseTicket {
    pub(crate) resource: Vec<u8>,
    pub(crate) secret: Secret,
    pub(crate) ttl: Duration,
}

/// How its text begins: the version of its form.
const VERSION: &str = "ql1";

impl LeaseTicket {
    /// What is locked.
    ///
    /// ```
    /// let text = format!("ql1.10000.{}.0.6a6f62", "a".repeat(40));
    /// let ticket: quorumlock::LeaseTicket = text.parse()?;
    /// assert_eq!(ticket.resource(), b"job");
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    #[must_use]
    pub fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// The ticket as text: letters, digits and dots. Keep it as you keep a password.
    #[must_use]
    pub fn reveal(&self) -> String {
        let Secret { owner, fence } = self.secret;
        let owner = String::from_utf8_lossy(owner.as_bytes());
        let mut text = format!("{VERSION}.{}.{owner}.{fence}.", self.ttl.as_millis());
        for byte in &self.resource {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }
}

impl FromStr for LeaseTicket {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        read(text).ok_or_else(|| {
            ConfigError::new(
                "ticket",
                format!("{} characters", text.chars().count()),
                "is not a lease ticket of this version",
                "pass on exactly what LeaseTicket::reveal gave",
            )
        })
    }
}

fn read(text: &str) -> Option<LeaseTicket> {
    let mut parts = text.split('.');
    let (version, ttl, owner) = (parts.next()?, parts.next()?, parts.next()?);
    let (fence, resource) = (parts.next()?, parts.next()?);
    if version != VERSION || parts.next().is_some() || !resource.len().is_multiple_of(2) {
        return None;
    }
    let byte = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).ok()?;
        let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| hex)
    };
    Some(LeaseTicket {
        resource: resource
            .as_bytes()
            .chunks(2)
            .map(byte)
            .collect::<Option<_>>()?,
        secret: Secret {
            owner: OwnerToken::parse(owner.as_bytes())?,
            fence: FencingToken::from_u64(fence.parse().ok()?),
        },
        ttl: Duration::from_millis(ttl.parse().ok()?),
    })
}

impl fmt::Debug for LeaseTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseTicket").finish_non_exhaustive()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LeaseTicket {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.reveal())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for LeaseTicket {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticket(resource: &[u8]) -> LeaseTicket {
        LeaseTicket {
            resource: resource.to_vec(),
            secret: Secret {
                owner: OwnerToken::new([0xab; 20]),
                fence: FencingToken::from_u64(42),
            },
            ttl: Duration::from_millis(1500),
        }
    }

    #[test]
    fn debug_tells_no_secret() {
        assert_eq!(format!("{:?}", ticket(b"seat")), "LeaseTicket { .. }");
        let error = "ql1.1500.abab".parse::<LeaseTicket>().unwrap_err();
        assert!(!error.to_string().contains("abab"));
    }

    #[test]
    fn a_damaged_ticket_is_refused() {
        let whole = ticket(b"seat").reveal();
        assert!(whole.parse::<LeaseTicket>().is_ok());
        for damaged in [
            whole.replace("ql1", "ql2"),
            whole.replace("1500", "-1"),
            whole.replacen("ab", "", 1),
            whole.replace(".42.", ".-42."),
            whole.replace(".42.", "."),
            format!("{whole}0"),
            format!("{whole}.00"),
            whole.replace("73", "7x"),
            whole.replace("73", "+7"),
        ] {
            assert!(damaged.parse::<LeaseTicket>().is_err(), "{damaged}");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(resource in prop::collection::vec(any::<u8>(), 1..40), ttl in 1u64..) {
            let mut ticket = ticket(&resource);
            ticket.ttl = Duration::from_millis(ttl);
            prop_assert_eq!(&ticket.reveal().parse::<LeaseTicket>().unwrap(), &ticket);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(ql1\\.)?.{0,80}") {
            let _ = text.parse::<LeaseTicket>();
        }
    }
}
