//! The way to a host: its name, its addresses, and a socket as we want it.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::connect::{Stage, socket_fault};
use super::{Fault, FaultKind};

/// Connects to a host, whose name is resolved anew each time.
///
/// # Errors
/// What stood in the way. The caller gives it up at `until`; `stage` tells where it is.
pub(super) async fn tcp(
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

/// No delay for small writes, and probes that find a peer which vanished without a word.
pub(super) fn tuned(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(3));
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
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
