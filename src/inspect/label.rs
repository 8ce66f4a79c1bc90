//! Labels: what a holder says of itself, for people, beside its lock.
//!
//! A label costs the lock nothing: it is written after the grant, over connections of its own, and
//! nothing ever waits for it or decides by it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::clock::Clock;
use crate::error::{ExtendError, Loss};
use crate::guard::Guard;
use crate::key;
use crate::node::OwnerToken;
use crate::node::inspect::LabelOrder;

/// The longest text, in bytes; of a longer one this much is written.
const LONGEST: usize = 256;

/// The label of one hold of a lock.
///
/// It is bound to the lease: [`Client::status`] and [`Client::list`] show it only while this very
/// lease has the lock, and it is written only where the key is still the holder's. A holder that
/// dies leaves it for 2 × `max_ttl`, unseen. A holder that hands the lock on inside its client
/// hands the label on with it.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # futures::executor::block_on(async {
/// use quorumlock::Client;
///
/// let client = Client::in_memory(3);
/// let guard = client.lock("job").acquire().await?;
/// let label = client.label(&guard).await.unwrap();
/// assert!(label.write("web-3").await >= 2);
/// assert!(label.remove().await >= 2);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing is written before `write`"]
pub struct Label {
    client: Client,
    key: Arc<[u8]>,
    owner: OwnerToken,
}

impl Label {
    /// Writes `text`, or the first 256 bytes of it, on every node that has the lock's key; says on
    /// how many. It stays for 2 × `max_ttl`: whoever holds for longer writes again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it written on some nodes, all or none.
    ///
    /// # Round trips
    /// The connection, and one.
    pub async fn write(&self, text: &str) -> usize {
        let most = self.client.core().settings().max_ttl;
        // An empty one would be taken away.
        let text = if text.is_empty() { " " } else { text };
        self.send(text, most.saturating_mul(2), None).await
    }

    /// Takes the label away, whoever holds the lock by now; says on how many nodes it was.
    ///
    /// # Cancel safety
    /// As for [`Label::write`].
    ///
    /// # Round trips
    /// As for [`Label::write`].
    pub async fn remove(&self) -> usize {
        self.send("", Duration::ZERO, None).await
    }

    async fn send(&self, text: &str, lasts: Duration, lock_lasts: Option<Duration>) -> usize {
        let order = LabelOrder {
            key: Arc::clone(&self.key),
            owner: self.owner,
            text: start_of(text).into(),
            lasts,
            lock_lasts,
        };
        let answers = self.client.core().inspector().label(order).await;
        answers.iter().filter(|answer| **answer == Ok(true)).count()
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Label").finish_non_exhaustive()
    }
}

impl Client {
    /// The label beside the lock that `guard` holds: a few words for people on who holds it and
    /// why, which [`Client::status`] and [`Client::list`] show. Writes nothing by itself.
    ///
    /// The user needs no more permissions than for a lock. Everybody who may read the keys reads
    /// the label: keep secrets out of it.
    ///
    /// # Errors
    /// The reason, where the lock is lost already.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    ///
    /// # Round trips
    /// None; one to the client's own thread.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::Client;
    ///
    /// let client = Client::in_memory(5);
    /// let guard = client.lock("nightly").acquire().await?;
    /// let label = client.label(&guard).await.unwrap();
    /// assert!(label.write("web-3, since noon").await >= 3);
    /// assert_eq!(client.status("nightly").await?.label(), Some("web-3, since noon"));
    /// label.remove().await;
    /// assert_eq!(client.status("nightly").await?.label(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn label(&self, guard: &Guard) -> Result<Label, Loss> {
        let owner = guard.secret().await?.owner;
        let prefix = &self.core().settings().prefix;
        Ok(Label {
            client: self.clone(),
            key: key::lock_key(prefix, guard.resource()).into(),
            owner,
        })
    }

    /// Lets go of a lock that nobody shall have for another `left`: instead of the release, its
    /// keys run out by themselves after that, longer or shorter than they would have, with `text`
    /// as their label. Nobody extends them, and this process need not live on.
    ///
    /// For short jobs that every host starts at about the same time, and one shall do. On how many
    /// nodes the keys run out at that moment is the result; on the others, or if an extension was
    /// still under way there, after a TTL.
    ///
    /// # Errors
    /// [`ExtendError::Invalid`] `left` is longer than `max_ttl`; [`ExtendError::Lost`] the lock is
    /// not held any more; [`ExtendError::Unconfirmed`] no quorum has confirmed that the keys stay:
    /// they run out with the TTL at the latest.
    ///
    /// # Cancel safety
    /// Dropping the future lets the lock be released, run out with its TTL, or after `left`.
    ///
    /// # Round trips
    /// An extension where `left` is longer than what is left; the connection, and one.
    ///
    /// # Guarantee
    /// Nobody is granted the lock for `left`, by the nodes' clocks and less the drift allowance.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use std::time::Duration;
    /// use quorumlock::Client;
    ///
    /// let client = Client::in_memory(5);
    /// let guard = client.lock("hourly").acquire().await?;
    /// client.leave(guard, Duration::from_secs(2), "done").await?;
    /// let status = client.status("hourly").await?;
    /// assert!(status.left().unwrap() <= Duration::from_secs(2));
    /// assert!(client.lock("hourly").try_acquire().await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// # }
    /// ```
    pub async fn leave(
        &self,
        guard: Guard,
        left: Duration,
        text: &str,
    ) -> Result<usize, ExtendError> {
        let begun = Clock::Boot.now();
        let left = whole_millis(left);
        let rest = || left.saturating_sub(Clock::Boot.now().since(begun));
        let label = self.label(&guard).await.map_err(ExtendError::Lost)?;
        // An extension sets missing keys again, too, and what it has done is known to a quorum.
        let stays = match guard.remaining() < left {
            false => true,
            true => match guard.extend_to(left).await {
                Ok(()) => true,
                Err(ExtendError::Unconfirmed) => false,
                Err(error) => return Err(error),
            },
        };
        let text = if text.is_empty() { " " } else { text };
        let _ticket = guard.detach().await.map_err(ExtendError::Lost)?;
        let nodes = label.send(text, rest(), Some(rest())).await;
        match stays || nodes >= self.look().quorum.needed() {
            true => Ok(nodes),
            false => Err(ExtendError::Unconfirmed),
        }
    }
}

/// The nodes count in milliseconds; a lock that is left stays for no less than was asked for.
fn whole_millis(span: Duration) -> Duration {
    let more = Duration::from_nanos(999_999);
    let millis = span.saturating_add(more).as_millis();
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

fn start_of(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_rounded_up() {
        for (nanos, millis) in [(0, 0), (1, 1), (1_000_000, 1), (1_000_001, 2)] {
            let whole = whole_millis(Duration::from_nanos(nanos));
            assert_eq!(whole, Duration::from_millis(millis));
        }
        assert!(whole_millis(Duration::MAX) > Duration::from_secs(1 << 40));
    }

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        assert_eq!(start_of("short"), "short");
        assert_eq!(start_of(&"x".repeat(300)).len(), 256);
        assert_eq!(start_of(&format!("x{}", "é".repeat(200))).len(), 255);
    }
}
