//! A new connection: name, socket, TLS, credentials. All of it inside the caller's time limit.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::hook::{self, Connect, Hooks};
use super::reach::{tcp, tuned};
use super::socket::{Socket, Stream};
use super::tls::{Secured, Session, is_of_tls};
use super::{Fault, FaultKind};

/// Reads user name and password, or says why they cannot be read.
pub(crate) type Credentials =
    dyn Fn() -> Result<(Option<String>, Option<String>), String> + Send + Sync;

/// Where a node is, and who we are there.
#[derive(Clone)]
pub(crate) struct Target {
    /// For errors and logs; never holds a secret.
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) database: i64,
    /// Read anew for every connection: credentials may change.
    pub(crate) credentials: Arc<Credentials>,
    /// What is made by code of the user's instead.
    pub(crate) hooks: Hooks,
}

impl Target {
    /// User name and password, by which a connection logs in.
    ///
    /// # Errors
    /// They cannot be had.
    pub(crate) async fn credentials(&self) -> Result<(Option<String>, Option<String>), Fault> {
        match &self.hooks.credentials {
            Some(hook) => {
                let who = hook(self.name.clone()).await?;
                Ok((who.username, Some(who.password)))
            }
            None => (self.credentials)().map_err(|detail| Fault::new(FaultKind::Auth, detail)),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.name).finish()
    }
}

/// The address of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp {
        host: String,
        port: u16,
    },
    Tls {
        host: String,
        port: u16,
        files: TlsFiles,
    },
    Unix {
        path: PathBuf,
    },
}

/// PEM files for a `rediss://` node; without a CA file the system's roots are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// A connection that is ready for commands, and the future that drives its socket. It ends when
/// the connection does.
pub(crate) struct Wire {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) driver: BoxFuture<'static, ()>,
}

/// How far a connection has come: what to name when its time is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Resolving,
    Reaching,
    Securing,
    Introducing,
}

