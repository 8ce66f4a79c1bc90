//! Ports that stay ours for as long as the reservation lives.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

use socket2::{Domain, Socket, Type};

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
