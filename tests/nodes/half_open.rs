//! Sockets whose other end has gone without a word, quick.

use std::time::{Duration, Instant};

use crate::common::{MS, SLACK, client, settings, stored};
use crate::support::{Cluster, Proxy, eventually_async};

/// A connection whose oldest request has waited for five of these is given up.
const NODE_TIMEOUT: Duration = Duration::from_millis(300);
const GIVE_UP: Duration = Duration::from_millis(5 * 300);

/// So long may a connection take to be made, until that one is given up, too.
const CONNECTING: Duration = Duration::from_secs(2);

/// The network is well before anybody has noticed; the old sockets are not.
#[tokio::test]
async fn a_connection_that_turned_mute_is_given_up_and_made_anew() {
    is_back_after(Duration::ZERO, GIVE_UP).await;
}

/// By then the next connections were begun, into the same hole.
#[tokio::test]
async fn a_connection_that_is_made_into_a_hole_is_given_up_too() {
    is_back_after(GIVE_UP + 500 * MS, CONNECTING).await;
}

/// Live connections to two of three nodes turn mute, and stay so when the network is well again,
/// `later`. The nodes are back one second after `noticed`.
async fn is_back_after(later: Duration, noticed: Duration) {
    let cluster = Cluster::start(3);
    let proxies = Proxy::in_front_of_all(cluster.ports().into_iter().take(2));
    let mut urls = cluster.urls();
    for (url, proxy) in urls.iter_mut().zip(&proxies) {
        *url = proxy.url();
    }
    let client = client(settings(urls).node_timeout(NODE_TIMEOUT));
    let probe = cluster.probe();
    let warm = client.lock("warm").acquire().await.expect("a free lock");
    assert!(eventually_async(SLACK, || stored(&probe, "warm") == 3).await);
    warm.release().await.expect("a quorum");
    let before: Vec<usize> = proxies.iter().map(Proxy::accepted).collect();

    proxies.iter().for_each(Proxy::blackhole);
    let lost = client.lock("job").try_acquire().await;
    lost.expect_err("one node of three");
    tokio::time::sleep(later).await;
    let well = Instant::now();
    proxies.iter().for_each(Proxy::heal);
    let lock = client.lock("job").wait(noticed + 1000 * MS + SLACK);
    let guard = lock.acquire().await.expect("the nodes are back");
    let taken = well.elapsed();
    assert!(taken < noticed + 1000 * MS + SLACK, "{taken:?}");
    assert!(guard.is_held());
    let anew = proxies.iter().zip(&before);
    let anew = anew.filter(|(proxy, before)| proxy.accepted() > **before);
    assert!(anew.count() >= 1, "over which connection?");
}
