//! The socket of one connection: reads and writes that never wait, and a wait for either.
//!
//! Reads and writes go to the socket itself and need no runtime; only [`Stream::ready`] does.

use std::io::{self, Read, Write};
use std::sync::Arc;

use socket2::SockRef;
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use super::tls::Session as Tls;

/// A server that has hung up makes a write fail, and raises no SIGPIPE: that would end a program
/// whose main is not Rust's. Elsewhere sockets are made so, or there is no such signal.
#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
))]
const QUIET: i32 = libc::MSG_NOSIGNAL;
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
)))]
const QUIET: i32 = 0;

/// What is below TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// A connected socket, with TLS on it or without.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Arc<Stream>,
    tls: Option<Box<Tls>>,
}

impl Stream {
    /// Ends when the socket may be read or written, as `interest` has it; or when it has ended.
    ///
    /// # Errors
    /// The runtime is gone.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Stream::Tcp(tcp) => tcp.ready(interest).await,
            #[cfg(unix)]
            Stream::Unix(unix) => unix.ready(interest).await,
        }
    }

    /// Does `io`, which uses the socket; where that would block, [`Stream::ready`] waits again.
    fn attempt<T>(
        &self,
        interest: Interest,
        io: impl FnOnce(&SockRef<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match self {
            Stream::Tcp(tcp) => tcp.try_io(interest, || io(&SockRef::from(tcp))),
            #[cfg(unix)]
            Stream::Unix(unix) => unix.try_io(interest, || io(&SockRef::from(unix))),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut short = None;
        let read = self.attempt(Interest::READABLE, |socket| {
            let mut socket: &socket2::Socket = socket;
            let count = socket.read(room)?;
            if count > 0 && count < room.len() {
                // All that was there: to ask once more would be a system call for nothing.
                short = Some(count);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(count)
        });
        short.map_or(read, Ok)
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(Interest::WRITABLE, |socket| {
            socket.send_with_flags(bytes, QUIET)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    pub(crate) fn new(stream: Stream, tls: Option<Box<Tls>>) -> Self {
        Socket {
            stream: Arc::new(stream),
            tls,
        }
    }

    /// What to wait for.
    pub(crate) fn stream(&self) -> Arc<Stream> {
        Arc::clone(&self.stream)
    }

    /// Reads what is there. Nothing at all is the end of the connection.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is there yet; else the connection is of no use any more.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut stream: &Stream = &self.stream;
        loop {
            let read = match &mut self.tls {
                Some(tls) => tls.read(stream, room),
                None => stream.read(room),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Writes as much of `bytes` as there is place for.
    ///
    /// # Errors
    /// The connection is of no use any more. That there is no place is none: nothing is written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream: &Stream = &self.stream;
        let mut written = 0;
        while written < bytes.len() {
            let write = match &mut self.tls {
                Some(tls) => tls.write(stream, &bytes[written..]),
                None => stream.write(&bytes[written..]),
            };
            match write {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.push()?;
        Ok(written)
    }

    /// Sends what TLS has made of it and has not got rid of.
    fn push(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.push(&self.stream),
            None => Ok(()),
        }
    }

    /// Whether TLS has something to send, which [`Socket::write`] does.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }
}

#[cfg(all(test, target_os = "linux", feature = "cli"))]
mod tests {
    use nix::sys::signal::{SigSet, Signal};

    use super::*;

    /// A program whose main is not Rust's, or that wants it so, dies of this signal.
    #[tokio::test]
    async fn a_server_that_has_hung_up_raises_no_signal() {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGPIPE);
        // Blocked it stays to be seen, even where it is ignored.
        signals.thread_block().unwrap();
        let (ours, server) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = UnixStream::from_std(ours).unwrap();
        ours.writable().await.unwrap();
        let mut socket = Socket::new(Stream::Unix(ours), None);
        drop(server);
        let error = socket.write(b"PING").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
        let pending = u64::from_str_radix(pending.unwrap().trim(), 16).unwrap();
        assert_eq!(pending >> (Signal::SIGPIPE as u32 - 1) & 1, 0);
    }
}
