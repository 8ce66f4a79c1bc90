//! A TCP proxy that does to a connection what a network can do to it.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::link::{Engine, Order, Trap, TrapKind};
use super::ports::ReservedPort;

/// An order is carried out between two turns of the proxy's loop; none takes this long.
const ORDER_LIMIT: Duration = Duration::from_secs(5);

/// Stands on a port of its own before a server. One thread serves all its connections.
///
/// Every method returns when its fault is in force. Delay, blackhole and holding are independent
/// and can be combined; [`heal`](Proxy::heal) ends them all. The TCP handshake itself is never
/// delayed or swallowed: a connect to the proxy succeeds at once, unless it refuses.
pub struct Proxy {
    port: Arc<ReservedPort>,
    orders: mpsc::Sender<(Order, mpsc::SyncSender<()>)>,
    waker: UnixStream,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) open: AtomicUsize,
    pub(super) accepted: AtomicUsize,
}

impl Proxy {
    /// A proxy before the server on this loopback port, without any fault.
    pub fn in_front_of(upstream: u16) -> Proxy {
        let port = Arc::new(ReservedPort::any().expect("a port for a proxy"));
        let (orders, queue) = mpsc::channel();
        let (waker, woken) = UnixStream::pair().expect("a socket pair");
        let counts = Arc::new(Counts::default());
        let engine = Engine::new(
            upstream,
            Arc::clone(&port),
            queue,
            woken,
            Arc::clone(&counts),
        );
        let mut engine = engine.expect("a listener for a proxy");
        let thread = std::thread::Builder::new().name(format!("proxy {}", port.number()));
        let thread = thread
            .spawn(move || engine.run())
            .expect("a thread for a proxy");
        Proxy {
            port,
            orders,
            waker,
            counts,
            thread: Some(thread),
        }
    }

    /// One proxy before each of several servers.
    pub fn in_front_of_all(upstreams: impl IntoIterator<Item = u16>) -> Vec<Proxy> {
        upstreams.into_iter().map(Proxy::in_front_of).collect()
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }

    /// Connections accepted since the start.
    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// No fault any more: nothing is delayed, what was held is delivered, the port listens, traps
    /// are taken away. Only connections that lost bytes to a blackhole stay mute for good.
    pub fn heal(&self) {
        self.order(Order::Heal);
    }

    /// The same as [`heal`](Proxy::heal), named as a mode.
    pub fn pass(&self) {
        self.heal();
    }

    /// From now on each chunk arrives this much later than it was sent, in each direction. A
    /// latency, not a limit of throughput: chunks travel side by side and keep their order.
    pub fn delay(&self, each_way: Duration) {
        self.order(Order::Delay(each_way));
    }

    /// Swallows whatever either side sends, also what was under way; accepts new connections and
    /// swallows theirs. Nobody sees an end or a reset, the server's own end included.
    ///
    /// A connection that lost bytes cannot be mended, as a stream with a gap is no stream: after
    /// `heal` it stays open and mute, as behind a firewall that forgot it. For a partition whose
    /// bytes arrive late, hold both ways instead.
    pub fn blackhole(&self) {
        self.order(Order::Blackhole);
    }

    /// Refuses new connections and resets those that are open, as if the server had stopped.
    pub fn refuse(&self) {
        self.order(Order::CloseListener);
        self.order(Order::Reset);
    }

    /// Refuses new connections only.
    pub fn refuse_new(&self) {
        self.order(Order::CloseListener);
    }

    /// Listens again on the same port.
    pub fn reopen(&self) {
        self.order(Order::OpenListener);
    }

    /// Resets the open connections (RST, not FIN). New ones are served.
    pub fn reset(&self) {
        self.order(Order::Reset);
    }

    /// Once: the next request that contains `needle` reaches the server, and the connection is
    /// reset when the reply is there, without a byte of it being passed on. So the server has run
    /// the command, and the client cannot know. An empty needle fits every request; compared
    /// without regard to case.
    pub fn reset_after_request(&self, needle: &str) {
        self.trap(TrapKind::AfterRequest, needle);
    }

    /// Once: the connection is reset at the next request with `needle`, which the server never
    /// sees.
    pub fn reset_before_request(&self, needle: &str) {
        self.trap(TrapKind::BeforeRequest, needle);
    }

    /// Once: as `reset_after_request`, but the first half of the reply is passed on.
    pub fn reset_mid_reply(&self, needle: &str) {
        self.trap(TrapKind::MidReply, needle);
    }

    /// Keeps what servers send until [`release_replies`](Proxy::release_replies); requests pass.
    pub fn hold_replies(&self) {
        self.order(Order::HoldReplies(true));
    }

    /// Delivers the kept replies in order.
    pub fn release_replies(&self) {
        self.order(Order::HoldReplies(false));
    }

    /// Keeps what clients send until [`release_requests`](Proxy::release_requests), and delivers
    /// it then even if the client has left, as a slow network would.
    pub fn hold_requests(&self) {
        self.order(Order::HoldRequests(true));
    }

    /// Delivers the kept requests in order.
    pub fn release_requests(&self) {
        self.order(Order::HoldRequests(false));
    }

    fn trap(&self, kind: TrapKind, needle: &str) {
        self.order(Order::Set(Trap::new(kind, needle)));
    }

    fn order(&self, order: Order) {
        let (done, wait) = mpsc::sync_channel(1);
        self.orders
            .send((order, done))
            .expect("the proxy's thread runs");
        (&self.waker)
            .write_all(&[1])
            .expect("the proxy's thread can be woken");
        wait.recv_timeout(ORDER_LIMIT)
            .expect("the proxy's thread carries out orders");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let (done, _wait) = mpsc::sync_channel(1);
        let _ = self.orders.send((Order::Stop, done));
        let _ = (&self.waker).write_all(&[1]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
