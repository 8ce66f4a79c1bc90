//! TLS by rustls, with *ring* as its one crypto provider.

use tokio::net::TcpStream;

use super::Fault;
use super::connect::TlsFiles;

#[cfg(feature = "tls")]
pub(crate) use enabled::{Secured, Session, handshake, is_of_tls};

#[cfg(feature = "tls")]
mod enabled {
    use std::io::{self, Read, Write};
    use std::path::Path;
    use std::sync::Arc;

    use tokio::task::spawn_blocking;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
    use tokio_rustls::{TlsConnector, rustls};

    use super::{Fault, TcpStream, TlsFiles};
    use crate::node::FaultKind;
    use crate::node::connect::socket_fault;
    use crate::node::socket::Stream;

    /// A connection after its handshake.
    pub(crate) type Secured = TlsStream<TcpStream>;

    /// TLS without a socket: it is given one at each call.
    #[derive(Debug)]
    pub(crate) struct Session(rustls::ClientConnection);

    impl Session {
        /// Parts TLS and the socket below it.
        pub(crate) fn of(secured: Secured) -> (TcpStream, Option<Box<Session>>) {
            let (stream, connection) = secured.into_inner();
            (stream, Some(Box::new(Session(connection))))
        }

        /// Reads what has come, as far as it makes plain text.
        pub(crate) fn read(&mut self, mut socket: &Stream, room: &mut [u8]) -> io::Result<usize> {
            loop {
                match self.0.reader().read(room) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
                // The end of the socket is known to the reader above, at the next pass.
                self.0.read_tls(&mut socket)?;
                if let Err(error) = self.0.process_new_packets() {
                    // The peer is told why, if it listens.
                    let _ = self.push(socket);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }

        /// Takes as much of `bytes` as there is place for, and sends it.
        pub(crate) fn write(&mut self, socket: &Stream, bytes: &[u8]) -> io::Result<usize> {
            self.push(socket)?;
            match self.0.writer().write(bytes)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                count => Ok(count),
            }
        }

        /// Sends what there is to send, as long as the socket takes it.
        pub(crate) fn push(&mut self, mut socket: &Stream) -> io::Result<()> {
            while self.0.wants_write() {
                match self.0.write_tls(&mut socket) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }

        pub(crate) fn wants_write(&self) -> bool {
            self.0.wants_write()
        }
    }

    /// Makes `stream` a TLS connection to `host`. Files are read anew each time: certificates
    /// are renewed while services run.
    pub(crate) async fn handshake(
        stream: TcpStream,
        host: &str,
        files: &TlsFiles,
    ) -> Result<TlsStream<TcpStream>, Fault> {
        let name = ServerName::try_from(host.to_owned()).map_err(fault)?;
        // The system's roots are hundreds of files to read and parse: the engine's thread has
        // leases to extend meanwhile.
        let files = files.clone();
        let config = spawn_blocking(move || config(&files)).await;
        let connector = TlsConnector::from(Arc::new(config.map_err(fault)??));
        connector
            .connect(name, stream)
            .await
            .map_err(handshake_fault)
    }

    fn config(files: &TlsFiles) -> Result<ClientConfig, Fault> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fault)?
            .with_root_certificates(roots(files)?);
        match (&files.certificate, &files.key) {
            (Some(chain), Some(key)) => {
                let key =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
                let chain = certificates(chain)?;
                builder.with_client_auth_cert(chain, key).map_err(fault)
            }
            _ => Ok(builder.with_no_client_auth()),
        }
    }

    fn roots(files: &TlsFiles) -> Result<RootCertStore, Fault> {
        let mut roots = RootCertStore::empty();
        if let Some(file) = &files.ca {
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(fault)?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Ok(roots)
    }

    fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
        CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(|error| unreadable(file, error))
    }

    fn unreadable(file: &Path, error: impl std::fmt::Display) -> Fault {
        Fault::new(FaultKind::Tls, format!("{}: {error}", file.display()))
    }

    fn fault(error: impl std::fmt::Display) -> Fault {
        Fault::new(FaultKind::Tls, error.to_string())
    }

    /// rustls reports what it dislikes as an I/O error that wraps its own; so does a peer that
    /// answers in plain text.
    fn handshake_fault(error: io::Error) -> Fault {
        if is_of_tls(&error) || error.kind() == io::ErrorKind::UnexpectedEof {
            fault(error)
        } else {
            socket_fault(error)
        }
    }

    /// Whether TLS has failed, and not the socket below it. With TLS 1.3 a client hears only after
    /// the handshake that its certificate, or the lack of one, is not accepted.
    pub(crate) fn is_of_tls(error: &io::Error) -> bool {
        let inner = error.get_ref();
        inner.is_some_and(|inner| inner.is::<rustls::Error>())
    }
}

#[cfg(not(feature = "tls"))]
pub(crate) use disabled::{Secured, Session, handshake, is_of_tls};

/// Without the feature a `rediss://` URL is a configuration error long before this.
#[cfg(not(feature = "tls"))]
mod disabled {
    use std::io;

    use super::{Fault, TcpStream, TlsFiles};
    use crate::node::FaultKind;
    use crate::node::socket::Stream;

    pub(crate) type Secured = TcpStream;

    /// There is none.
    #[derive(Debug)]
    pub(crate) enum Session {}

    impl Session {
        pub(crate) fn of(stream: Secured) -> (TcpStream, Option<Box<Session>>) {
            (stream, None)
        }

        pub(crate) fn read(&mut self, _socket: &Stream, _room: &mut [u8]) -> io::Result<usize> {
            match *self {}
        }

        pub(crate) fn write(&mut self, _socket: &Stream, _bytes: &[u8]) -> io::Result<usize> {
            match *self {}
        }

        pub(crate) fn push(&mut self, _socket: &Stream) -> io::Result<()> {
            match *self {}
        }

        pub(crate) fn wants_write(&self) -> bool {
            match *self {}
        }
    }

    pub(crate) fn is_of_tls(_error: &io::Error) -> bool {
        false
    }

    pub(crate) async fn handshake(
        _stream: TcpStream,
        _host: &str,
        _files: &TlsFiles,
    ) -> Result<Secured, Fault> {
        let detail = "this build has no TLS: enable the feature `tls`";
        Err(Fault::new(FaultKind::Tls, detail))
    }
}
