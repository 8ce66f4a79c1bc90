//! The raw redis-rs floor: Redlock's commands and nothing else.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use redis::{Cmd, IntoConnectionInfo, RedisResult, Value, aio::MultiplexedConnection};

use super::Contender;

/// Deletes the key only where it still holds our token.
const RELEASE: &str = r#"
if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1])
end
return 0
"#;

/// What anyone gets who sends Redlock's commands through plain redis-rs multiplexed connections:
/// to all nodes at once, awaited to the reply that makes the quorum, the rest read in the
/// background.
///
/// It keeps redis-rs's defaults (response timeout, queue of 50) but for TCP_NODELAY, so that the
/// product is not compared with Nagle's algorithm. It is a floor for speed and no lock: it has no
/// validity, rolls nothing back, and a release can overtake a SET that waits for a place in
/// redis-rs's queue.
#[derive(Clone)]
pub struct RawFloor {
    nodes: Arc<[MultiplexedConnection]>,
    quorum: usize,
    release_sha: Arc<str>,
}

impl RawFloor {
    /// Connects to every node, on the runtime of the caller, and loads the release script there.
    pub async fn connect(urls: &[String]) -> RedisResult<Self> {
        let mut nodes = Vec::with_capacity(urls.len());
        let mut release_sha = String::new();
        for url in urls {
            let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
            let info = url.as_str().into_connection_info()?.set_tcp_settings(tcp);
            let client = redis::Client::open(info)?;
            let mut node = client.get_multiplexed_async_connection().await?;
            release_sha = redis::cmd("SCRIPT")
                .arg("LOAD")
                .arg(RELEASE)
                .query_async(&mut node)
                .await?;
            nodes.push(node);
        }
        Ok(Self {
            quorum: nodes.len() / 2 + 1,
            nodes: nodes.into(),
            release_sha: release_sha.into(),
        })
    }

    /// One round of SET NX PX under a fresh owner token; the token, if a quorum granted.
    pub async fn acquire(&self, key: &str, ttl: Duration) -> Option<String> {
        let token = owner_token();
        let mut command = redis::cmd("SET");
        command.arg(key).arg(&token).arg("NX").arg("PX");
        command.arg(u64::try_from(ttl.as_millis()).expect("a TTL within 64 bits"));
        self.round(command).await.then_some(token)
    }

    /// One round of compare-and-delete; whether a quorum deleted.
    pub async fn release(&self, key: &str, token: &str) -> bool {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&*self.release_sha).arg(1).arg(key).arg(token);
        self.round(command).await
    }

    async fn round(&self, command: Cmd) -> bool {
        let command = Arc::new(command);
        let mut replies: FuturesUnordered<_> = self
            .nodes
            .iter()
            .map(|node| {
                let (mut node, command) = (node.clone(), Arc::clone(&command));
                async move { node.send_packed_command(&command).await }
            })
            .collect();
        let mut grants = 0;
        while grants < self.quorum
            && let Some(reply) = replies.next().await
        {
            grants += usize::from(matches!(reply, Ok(Value::Okay | Value::Int(1))));
        }
        if !replies.is_empty() {
            tokio::spawn(async move { while replies.next().await.is_some() {} });
        }
        grants >= self.quorum
    }
}

/// One acquire+release pair of the raw floor.
///
/// # Panics
/// If one of the servers does not answer.
pub async fn raw_pair(urls: &[String], ttl: Duration) -> Contender {
    let floor = RawFloor::connect(urls)
        .await
        .expect("the servers that we started");
    Contender::new("raw redis-rs", move |key| {
        let floor = floor.clone();
        async move {
            match floor.acquire(&key, ttl).await {
                Some(token) => floor.release(&key, &token).await,
                None => false,
            }
        }
    })
}

/// 20 random bytes in hex.
fn owner_token() -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0_u8; 20];
    getrandom::fill(&mut bytes).expect("random bytes from the operating system");
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}