impl Stage {
    /// The fault of a connection that came no further within `limit`.
    pub(crate) fn spent(self, limit: Duration) -> Fault {
        let (kind, what) = match self {
            Stage::Resolving => (FaultKind::Timeout, "no address for the host name"),
            Stage::Reaching => (FaultKind::Timeout, "no connection"),
            // A server without TLS waits for the rest of what it takes for a command.
            Stage::Securing => (FaultKind::Tls, "not a TLS port? No handshake"),
            Stage::Introducing => (FaultKind::Timeout, "connected, but no answer"),
        };
        Fault::new(kind, format!("{what} within {} ms", limit.as_millis()))
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// A connection on which nothing has been said yet.
enum Opened {
    Tcp(TcpStream),
    Tls(Box<Secured>),
    #[cfg(unix)]
    Unix(UnixStream),
}

async fn open(target: &Target, until: Instant, stage: &Cell<Stage>) -> Result<Opened, Fault> {
    let hook = target.hooks.connect.as_deref();
    let opened = match &target.endpoint {
        Endpoint::Tcp { host, port } => plain(hook, host, *port, until, stage).await?,
        Endpoint::Tls { host, port, files } => {
            let Opened::Tcp(tcp) = plain(hook, host, *port, until, stage).await? else {
                let detail = "TLS is laid over TCP only, and connect_with gave something else";
                return Err(Fault::new(FaultKind::Tls, detail));
            };
            stage.set(Stage::Securing);
            Opened::Tls(Box::new(super::tls::handshake(tcp, host, files).await?))
        }
        Endpoint::Unix { path } => unix(path).await.map_err(socket_fault)?,
    };
    stage.set(Stage::Introducing);
    Ok(opened)
}

/// The way to a host, without TLS.
async fn plain(
    hook: Option<&Connect>,
    host: &str,
    port: u16,
    until: Instant,
    stage: &Cell<Stage>,
) -> Result<Opened, Fault> {
    let Some(hook) = hook else {
        return Ok(Opened::Tcp(tcp(host, port, until, stage).await?));
    };
    stage.set(Stage::Reaching);
    let opened = match hook(host.to_owned(), port).await? {
        hook::Opened::Tcp(tcp) => TcpStream::from_std(tcp).and_then(tuned).map(Opened::Tcp),
        #[cfg(unix)]
        hook::Opened::Unix(unix) => UnixStream::from_std(unix).map(Opened::Unix),
    };
    opened.map_err(socket_fault)
}

/// Opens a connection, and says nothing on it. The host name is resolved anew each time.
///
/// # Errors
/// What stood in the way. The caller gives it up at `until`; `stage` tells where it is.
pub(crate) async fn dial(
    target: &Target,
    until: Instant,
    stage: &Cell<Stage>,
) -> Result<Socket, Fault> {
    Ok(match open(target, until, stage).await? {
        Opened::Tcp(tcp) => Socket::new(Stream::Tcp(tcp), None),
        Opened::Tls(secured) => {
            let (tcp, tls) = Session::of(*secured);
            Socket::new(Stream::Tcp(tcp), tls)
        }
        #[cfg(unix)]
        Opened::Unix(unix) => Socket::new(Stream::Unix(unix), None),
    })
}

/// Opens a connection of redis-rs and authenticates, for somebody who looks at the node.
///
/// # Errors
/// What stood in the way. The caller gives it up after `within`; `stage` tells where it is.
pub(crate) async fn connect(
    target: &Target,
    within: Duration,
    stage: &Cell<Stage>,
) -> Result<Wire, Fault> {
    let until = Instant::now() + within;
    let (username, password) = target.credentials().await?;
    let stream: Box<dyn Duplex> = match open(target, until, stage).await? {
        Opened::Tcp(tcp) => Box::new(tcp),
        Opened::Tls(secured) => secured,
        #[cfg(unix)]
        Opened::Unix(unix) => Box::new(unix),
    };
    let mut who = RedisConnectionInfo::default()
        .set_db(target.database)
        .set_skip_set_lib_name();
    if let Some(username) = &username {
        who = who.set_username(username);
    }
    if let Some(password) = &password {
        who = who.set_password(password);
    }
    // No time limits of redis-rs: a timed-out future would leave its command running unseen.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let (connection, driver) = MultiplexedConnection::new_with_config(&who, stream, config)
        .await
        .map_err(|error| redis_fault(&error))?;
    Ok(Wire {
        connection,
        driver: driver.boxed(),
    })
}

#[cfg(unix)]
async fn unix(path: &Path) -> io::Result<Opened> {
    UnixStream::connect(path).await.map(Opened::Unix)
}

#[cfg(not(unix))]
async fn unix(_path: &Path) -> io::Result<Opened> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The class of a socket's error.
pub(crate) fn socket_fault(error: io::Error) -> Fault {
    let kind = match error.kind() {
        _ if is_of_tls(&error) => FaultKind::Tls,
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => FaultKind::ConnectionRefused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => FaultKind::ConnectionLost,
        io::ErrorKind::TimedOut => FaultKind::Timeout,
        _ => FaultKind::Unreachable,
    };
    Fault::new(kind, error.to_string())
}

/// The class of an error of redis-rs, which here is about a connection or its set-up.
pub(crate) fn redis_fault(error: &RedisError) -> Fault {
    let detail = error.to_string();
    let code = error.code();
    let kind = if error.kind() == redis::ErrorKind::AuthenticationFailed
        || matches!(code, Some("NOAUTH" | "WRONGPASS" | "DENIED"))
    {
        FaultKind::Auth
    } else if matches!(code, Some("LOADING" | "MASTERDOWN")) {
        FaultKind::Loading
    } else if code == Some("NOPERM") {
        FaultKind::Permission
    } else if io_error(error).is_some_and(is_of_tls) {
        FaultKind::Tls
    } else if error.is_connection_refusal() {
        FaultKind::ConnectionRefused
    } else if error.is_timeout() {
        FaultKind::Timeout
    } else if error.is_connection_dropped() || error.is_io_error() {
        FaultKind::ConnectionLost
    } else if matches!(error.kind(), redis::ErrorKind::Server(_)) {
        FaultKind::ServerError
    } else {
        FaultKind::Protocol
    };
    Fault::new(kind, detail)
}

/// The I/O error inside, which redis-rs keeps in an `Arc`.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    let source = error.source()?;
    let shared = source.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    shared.downcast_ref::<io::Error>()
}
