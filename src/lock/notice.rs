//! How much time a holder has to stop its work.

use std::time::Duration;

use super::Lock;
use crate::config::{ConfigError, check_resource};

impl Lock {
    /// How long before the end of validity it shows at the latest that an extension has failed:
    /// the validity of a full TTL without `extend_every` and `node_timeout`. A holder who needs
    /// longer than this to stop its work cannot stop it in time. Without `auto_extend` it is the
    /// whole validity. Does no I/O.
    ///
    /// # Errors
    /// A setting of this lock that cannot be used.
    ///
    /// ```
    /// use std::time::Duration;
    /// use quorumlock::Client;
    ///
    /// let client = Client::open(["redis://127.0.0.1:1"])?;
    /// // 10 s − (1 % + 2 ms) − 3.333 s − 500 ms
    /// assert!(client.lock("job").notice()? > Duration::from_secs(6));
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn notice(&self) -> Result<Duration, ConfigError> {
        check_resource(&self.resource)?;
        let terms = self.terms()?;
        let (timing, every) = (&terms.timing, terms.extend_every);
        let ttl = timing.ttl();
        let validity = ttl.saturating_sub(self.core.settings().drift.allowance(ttl));
        let until_known = every.map_or(Duration::ZERO, |every| every + timing.node_timeout());
        Ok(validity.saturating_sub(until_known))
    }
}
