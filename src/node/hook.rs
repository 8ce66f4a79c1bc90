//! Connections and credentials that the user makes in his own way.
//!
//! What he gives runs on a thread of its own, with a runtime of its own, once for each connection:
//! the client's thread extends leases, and must not wait for a token server or a proxy.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt};

use super::aside::aside;
use super::connect::socket_fault;
use super::{Fault, FaultKind};

pub(crate) type Connect =
    dyn Fn(String, u16) -> BoxFuture<'static, Result<Opened, Fault>> + Send + Sync;
pub(crate) type Introduce =
    dyn Fn(String) -> BoxFuture<'static, Result<Credentials, Fault>> + Send + Sync;

/// What the user has given.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) connect: Option<Arc<Connect>>,
    pub(crate) credentials: Option<Arc<Introduce>>,
}

impl Hooks {
    pub(crate) fn set_connect<F, C>(&mut self, hook: F)
    where
        F: AsyncFn(String, u16) -> io::Result<C> + Send + Sync + 'static,
        C: Into<Connected>,
    {
        let (hook, calls) = (Arc::new(hook), Calls::default());
        self.connect = Some(Arc::new(move |host, port| {
            let hook = Arc::clone(&hook);
            let call = calls.begin(format!("{host}:{port}"));
            let made = async move {
                let call = call?;
                let make = move || async move {
                    let _call = call;
                    opened(hook(host, port).await)
                };
                aside(make).await?.map_err(socket_fault)
            };
            made.boxed()
        }));
    }

    pub(crate) fn set_credentials<F>(&mut self, hook: F)
    where
        F: AsyncFn(String) -> io::Result<Credentials> + Send + Sync + 'static,
    {
        let (hook, calls) = (Arc::new(hook), Calls::default());
        self.credentials = Some(Arc::new(move |node| {
            let hook = Arc::clone(&hook);
            let call = calls.begin(node.clone());
            let made = async move {
                let call = call?;
                let make = move || async move {
                    let _call = call;
                    hook(node).await
                };
                let denied = |error: io::Error| Fault::new(FaultKind::Auth, error.to_string());
                aside(make).await?.map_err(denied)
            };
            made.boxed()
        }));
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("connect", &self.connect.is_some())
            .field("credentials", &self.credentials.is_some())
            .finish()
    }
}

/// The most calls of one hook for one node that have not ended. A hook that blocks for ever keeps
/// its thread for ever, and would be given another at each try.
const MOST_CALLS: usize = 4;

/// The calls of a hook that have not ended, by node.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<HashMap<String, usize>>>);

impl Calls {
    /// Counts a call until what this returns is dropped.
    fn begin(&self, node: String) -> Result<Call, Fault> {
        let mut calls = self.lock();
        let running = calls.entry(node.clone()).or_default();
        if *running >= MOST_CALLS {
            let detail = format!("{MOST_CALLS} calls of its hook have not come back");
            return Err(Fault::new(FaultKind::Timeout, detail));
        }
        *running += 1;
        drop(calls);
        Ok(Call {
            calls: self.clone(),
            node,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Call {
    calls: Calls,
    node: String,
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(running) = self.calls.lock().get_mut(&self.node) {
            *running = running.saturating_sub(1);
        }
    }
}

/// A socket that nobody waits at.
pub(crate) enum Opened {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

fn opened<C: Into<Connected>>(made: io::Result<C>) -> io::Result<Opened> {
    let opened = made?.into().0?;
    // The socket is read and written without waiting.
    match &opened {
        Opened::Tcp(tcp) => tcp.set_nonblocking(true)?,
        #[cfg(unix)]
        Opened::Unix(unix) => unix.set_nonblocking(true)?,
    }
    Ok(opened)
}

/// A connection to a node on which nothing has been said yet, for
/// [`Config::connect_with`](crate::Config::connect_with): made of a connected TCP or Unix socket of
/// the standard library or of tokio.
///
/// ```
/// use std::net::{TcpListener, TcpStream};
/// use quorumlock::Connected;
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let connected = Connected::from(TcpStream::connect(listener.local_addr()?)?);
/// # drop(connected);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Connected(io::Result<Opened>);

impl From<TcpStream> for Connected {
    fn from(tcp: TcpStream) -> Self {
        Connected(Ok(Opened::Tcp(tcp)))
    }
}

/// Takes the socket away from the runtime that it belongs to.
impl From<tokio::net::TcpStream> for Connected {
    fn from(tcp: tokio::net::TcpStream) -> Self {
        Connected(tcp.into_std().map(Opened::Tcp))
    }
}

#[cfg(unix)]
impl From<UnixStream> for Connected {
    fn from(unix: UnixStream) -> Self {
        Connected(Ok(Opened::Unix(unix)))
    }
}

/// Takes the socket away from the runtime that it belongs to.
#[cfg(unix)]
impl From<tokio::net::UnixStream> for Connected {
    fn from(unix: tokio::net::UnixStream) -> Self {
        Connected(unix.into_std().map(Opened::Unix))
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").finish_non_exhaustive()
    }
}

/// Who a connection logs in as, for [`Config::credentials_with`](crate::Config::credentials_with).
/// `Debug` does not show the password.
///
/// ```
/// use quorumlock::Credentials;
///
/// let who = Credentials::new("of the hour").username("locker");
/// assert_eq!(format!("{who:?}"), r#"Credentials { username: Some("locker"), .. }"#);
/// ```
#[derive(Clone)]
pub struct Credentials {
    pub(crate) username: Option<String>,
    pub(crate) password: String,
}

impl Credentials {
    /// The default user, with this password.
    ///
    /// ```
    /// let who = quorumlock::Credentials::new("of the hour");
    /// assert!(!format!("{who:?}").contains("of the hour"));
    /// ```
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Credentials {
            username: None,
            password: password.into(),
        }
    }

    /// This user instead of the default one.
    ///
    /// ```
    /// let who = quorumlock::Credentials::new("of the hour").username("locker");
    /// assert!(format!("{who:?}").contains("locker"));
    /// ```
    #[must_use]
    pub fn username(mut self, name: impl Into<String>) -> Self {
        self.username = Some(name.into());
        self
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_hook_that_never_comes_back_takes_so_many_threads_and_no_more() {
        let (end, wait) = mpsc::channel::<()>();
        let (begun, begin) = mpsc::channel();
        let wait = Mutex::new(wait);
        let mut hooks = Hooks::default();
        hooks.set_credentials(async move |node: String| {
            let _ = begun.send(());
            if node == "blocks" {
                let _ = wait.lock().map(|wait| wait.recv());
            }
            Ok(Credentials::new("secret"))
        });
        let ask = hooks.credentials.unwrap();
        let mut waiting: Vec<_> = (0..MOST_CALLS).map(|_| ask("blocks".to_owned())).collect();
        for call in &mut waiting {
            assert!(call.now_or_never().is_none());
            begin.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        drop(waiting);
        let fault = block_on(ask("blocks".to_owned())).unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Timeout, "{fault:?}");
        // Others have their own.
        assert!(block_on(ask("answers".to_owned())).is_ok());
        // What has ended counts no more, also where nobody waits for it.
        drop(end);
        let again = || block_on(ask("blocks".to_owned())).is_ok();
        let begin = std::time::Instant::now();
        while !again() {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
    }
}
