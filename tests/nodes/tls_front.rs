//! TLS before a plain server.
//!
//! The certificates in `certs/` are made for these tests and trusted by nobody else; they run out
//! in a hundred years, but for the one that has run out. The authorities' keys were thrown away.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

/// Takes TLS off each connection and passes the rest on, until it is dropped.
pub struct TlsFront {
    port: u16,
    task: JoinHandle<()>,
}

impl TlsFront {
    pub async fn of(upstream: u16) -> TlsFront {
        TlsFront::with("server", None, upstream).await
    }

    /// One whose certificate ran out years ago.
    pub async fn expired(upstream: u16) -> TlsFront {
        TlsFront::with("expired", None, upstream).await
    }

    /// One that wants a certificate of the second authority from whoever connects.
    pub async fn asking(upstream: u16) -> TlsFront {
        TlsFront::with("server", Some("second-ca.pem"), upstream).await
    }

    async fn with(certificate: &str, clients: Option<&str>, upstream: u16) -> TlsFront {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let acceptor = TlsAcceptor::from(Arc::new(config(certificate, clients)));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), client, upstream));
            }
        });
        TlsFront { port, task }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The authority that has signed the front's certificate.
pub fn authority() -> PathBuf {
    file("ca.pem")
}

pub fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/nodes/certs", name]
        .iter()
        .collect()
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(name)).expect("a certificate")
}

fn config(name: &str, clients: Option<&str>) -> ServerConfig {
    let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).expect("its key");
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(certificate(authority)).expect("an authority");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let chain = vec![certificate(&format!("{name}.pem"))];
    builder
        .with_single_cert(chain, key)
        .expect("a key that fits")
}

async fn serve(acceptor: TlsAcceptor, client: TcpStream, upstream: u16) {
    let Ok(mut secure) = acceptor.accept(client).await else {
        return;
    };
    if let Ok(mut plain) = TcpStream::connect(("127.0.0.1", upstream)).await {
        let _ = tokio::io::copy_bidirectional(&mut secure, &mut plain).await;
    }
}
