//! The signals that the command gets.
//!
//! One that is ignored when the command starts (`nohup`, a background job of a script) is left
//! alone: a handler of ours would not outlive the exec, and the child would get the default.

use std::fs;
use std::io;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::poll_fn;
use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

/// Those that end the wait for a lock: their default would end the command.
const ENDING: [Signal; 6] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Those that are passed on beside them, once there is a child.
const CONTROL: [Signal; 3] = [Signal::SIGWINCH, Signal::SIGTSTP, Signal::SIGCONT];

pub(super) struct Signals {
    sources: Vec<(Signal, unix::Signal)>,
    ignored: u64,
}

impl Signals {
    /// Those that end the wait.
    ///
    /// # Errors
    /// The system gives no handler.
    pub(super) fn waiting() -> io::Result<Self> {
        let mut signals = Signals {
            sources: Vec::new(),
            ignored: ignored(),
        };
        signals.add(&ENDING)?;
        Ok(signals)
    }

    /// All that are passed on, and the news of children.
    ///
    /// # Errors
    /// The system gives no handler.
    pub(super) fn all(&mut self) -> io::Result<()> {
        self.add(&CONTROL)?;
        // Never ignored here: then there would be nobody to wait for.
        self.listen(Signal::SIGCHLD)
    }

    fn add(&mut self, signals: &[Signal]) -> io::Result<()> {
        for signal in signals {
            if self.ignored & (1 << (*signal as u32 - 1)) == 0 {
                self.listen(*signal)?;
            }
        }
        Ok(())
    }

    fn listen(&mut self, signal: Signal) -> io::Result<()> {
        let source = unix::signal(SignalKind::from_raw(signal as i32))?;
        self.sources.push((signal, source));
        Ok(())
    }

    /// The next signal's number. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> i32 {
        poll_fn(|context| self.poll(context)).await
    }

    /// A signal that has been seen already.
    pub(super) fn pending(&mut self) -> Option<i32> {
        self.next().now_or_never()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<i32> {
        for (signal, source) in &mut self.sources {
            if let Poll::Ready(Some(())) = source.poll_recv(context) {
                return Poll::Ready(*signal as i32);
            }
        }
        Poll::Pending
    }
}

/// The set of ignored signals, a bit each; none where the system does not tell.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
