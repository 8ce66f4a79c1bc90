//! Who holds a lock, as people may see it.

use std::fmt;

use crate::node::OwnerToken;

/// The first eight digits of an owner token: enough to tell owners apart, and useless to release
/// a lock with. An owner is one acquisition, not one process: the same process that takes the
/// lock again is another owner.
///
/// Two ids that are equal belong to one owner, but for one case in four billion.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::Client;
///
/// let client = Client::in_memory(3);
/// let guard = client.lock("job").acquire().await?;
/// let owner = client.status("job").await?.owner().unwrap();
/// assert_eq!(owner.to_string().trim_end_matches('…').len(), 8);
/// # drop(guard);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId([u8; OwnerId::DIGITS]);

impl OwnerId {
    const DIGITS: usize = 8;

    pub(super) fn of(token: &OwnerToken) -> Self {
        let mut digits = [b'0'; Self::DIGITS];
        for (to, from) in digits.iter_mut().zip(token.as_bytes()) {
            *to = *from;
        }
        OwnerId(digits)
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits: String = self.0.iter().copied().map(char::from).collect();
        f.pad(&digits)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerId({self})")
    }
}
