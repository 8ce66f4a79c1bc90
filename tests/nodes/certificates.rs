//! Certificates: whom a client trusts, and as whom it presents itself. Quick.

use quorumlock::{AcquireError, FaultKind, Node};

use crate::common::{Said, client, said, settings};
use crate::stand_in::StandIn;
use crate::tls_front::{TlsFront, authority, file};

fn at(front: &TlsFront) -> Node {
    Node::url(format!("rediss://127.0.0.1:{}", front.port()))
}

/// What the node said to somebody who could not connect.
async fn refused(node: Node) -> AcquireError {
    let lock = client(settings([""; 0]).node(node)).lock("job");
    let error = lock.try_acquire().await.expect_err("no connection");
    assert_eq!(said(&error), [Said::Failed(FaultKind::Tls)], "{error}");
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    error
}

#[tokio::test]
async fn a_client_shows_its_certificate_where_one_is_wanted() {
    let node = StandIn::start();
    let front = TlsFront::asking(node.stub.port()).await;
    let with = at(&front)
        .ca_file(authority())
        .client_cert_file(file("client.pem"))
        .client_key_file(file("client.key"));
    let guard = client(settings([""; 0]).node(with)).lock("job");
    assert!(guard.acquire().await.expect("a free lock").is_held());
}

#[tokio::test]
async fn without_a_certificate_the_reason_is_told() {
    let node = StandIn::start();
    let front = TlsFront::asking(node.stub.port()).await;
    refused(at(&front).ca_file(authority())).await;
    // One of an authority that the server does not know is no better.
    let other = at(&front)
        .ca_file(authority())
        .client_cert_file(file("server.pem"))
        .client_key_file(file("server.key"));
    refused(other).await;
    assert_eq!(node.count("INFO"), 0);
}

#[tokio::test]
async fn a_server_whose_certificate_has_run_out_is_not_talked_to() {
    let node = StandIn::start();
    let front = TlsFront::expired(node.stub.port()).await;
    let error = refused(at(&front).ca_file(file("second-ca.pem"))).await;
    assert!(error.to_string().contains("expired"), "{error}");
    assert_eq!(node.count("INFO"), 0);
}

#[tokio::test]
async fn an_authority_of_ones_own_is_the_only_one_that_is_trusted() {
    let node = StandIn::start();
    let front = TlsFront::of(node.stub.port()).await;
    refused(at(&front).ca_file(file("second-ca.pem"))).await;
    let guard = client(settings([""; 0]).node(at(&front).ca_file(authority())));
    let guard = guard.lock("job").acquire().await;
    assert!(guard.expect("a free lock").is_held());
}
