//! The Rust libraries behind one face, each at its defaults.

use std::{sync::Arc, time::Duration};

use distributed_lock_core::traits::{DistributedLock, LockHandle, LockProvider};
use distributed_lock_redis::{RedisLockHandle, RedisLockProvider};
use rand::RngExt;

use crate::contenders::PLAIN;

/// The TTL where a library has no default.
const TTL: Duration = Duration::from_secs(10);

/// The pause after a refusal where a library does not wait: a random one up to this, as the others
/// make it.
const RETRY_DELAY_MS: u64 = 200;

/// A library, connected.
#[derive(Clone)]
pub enum Peer {
    Quorumlock(quorumlock::Client),
    Rslock(rslock::LockManager),
    Distributed(Arc<RedisLockProvider>),
}

/// A lock that is held.
pub enum Held {
    Quorumlock(quorumlock::Guard),
    Rslock(rslock::LockGuard),
    Distributed(RedisLockHandle),
}

impl Peer {
    pub async fn connect(name: &str, urls: &[String]) -> Result<Self, String> {
        match name {
            "quorumlock" | PLAIN => {
                let config = quorumlock::Config::new(urls.to_vec()).fencing(name != PLAIN);
                quorumlock::Client::with_config(config)
                    .map(Self::Quorumlock)
                    .map_err(|error| error.to_string())
            }
            "rslock" => {
                let urls = urls.iter().map(String::as_str).collect();
                Ok(Self::Rslock(rslock::LockManager::new(urls)))
            }
            "distributed-lock-redis" => RedisLockProvider::builder()
                .urls(urls)
                .build()
                .await
                .map(|provider| Self::Distributed(Arc::new(provider)))
                .map_err(|error| error.to_string()),
            _ => Err(format!("no such library: {name}")),
        }
    }

    /// Takes the lock, waiting as the library does. None: refused, or given up.
    pub async fn acquire(&self, key: &str) -> Option<Held> {
        match self {
            Self::Quorumlock(client) => {
                let guard = client.lock(key).acquire().await.ok()?;
                Some(Held::Quorumlock(guard))
            }
            Self::Rslock(manager) => {
                let guard = manager.acquire(key.as_bytes(), TTL).await.ok()?;
                Some(Held::Rslock(guard))
            }
            Self::Distributed(provider) => {
                let handle = provider.create_lock(key).acquire(None).await.ok()?;
                Some(Held::Distributed(handle))
            }
        }
    }

    /// What a caller does before it asks again: nothing, where the library has waited.
    pub async fn pause(&self) {
        if let Self::Distributed(_) = self {
            let millis = rand::rng().random_range(0..RETRY_DELAY_MS);
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }
}

impl Held {
    /// Whether the library says that it has let go; rslock says nothing.
    pub async fn release(self) -> bool {
        match self {
            Self::Quorumlock(guard) => guard
                .release()
                .await
                .is_ok_and(|released| released.in_time()),
            Self::Rslock(guard) => {
                guard.release().await;
                true
            }
            Self::Distributed(handle) => handle.release().await.is_ok(),
        }
    }
}
