//! Connections and credentials that a program makes in its own way. Quick.
//!
//! The nodes have names here that nobody can resolve: only the hook knows the way.

use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use quorumlock::{Config, Connected, Credentials, FaultKind, KeyState, NodeKey};

use crate::common::{MS, NODE_TIMEOUT, SLACK, Said, brisk, client, renewed, said, settings};
use crate::support::{Cluster, Server, eventually_async};

/// `node-0.invalid` and so on, each with its number for a port.
fn names(count: u16) -> Vec<String> {
    let name = |index| format!("redis://node-{index}.invalid:{}", index + 1);
    (0..count).map(name).collect()
}

fn reach(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
}

/// The way to the nodes of `names`, to these ports.
fn by_way_of(config: Config, ports: Vec<u16>) -> Config {
    config.connect_with(move |host, port| {
        let index = usize::from(port) - 1;
        let known = host == format!("node-{index}.invalid");
        let target = ports.get(index).copied().filter(|_| known);
        async move { reach(target.ok_or(io::ErrorKind::NotFound)?) }
    })
}

#[tokio::test]
async fn nodes_are_reached_by_whatever_socket_the_hook_has() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = |index| dir.path().join(format!("{index}.sock"));
    let paths: Vec<PathBuf> = (0..5).map(socket).collect();
    let listens = |index: usize| [PathBuf::from("--unixsocket"), paths[index].clone()];
    let cluster = Cluster::with(5, |index, node| node.args(listens(index)));
    let (ports, calls) = (cluster.ports(), Arc::new(AtomicUsize::new(0)));
    let (of_hook, tunnels) = (Arc::clone(&calls), paths.clone());
    let config = settings(names(5)).connect_with(async move |_host, port| {
        of_hook.fetch_add(1, Ordering::SeqCst);
        let index = usize::from(port) - 1;
        let (port, path) = (ports[index], &tunnels[index]);
        let way = async |port| tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
        Ok::<Connected, io::Error>(match index {
            0 | 1 => reach(port)?.into(),
            2 | 3 => way(port).await?.into(),
            _ if calls_are_even(&of_hook) => tokio::net::UnixStream::connect(path).await?.into(),
            _ => UnixStream::connect(path)?.into(),
        })
    });
    let client = client(config);
    // Every one of them is needed once.
    for silent in [[0, 1], [2, 3], [1, 4]] {
        silent.iter().for_each(|index| cluster[*index].pause());
        let guard = client.lock("job").acquire().await.expect("three of five");
        guard.extend().await.expect("three of five");
        assert!(guard.release().await.expect("a quorum").in_time());
        cluster.iter().for_each(Server::resume);
    }
    let status = client.status("job").await.expect("a name");
    let failed = |node: &NodeKey| matches!(node.state(), KeyState::Failed(_));
    assert!(!status.nodes().iter().any(failed), "{status}");
    // Five of the client's own, and one for each node that was looked at.
    assert!(calls.load(Ordering::SeqCst) >= 10);
}

fn calls_are_even(calls: &AtomicUsize) -> bool {
    calls.load(Ordering::SeqCst).is_multiple_of(2)
}

#[tokio::test]
async fn a_connection_that_breaks_is_made_anew_by_the_hook() {
    let node = Server::start();
    let client = client(by_way_of(settings(names(1)), vec![node.port()]));
    drop(client.lock("job").acquire().await.expect("a free lock"));
    node.restart_empty();
    let guard = client.lock("job").acquire().await;
    assert!(guard.expect("a way back").is_held());
}

/// Three hooks fail in ways of their own, and a fourth blocks its thread for as long as the test
/// wants: the node that is left hears of the client all the time.
#[tokio::test]
async fn a_hook_that_fails_hangs_or_panics_is_a_fault_of_its_node_alone() {
    let node = Server::start();
    let (end, wait) = mpsc::channel::<()>();
    let (wait, port) = (Mutex::new(wait), node.port());
    let config = settings(names(5))
        .node_timeout(100 * MS)
        .connect_with(async move |_, of| {
            match of {
                1 => Err(io::Error::new(
                    io::ErrorKind::ConnectionRefused,
                    "the tunnel is shut",
                )),
                2 => panic!("meant"),
                3 => std::future::pending().await,
                4 => {
                    // Until the test has ended.
                    let _ = wait.lock().map(|wait| wait.recv());
                    Err(io::ErrorKind::TimedOut.into())
                }
                _ => reach(port),
            }
        });
    let client = client(config);
    let lock = client.lock("job").wait(3000 * MS + SLACK);
    let error = lock.acquire().await.expect_err("one node of five");
    let said = said(&error);
    assert_eq!(
        said[0],
        Said::Failed(FaultKind::ConnectionRefused),
        "{error}"
    );
    assert_eq!(said[1], Said::Failed(FaultKind::Unreachable), "{error}");
    assert_eq!(said[2..4], [Said::Failed(FaultKind::Timeout); 2], "{error}");
    assert!(client.nodes().await[4].votes(), "the one that is left");
    assert!(error.to_string().contains("the tunnel is shut"), "{error}");
    drop(end);
}

