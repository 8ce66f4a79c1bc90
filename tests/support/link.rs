//! The proxy's inside: one loop over all its sockets.

use std::io::{self, Read};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::lane::{Fate, Link};
use super::ports::{ReservedPort, stop_listening};
use super::proxy::Counts;

/// Without any event the loop still looks round this often.
const IDLE: Duration = Duration::from_secs(1);

pub(super) enum Order {
    Heal,
    Delay(Duration),
    Blackhole,
    HoldRequests(bool),
    HoldReplies(bool),
    CloseListener,
    OpenListener,
    Reset,
    Set(Trap),
    Stop,
}

/// A fault that waits for one request.
pub(super) struct Trap {
    pub(super) kind: TrapKind,
    needle: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TrapKind {
    BeforeRequest,
    AfterRequest,
    MidReply,
}

impl Trap {
    pub(super) fn new(kind: TrapKind, needle: &str) -> Trap {
        Trap {
            kind,
            needle: needle.to_ascii_lowercase().into_bytes(),
        }
    }

    pub(super) fn fits(&self, request: &[u8]) -> bool {
        let request = request.to_ascii_lowercase();
        self.needle.is_empty() || request.windows(self.needle.len()).any(|w| w == self.needle)
    }
}

/// The faults in force.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) delay: Duration,
    pub(super) blackhole: bool,
    pub(super) hold_requests: bool,
    pub(super) hold_replies: bool,
    pub(super) trap: Option<Trap>,
}

pub(super) struct Engine {
    upstream: u16,
    port: Arc<ReservedPort>,
    listener: Option<TcpListener>,
    orders: mpsc::Receiver<(Order, mpsc::SyncSender<()>)>,
    woken: UnixStream,
    counts: Arc<Counts>,
    faults: Faults,
    links: Vec<Link>,
    stopped: bool,
}

impl Engine {
    pub(super) fn new(
        upstream: u16,
        port: Arc<ReservedPort>,
        orders: mpsc::Receiver<(Order, mpsc::SyncSender<()>)>,
        woken: UnixStream,
        counts: Arc<Counts>,
    ) -> io::Result<Engine> {
        woken.set_nonblocking(true)?;
        let mut engine = Engine {
            upstream,
            port,
            listener: None,
            orders,
            woken,
            counts,
            faults: Faults::default(),
            links: Vec::new(),
            stopped: false,
        };
        engine.open_listener()?;
        Ok(engine)
    }

    /// Ends at the order to stop, which the proxy gives when it is dropped.
    pub(super) fn run(&mut self) {
        while !self.stopped {
            self.wait();
            self.obey();
            self.accept();
            let (now, faults) = (Instant::now(), &mut self.faults);
            let upstream = self.upstream;
            self.links
                .retain_mut(|link| match link.turn(faults, upstream, now) {
                    Fate::Keep => true,
                    Fate::Close => false,
                    Fate::Reset => {
                        link.reset();
                        false
                    }
                });
            self.counts.open.store(self.links.len(), Ordering::Relaxed);
        }
        self.close_listener();
    }

    fn wait(&self) {
        let watch = |fd: RawFd, events| libc::pollfd {
            fd,
            events,
            revents: 0,
        };
        let mut watched = vec![watch(self.woken.as_raw_fd(), libc::POLLIN)];
        watched.extend(
            self.listener
                .iter()
                .map(|l| watch(l.as_raw_fd(), libc::POLLIN)),
        );
        let sockets = self.links.iter().flat_map(Link::interests);
        watched.extend(sockets.map(|(fd, events)| watch(fd, events)));
        let due = self
            .links
            .iter()
            .filter_map(|link| link.next_due(&self.faults))
            .min();
        let now = Instant::now();
        let left = due.map_or(IDLE, |due| due.saturating_duration_since(now).min(IDLE));
        let limit = libc::timespec {
            tv_sec: left.as_secs() as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        };
        let count = watched.len() as libc::nfds_t;
        // SAFETY: `watched` holds `count` entries and, like `limit`, outlives the call. Whatever
        // it returns, the sockets are tried afterwards without blocking.
        unsafe { libc::ppoll(watched.as_mut_ptr(), count, &limit, std::ptr::null()) };
    }

    fn obey(&mut self) {
        let mut bytes = [0; 64];
        let _ = self.woken.read(&mut bytes);
        while let Ok((order, done)) = self.orders.try_recv() {
            match order {
                Order::Heal => {
                    self.faults = Faults::default();
                    self.links.iter_mut().for_each(Link::heal);
                    self.reopen();
                }
                Order::Delay(delay) => self.faults.delay = delay,
                Order::Blackhole => {
                    self.faults.blackhole = true;
                    self.links.iter_mut().for_each(Link::swallow_queued);
                }
                Order::HoldRequests(hold) => self.faults.hold_requests = hold,
                Order::HoldReplies(hold) => self.faults.hold_replies = hold,
                Order::CloseListener => {
                    // The kernel would reset those that it has accepted and we have not.
                    self.accept();
                    self.close_listener();
                }
                Order::OpenListener => self.reopen(),
                Order::Reset => {
                    // Also those that the kernel has accepted and we have not.
                    self.accept();
                    self.links.drain(..).for_each(|link| link.reset());
                    self.counts.open.store(0, Ordering::Relaxed);
                }
                Order::Set(trap) => self.faults.trap = Some(trap),
                Order::Stop => self.stopped = true,
            }
            let _ = done.send(());
        }
    }

    fn reopen(&mut self) {
        if self.listener.is_none() {
            self.open_listener()
                .expect("a reserved port can be listened on again");
        }
    }

    fn close_listener(&mut self) {
        if let Some(listener) = self.listener.take() {
            stop_listening(&listener);
        }
    }

    fn open_listener(&mut self) -> io::Result<()> {
        let listener = self.port.listen()?;
        listener.set_nonblocking(true)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn accept(&mut self) {
        let Some(listener) = &self.listener else {
            return;
        };
        while let Ok((client, _)) = listener.accept() {
            self.counts.accepted.fetch_add(1, Ordering::Relaxed);
            if let Some(link) = Link::new(client, self.upstream, &self.faults) {
                self.links.push(link);
            }
        }
        self.counts.open.store(self.links.len(), Ordering::Relaxed);
    }
}
