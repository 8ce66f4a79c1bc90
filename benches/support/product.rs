//! The product, as a contender beside the raw floor.

use quorumlock::{Client, Config};

use super::Contender;

/// A client of these nodes with the library's defaults.
///
/// # Panics
/// If the URLs are no URLs.
pub fn client(urls: &[String]) -> Client {
    Client::open(urls).expect("URLs of servers that we started")
}

/// The same without fencing tokens: what redis-rs is asked to do, and no more.
///
/// # Panics
/// If the URLs are no URLs.
pub fn plain(urls: &[String]) -> Client {
    let config = Config::new(urls.to_vec()).fencing(false);
    Client::with_config(config).expect("URLs of servers that we started")
}

/// One acquire+release pair through `client`: the lock is made, taken and given back.
pub fn pair(name: &str, client: Client) -> Contender {
    Contender::new(name, move |key| {
        let client = client.clone();
        async move {
            match client.lock(key).acquire().await {
                Ok(guard) => guard
                    .release()
                    .await
                    .is_ok_and(|released| released.in_time()),
                Err(_) => false,
            }
        }
    })
}

/// One acquire through `client`; the guard is dropped, and nobody waits for the release.
pub fn acquire(name: &str, config: Config) -> Contender {
    let client = Client::with_config(config).expect("a configuration of the bench");
    Contender::new(name, move |key| {
        let client = client.clone();
        async move { client.lock(key).acquire().await.is_ok() }
    })
}