#[tokio::test]
async fn a_hook_that_blocks_does_not_keep_the_client_from_extending() {
    let cluster = Cluster::start(3);
    let (end, wait) = mpsc::channel::<()>();
    let (wait, begun) = (Mutex::new(wait), Arc::new(AtomicUsize::new(0)));
    let (ports, of_hook) = (cluster.ports(), Arc::clone(&begun));
    let config = brisk(names(3)).connect_with(async move |_host, port| {
        if port == 3 {
            of_hook.fetch_add(1, Ordering::SeqCst);
            let _ = wait.lock().map(|wait| wait.recv());
        }
        reach(ports[usize::from(port) - 1])
    });
    let guard = client(config)
        .lock("job")
        .acquire()
        .await
        .expect("two of three");
    let blocks = || begun.load(Ordering::SeqCst) > 0;
    assert!(eventually_async(SLACK, blocks).await);
    assert!(renewed(&guard).await && renewed(&guard).await);
    drop(end);
}

#[tokio::test]
async fn credentials_are_asked_for_at_each_connection() {
    let cluster = Cluster::with(3, |_, node| node.args(["--requirepass", "first"]));
    let token = Arc::new(Mutex::new("first".to_owned()));
    let of_hook = Arc::clone(&token);
    let names: Vec<String> = cluster
        .ports()
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let config = settings(cluster.urls()).credentials_with(async move |node| {
        assert!(names.contains(&node), "{node}");
        let token = of_hook.lock().map(|token| token.clone());
        match token.as_deref() {
            Ok("") | Err(_) => Err(io::Error::other("the token server is away")),
            Ok(token) => Ok(Credentials::new(token).username("default")),
        }
    });
    assert!(!format!("{config:?}").contains("first"));
    let client = client(config);
    drop(
        client
            .lock("job")
            .acquire()
            .await
            .expect("the right password"),
    );
    assert!(
        client
            .check()
            .await
            .nodes()
            .iter()
            .all(|node| node.fault().is_none())
    );

    // Nothing is known, and the servers end their connections.
    token.lock().expect("no panic").clear();
    for node in cluster.iter() {
        let mut admin = redis::Client::open(format!("redis://:first@127.0.0.1:{}", node.port()))
            .and_then(|admin| admin.get_connection())
            .expect("an administrator");
        for words in [
            &["CONFIG", "SET", "requirepass", "second"][..],
            &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
        ] {
            let mut command = redis::cmd(words[0]);
            command
                .arg(&words[1..])
                .exec(&mut admin)
                .expect("a command");
        }
    }
    let begin = Instant::now();
    loop {
        let error = client
            .lock("job")
            .try_acquire()
            .await
            .expect_err("no password");
        if said(&error) == [Said::Failed(FaultKind::Auth); 3] {
            assert!(
                error.to_string().contains("the token server is away"),
                "{error}"
            );
            break;
        }
        assert!(begin.elapsed() < NODE_TIMEOUT + SLACK, "{error}");
    }
    *token.lock().expect("no panic") = "second".to_owned();
    let back = || async { client.lock("job").wait(200 * MS).acquire().await.is_ok() };
    while !back().await {
        assert!(begin.elapsed() < 2 * (NODE_TIMEOUT + SLACK), "not back");
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn tls_is_laid_over_the_hooks_connection_and_asks_for_the_name_of_the_url() {
    use crate::stand_in::StandIn;
    use crate::tls_front::{TlsFront, authority};

    let node = StandIn::start();
    let front = TlsFront::of(node.stub.port()).await;
    let port = front.port();
    let at = |url: &str| {
        let node = quorumlock::Node::url(url).ca_file(authority());
        settings([""; 0]).node(node)
    };
    let way = move |config: Config| config.connect_with(async move |_, _| reach(port));
    let guard = client(way(at("rediss://127.0.0.1:1")))
        .lock("job")
        .acquire()
        .await;
    assert!(guard.expect("the name of the certificate").is_held());
    let error = client(way(at("rediss://elsewhere.invalid:1")))
        .lock("job")
        .try_acquire()
        .await;
    let error = error.expect_err("another name");
    assert_eq!(said(&error), [Said::Failed(FaultKind::Tls)], "{error}");

    let pair = async |_, _| UnixStream::pair().map(|(one, _other)| one);
    let config = at("rediss://127.0.0.1:1").connect_with(pair);
    let error = client(config)
        .lock("job")
        .try_acquire()
        .await
        .expect_err("no TCP");
    assert_eq!(said(&error), [Said::Failed(FaultKind::Tls)], "{error}");
    assert!(error.to_string().contains("connect_with"), "{error}");
}
