//! Connections and credentials that are made by code, and so have no name in a file.

use std::io;

use super::Config;
use crate::node::{Connected, Credentials};

impl Config {
    /// Makes the connections to `redis://` and `rediss://` nodes by `hook`, which gets the host and
    /// port of the URL: through a SOCKS proxy, an SSH tunnel, a name service of your own.
    ///
    /// It returns a connected `TcpStream` or `UnixStream` of the standard library or of tokio, on
    /// which nothing was said yet. TLS is laid over it here, for `rediss://` and over TCP only, and
    /// checks the certificate against the host of the URL. A tunnel that is a stream of another
    /// kind (the channel of an SSH library, a TLS session) does not fit: the socket is read and
    /// written at the lowest level, from whichever thread has a command to send. Let the tunnel
    /// listen on a local port or a Unix socket, and connect to that.
    ///
    /// **Why a hook, and no connection that you have.** A release must follow its grant on the same
    /// connection, and a reply is waited for when its caller has long gone: no other commands may
    /// come between, and nobody else may close it. And each new connection begins with a look at
    /// the server's age and identity, before its votes count; a pool would hide which connections
    /// are new. So the client needs connections of its own, as often as they break.
    ///
    /// **Where it runs.** On a thread of its own, with a tokio runtime that ends when the future
    /// does. It may block. What is to live on, such as the task of a tunnel, must be spawned on a
    /// runtime of yours. It is called for each connection, also for those of `Client::check` and
    /// `Client::status`, with pauses of up to half a second between failures. The time limit of a
    /// connection holds for it, too: two seconds, or two node timeouts where that is more. A future
    /// that is late is dropped; one that blocks goes on, and with four such for one node no more are
    /// begun there. One that panics counts as a failure.
    ///
    /// # Errors
    /// Those of `hook` are the node's [`Fault`](crate::Fault): by their kind, with their text, which
    /// appears in errors and logs. The other nodes are not affected.
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use std::io;
    /// use std::net::TcpStream;
    /// use quorumlock::{AcquireError, Client, Config, FaultKind};
    ///
    /// let config = Config::new(["redis://node-1:6379"]).connect_with(async |host, port| {
    ///     match host.as_str() {
    ///         // The local end of `ssh -L 7101:node-1:6379 gateway`.
    ///         "node-1" if port == 6379 => TcpStream::connect("127.0.0.1:1"),
    ///         _ => Err(io::Error::new(io::ErrorKind::NotFound, "no tunnel")),
    ///     }
    /// });
    /// let client = Client::with_config(config)?;
    /// let error = client.lock("job").try_acquire().await.unwrap_err();
    /// let AcquireError::Unavailable(attempt) = error else { panic!("{error}") };
    /// assert_eq!(attempt.votes()[0].vote.fault(), Some(FaultKind::ConnectionRefused));
    /// # Ok::<(), quorumlock::ConfigError>(()) }).unwrap();
    /// # }
    /// ```
    pub fn connect_with<F, C>(mut self, hook: F) -> Self
    where
        F: AsyncFn(String, u16) -> io::Result<C> + Send + Sync + 'static,
        C: Into<Connected>,
    {
        self.hooks.set_connect(hook);
        self
    }

    /// Logs in with what `hook` gives, anew for each connection: for passwords that are good for
    /// some minutes only, such as the tokens of a cloud's IAM. It gets the node's name as errors
    /// show it (`host:port`, or `unix:/path`). For passwords in a file or in a variable, which are
    /// read anew as well, see [`Node::password_file`](crate::Node::password_file).
    ///
    /// It runs where the hook of [`Config::connect_with`] runs, under the same limit of time: keep
    /// a token that is still good. A connection that is open stays logged in, until the server
    /// closes it.
    ///
    /// # Errors
    /// Those of `hook` are the node's [`FaultKind::Auth`](crate::FaultKind::Auth), and their text
    /// appears in errors and logs: put no secret there. A node that has credentials of its own
    /// beside this is a [`ConfigError`](crate::ConfigError).
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// # futures::executor::block_on(async {
    /// use quorumlock::{AcquireError, Client, Config, Credentials};
    ///
    /// /// A token from a cloud, kept until it is about to end.
    /// async fn token(node: &str) -> std::io::Result<String> {
    ///     Err(std::io::Error::other(format!("no token for {node}")))
    /// }
    ///
    /// let config = Config::new(["redis://127.0.0.1:1"]);
    /// let config = config.credentials_with(async |node| {
    ///     Ok(Credentials::new(token(&node).await?).username("locker"))
    /// });
    /// assert!(config.clone().node("redis://:secret@b").validate().is_err());
    /// let error = Client::with_config(config)?.lock("job").try_acquire().await;
    /// assert!(matches!(error, Err(AcquireError::Unavailable(_))));
    /// # Ok::<(), quorumlock::ConfigError>(()) }).unwrap();
    /// # }
    /// ```
    pub fn credentials_with<F>(mut self, hook: F) -> Self
    where
        F: AsyncFn(String) -> io::Result<Credentials> + Send + Sync + 'static,
    {
        self.hooks.set_credentials(hook);
        self
    }
}
