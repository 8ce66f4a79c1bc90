//! A new connection: name, socket, TLS, credentials. All of it inside the caller's time limit.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

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
    let opened = match &target.endpoint {
        Endpoint::Tcp { host, port } => Opened::Tcp(tcp(host, *port, until, stage).await?),
        Endpoint::Tls { host, port, files } => {
            let tcp = tcp(host, *port, until, stage).await?;
            stage.set(Stage::Securing);
            Opened::Tls(Box::new(super::tls::handshake(tcp, host, files).await?))
        }
        Endpoint::Unix { path } => unix(path).await.map_err(socket_fault)?,
    };
    stage.set(Stage::Introducing);
    Ok(opened)
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
    let (username, password) =
        (target.credentials)().map_err(|detail| Fault::new(FaultKind::Auth, detail))?;
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

async fn tcp(
    host: &str,
    port: u16,
    until: Instant,
    stage: &Cell<Stage>,
) -> Result<TcpStream, Fault> {
    stage.set(Stage::Resolving);
    let addresses = lookup_host((host, port))
        .await
        .map_err(|error| Fault::new(FaultKind::Unresolved, error.to_string()))?;
    stage.set(Stage::Reaching);
    let addresses: Vec<SocketAddr> = addresses.collect();
    let stream = reach(&addresses, until).await?;
    tuned(stream).map_err(socket_fault)
}

/// Tries one address after the other. Each but the last gets a share of the time that is left, so
/// that an address of a network that swallows everything leaves the others some.
async fn reach(addresses: &[SocketAddr], until: Instant) -> Result<TcpStream, Fault> {
    let mut last = Fault::from(FaultKind::Unresolved);
    let mut others = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for &address in addresses {
        others = others.saturating_sub(1);
        let connecting = TcpStream::connect(address);
        let reached = if others == 0 {
            connecting.await
        } else {
            // One share more than there are addresses is for what comes after.
            let left = until.saturating_duration_since(Instant::now());
            let share = left / others.saturating_add(2);
            let reached = timeout(share, connecting).await;
            reached.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        };
        match reached {
            Ok(stream) => return Ok(stream),
            Err(error) => last = socket_fault(error),
        }
    }
    Err(last)
}

#[cfg(unix)]
async fn unix(path: &Path) -> io::Result<Opened> {
    UnixStream::connect(path).await.map(Opened::Unix)
}

#[cfg(not(unix))]
async fn unix(_path: &Path) -> io::Result<Opened> {
    Err(io::ErrorKind::Unsupported.into())
}

/// No delay for small writes, and probes that find a peer which vanished without a word.
fn tuned(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(3));
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use socket2::{Domain, Socket, Type};

    use super::*;

    /// An address whose queue of connections is full, so that it says nothing to a new one; kept
    /// alive by what is returned besides.
    fn silent() -> (SocketAddr, Vec<Socket>) {
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket();
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        listener.bind(&any.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut kept = vec![listener];
        for _ in 0..4 {
            let client = socket();
            client.set_nonblocking(true).unwrap();
            let _ = client.connect(&address);
            kept.push(client);
        }
        (address.as_socket().unwrap(), kept)
    }

    #[tokio::test]
    async fn an_address_that_says_nothing_leaves_the_next_one_time() {
        let (dead, _kept) = silent();
        let alive = TcpListener::bind("127.0.0.1:0").unwrap();
        let within = Duration::from_secs(2);
        let begin = Instant::now();
        let alone = timeout(within / 4, reach(&[dead], begin + within)).await;
        assert!(alone.is_err(), "it is not silent");
        let addresses = [dead, alive.local_addr().unwrap()];
        let begin = Instant::now();
        let reached = timeout(within, reach(&addresses, begin + within)).await;
        let stream = reached.expect("inside the time").expect("the second");
        assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
    }

    #[tokio::test]
    async fn without_any_address_the_name_is_not_resolved() {
        let fault = reach(&[], Instant::now()).await.unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Unresolved);
    }
}
