//! The client that blocks.

use super::{Guard, Lock, wait};
use crate::client::{self, CloseError};
use crate::config::{Config, ConfigError};
use crate::error::AttachError;
use crate::ticket::LeaseTicket;

/// A set of nodes, and how to treat them: [`quorumlock::Client`](crate::Client) with calls that
/// block. Cheap to clone; all clones are one client, also those that are async.
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// # (|| {
/// use quorumlock::blocking::Client;
///
/// let client = Client::in_memory(5);
/// let guard = client.lock("nightly").acquire()?;
/// assert!(client.lock("nightly").try_acquire().is_err());
/// drop(guard);
/// client.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })().unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    client: client::Client,
}

impl Client {
    /// As [`Client::open`](crate::Client::open): no I/O.
    ///
    /// # Errors
    /// A URL that cannot be used, none at all, or one node twice.
    ///
    /// ```
    /// use quorumlock::blocking::Client;
    ///
    /// let client = Client::open(["redis://a:6379", "redis://b:6379", "redis://c:6379"])?;
    /// assert!(Client::open(["http://a"]).is_err());
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn open<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Result<Self, ConfigError> {
        client::Client::open(urls).map(Client::from)
    }

    /// As [`Client::with_config`](crate::Client::with_config): no I/O.
    ///
    /// # Errors
    /// The setting that cannot be used, its value, where it came from and what to write instead.
    ///
    /// ```
    /// use std::time::Duration;
    /// use quorumlock::{Config, blocking::Client};
    ///
    /// let config = Config::new(["redis://a", "redis://b", "redis://c"]);
    /// let client = Client::with_config(config.clone().ttl(Duration::from_secs(5)))?;
    /// let longer_than_max_ttl = config.ttl(Duration::from_secs(3600));
    /// assert!(Client::with_config(longer_than_max_ttl).is_err());
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    pub fn with_config(config: Config) -> Result<Self, ConfigError> {
        client::Client::with_config(config).map(Client::from)
    }

    /// A client of `nodes` nodes in memory: [`Client::in_memory`](crate::Client::in_memory). Needs
    /// the feature `test-util`.
    ///
    /// ```
    /// use quorumlock::blocking::Client;
    ///
    /// assert!(Client::in_memory(3).lock("job").acquire().is_ok());
    /// ```
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn in_memory(nodes: usize) -> Self {
        client::Client::in_memory(nodes).into()
    }

    /// The lock on `resource`: any bytes or text but none, up to 64 KiB. Does no I/O.
    ///
    /// ```
    /// use quorumlock::blocking::Client;
    ///
    /// let lock = Client::open(["redis://a"])?.lock("nightly");
    /// assert_eq!(lock.resource(), b"nightly");
    /// # Ok::<(), quorumlock::ConfigError>(())
    /// ```
    #[must_use]
    pub fn lock(&self, resource: impl AsRef<[u8]>) -> Lock {
        self.client.lock(resource).into()
    }

    /// Takes over a lease that [`Guard::detach`] let go of, here or in another process. Blocks for
    /// one round trip, or `node_timeout`.
    ///
    /// # Errors
    /// [`AttachError::Lost`] the lease is over; [`AttachError::Unavailable`] no quorum answered,
    /// and the ticket is as good as before. See [`Client::attach`](crate::Client::attach).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # (|| {
    /// use quorumlock::blocking::Client;
    ///
    /// let client = Client::in_memory(5);
    /// let ticket = client.lock("seat/12a").acquire()?.detach().unwrap();
    /// assert!(client.lock("seat/12a").try_acquire().is_err());
    /// let guard = client.attach(&ticket)?;
    /// assert!(guard.is_held());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })().unwrap();
    /// # }
    /// ```
    pub fn attach(&self, ticket: &LeaseTicket) -> Result<Guard, AttachError> {
        wait(self.client.attach(ticket)).map(Guard::from)
    }

    /// Ends the client: releases what its guards hold, makes calls that wait on other threads fail
    /// with [`AcquireError::Closed`](crate::AcquireError::Closed), and blocks until the nodes have
    /// confirmed. It is bounded as [`Client::close`](crate::Client::close) says: a second, or two
    /// node timeouts, after the last answer.
    ///
    /// # Errors
    /// How many releases no quorum has confirmed. Their keys run out with their TTL.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use quorumlock::{AcquireError, blocking::Client};
    ///
    /// let client = Client::in_memory(5);
    /// let guard = client.lock("job").acquire().unwrap();
    /// client.close().unwrap();
    /// assert!(!guard.is_held());
    /// assert!(matches!(client.lock("job").acquire(), Err(AcquireError::Closed)));
    /// # }
    /// ```
    pub fn close(&self) -> Result<(), CloseError> {
        wait(self.client.close())
    }

    /// The same client with async calls.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use quorumlock::blocking::{Client, wait};
    ///
    /// let client = Client::in_memory(3);
    /// let guard = client.lock("job").acquire().unwrap();
    /// assert!(wait(client.as_async().status("job")).unwrap().is_held());
    /// # drop(guard);
    /// # }
    /// ```
    #[must_use]
    pub fn as_async(&self) -> &client::Client {
        &self.client
    }
}

impl From<client::Client> for Client {
    fn from(client: client::Client) -> Self {
        Client { client }
    }
}

impl From<Client> for client::Client {
    fn from(client: Client) -> Self {
        client.client
    }
}
