//! Nothing hangs.
//!
//! F10: quick with 2 runs of each set-up, `--full` with 100. The set-up with a silent name server
//! needs a network namespace of its own and stands in `silent_dns.rs`.

use std::time::{Duration, Instant};

use quorumlock::{AcquireError, Client, FaultKind, Node};

use crate::common::{MS, SLACK, Said, client, said, settings};
use crate::support::{Cluster, Proxy, Server, eventually_async, pick};

/// Longer than a connection may take to be made (2 s with these settings): a plain server says
/// nothing to a TLS handshake, so that only its end tells what was wrong.
const WAIT: Duration = Duration::from_secs(4);

/// Silence costs one of these a round.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// A tar pit, a plain port where TLS is expected, a wrong password, and two healthy nodes.
struct SetUp {
    cluster: Cluster,
    tar_pit: Proxy,
    closed: Server,
}

impl SetUp {
    fn new() -> SetUp {
        let cluster = Cluster::start(4);
        let tar_pit = Proxy::in_front_of(cluster[0].port());
        tar_pit.blackhole();
        let closed = Server::builder().args(["--requirepass", "right"]).start();
        SetUp {
            cluster,
            tar_pit,
            closed,
        }
    }

    fn client(&self) -> Client {
        let urls = [self.tar_pit.url(), self.second()];
        let config = settings(urls).node_timeout(NODE_TIMEOUT).wait(WAIT).node(
            Node::url(self.closed.url())
                .username("default")
                .password("wrong"),
        );
        let config = config.node(self.cluster[2].url());
        client(config.node(self.cluster[3].url()))
    }

    /// With TLS asked for where the build has it; else a node that is down.
    fn second(&self) -> String {
        if cfg!(feature = "tls") {
            return self.cluster[1].url().replace("redis://", "rediss://");
        }
        self.cluster[1].kill();
        self.cluster[1].url()
    }
}

#[tokio::test]
async fn a_tar_pit_a_plain_port_and_a_wrong_password_end_in_time_and_are_named() {
    let set_up = SetUp::new();
    let second = match cfg!(feature = "tls") {
        true => FaultKind::Tls,
        false => FaultKind::ConnectionRefused,
    };
    let expected = [FaultKind::Timeout, second, FaultKind::Auth];
    for _ in 0..pick(2, 100) {
        let client = set_up.client();
        let begin = Instant::now();
        let error = client.lock("job").acquire().await;
        let error = error.expect_err("two of five");
        let taken = begin.elapsed();
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
        assert!(taken >= WAIT, "it gave up after {taken:?}: {error}");
        assert!(taken < WAIT + NODE_TIMEOUT + SLACK, "{taken:?}: {error}");
        assert_eq!(said(&error)[..3], expected.map(Said::Failed), "{error}");
        assert!(!error.to_string().contains("wrong\""), "{error}");
    }
    // Dropped clients leave no connection behind, the half-open ones included.
    let closed = || set_up.tar_pit.connections() == 0 && connections(&set_up.cluster[2]) == 0;
    assert!(eventually_async(5000 * MS, closed).await);
}

/// Connections to the server beside the one that asks.
fn connections(server: &Server) -> usize {
    server.probe().client_list().len() - 1
}

#[tokio::test]
async fn one_tar_pit_of_five_is_not_waited_for() {
    let cluster = Cluster::start(5);
    let tar_pit = Proxy::in_front_of(cluster[0].port());
    tar_pit.blackhole();
    let mut urls = cluster.urls();
    urls[0] = tar_pit.url();
    for _ in 0..pick(2, 100) {
        let client = client(settings(urls.clone()));
        let begin = Instant::now();
        let guard = client.lock("job").acquire().await.expect("four nodes");
        guard.release().await.expect("four nodes");
        assert!(begin.elapsed() < 2 * NODE_TIMEOUT + SLACK);
    }
    let closed = || tar_pit.connections() == 0 && connections(&cluster[4]) == 0;
    assert!(eventually_async(5000 * MS, closed).await);
}

#[tokio::test]
async fn a_node_that_stalls_in_mid_use_ends_no_call_late() {
    let cluster = Cluster::start(3);
    let config = settings(cluster.urls()).node_timeout(NODE_TIMEOUT);
    let client = client(config.wait(500 * MS));
    for _ in 0..pick(2, 20) {
        let lock = client.lock("job").ttl(20_000 * MS);
        let guard = lock.acquire().await.expect("a free lock");
        cluster[0].pause();
        cluster[1].pause();
        let begin = Instant::now();
        let released = guard.release().await;
        assert!(released.is_err(), "one of three is enough: {released:?}");
        assert!(begin.elapsed() < NODE_TIMEOUT + SLACK);
        let begin = Instant::now();
        let error = client.lock("job").acquire().await.expect_err("no quorum");
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
        assert!(begin.elapsed() < 500 * MS + NODE_TIMEOUT + SLACK);
        assert_eq!(said(&error)[..2], [Said::Failed(FaultKind::Timeout); 2]);
        cluster[0].resume();
        cluster[1].resume();
        // The releases that were under way still arrive.
        let next = client.lock("job").wait(20_000 * MS).acquire().await;
        drop(next.expect("all nodes run again"));
    }
}
