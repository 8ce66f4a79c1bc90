//! A proxy that hands on at once what a client says, and the node's answers as late as it is told.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::{Builder, Runtime},
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Chunks of answers that are under way over one connection; more than that wait in the socket.
const UNDER_WAY: usize = 10_000;

/// A proxy on a thread of its own; it ends when this value is dropped.
pub struct Proxy {
    port: u16,
    delay: Arc<AtomicU64>,
    _runtime: Runtime,
}

impl Proxy {
    /// A proxy in front of a `redis://` URL. It does not delay yet.
    pub fn start(url: &str) -> io::Result<Self> {
        let node = url
            .trim_start_matches("redis://")
            .trim_end_matches('/')
            .to_owned();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let port = listener.local_addr()?.port();
        let delay = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&delay);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (node, delay) = (node.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    // The end of a connection is no fault of the proxy.
                    let _ = join(client, &node, delay).await;
                });
            }
        });
        Ok(Self {
            port,
            delay,
            _runtime: runtime,
        })
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn delay(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.delay.store(micros, Ordering::Relaxed);
    }
}

async fn join(client: TcpStream, node: &str, delay: Arc<AtomicU64>) -> io::Result<()> {
    let node = TcpStream::connect(node).await?;
    client.set_nodelay(true)?;
    node.set_nodelay(true)?;
    let (mut from_client, to_client) = client.into_split();
    let (from_node, mut to_node) = node.into_split();
    tokio::spawn(late(from_node, to_client, delay));
    tokio::io::copy(&mut from_client, &mut to_node).await?;
    Ok(())
}

/// Each chunk for itself: what comes behind a late one does not become later still.
async fn late(mut from: OwnedReadHalf, to: OwnedWriteHalf, delay: Arc<AtomicU64>) {
    let (sender, receiver) = mpsc::channel(UNDER_WAY);
    tokio::spawn(write(to, receiver));
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let due = Instant::now() + Duration::from_micros(delay.load(Ordering::Relaxed));
        if sender.send((due, buffer[..count].to_vec())).await.is_err() {
            break;
        }
    }
}

async fn write(mut to: OwnedWriteHalf, mut chunks: mpsc::Receiver<(Instant, Vec<u8>)>) {
    while let Some((due, chunk)) = chunks.recv().await {
        if due > Instant::now() {
            sleep_until(due).await;
        }
        if to.write_all(&chunk).await.is_err() {
            break;
        }
    }
}
