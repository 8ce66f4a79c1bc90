//! Ports that stay ours, and sockets that end at once.
//!
//! Closing is not enough to end a socket: while another thread starts a child, the child holds a
//! copy of every socket from its fork to its exec, and the connection or the listener lives on.

use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use socket2::{Domain, SockRef, Socket, Type};

/// A loopback port held by a socket that is bound but never listens.
///
/// As every socket here sets SO_REUSEADDR, the one who is meant to may still listen on the port.
/// Nobody else gets it: Linux gives a bound port neither to a bind to port 0 nor to an outgoing
/// connection, in any process. While nobody listens, connections to it are refused. So a server or
/// a proxy can go and come back under the same port without a race.
pub struct ReservedPort {
    port: u16,
    _socket: Socket,
}

impl ReservedPort {
    /// Any free port.
    pub fn any() -> io::Result<Self> {
        Self::bind(0)
    }

    /// This very port.
    pub fn exactly(port: u16) -> io::Result<Self> {
        Self::bind(port)
    }

    fn bind(port: u16) -> io::Result<Self> {
        let socket = reusable(port)?;
        let address = socket.local_addr()?.as_socket();
        let port = address.expect("a TCP socket has an address").port();
        Ok(Self {
            port,
            _socket: socket,
        })
    }

    pub fn number(&self) -> u16 {
        self.port
    }

    /// Listens on the port; may be called again once the former listener is dropped.
    pub fn listen(&self) -> io::Result<TcpListener> {
        let socket = reusable(self.port)?;
        socket.listen(1024)?;
        Ok(socket.into())
    }
}

fn reusable(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket)
}

/// From here on the port refuses, whoever else holds a copy of the listener.
pub fn stop_listening(listener: &TcpListener) {
    let _ = SockRef::from(listener).shutdown(Shutdown::Both);
}

/// Sends RST to the peer now, whoever else holds a copy of the stream.
pub fn reset(stream: &TcpStream) {
    let nowhere = libc::sockaddr {
        sa_family: libc::AF_UNSPEC as libc::sa_family_t,
        sa_data: [0; 14],
    };
    let length = size_of::<libc::sockaddr>() as libc::socklen_t;
    // SAFETY: the descriptor is open and `nowhere` outlives the call. Connecting to no address
    // breaks the connection off.
    unsafe { libc::connect(stream.as_raw_fd(), &nowhere, length) };
}
