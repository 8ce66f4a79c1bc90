//! While the child runs: signals, its end, and the loss of the lock.
//!
//! ```text
//!            remaining ≤ grace + lead              grace over, or remaining ≤ lead
//!   running ──────── TERM ────────► ending ──────────────── KILL ──────────► killed
//!      │                                                                       │
//!      └── lost without notice (deleted, taken, a standstill): KILL ───────────┘
//! ```
//!
//! It ends when nobody of the group is left.

use std::pin::pin;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use quorumlock::{Guard, Loss};
use serde_json::Map;

use super::super::exit;
use super::super::out::Out;
use super::child::{Child, News};
use super::plan::Plan;
use super::signals::Signals;
use super::terminal::{Stop, Terminal};

/// How often the group is looked at once its leader is gone: the end of a member that is not our
/// child is not told.
const LOOK: Duration = Duration::from_millis(50);

/// How long killed processes may take to vanish: one that hangs in the kernel may never do.
const VANISHING: Duration = Duration::from_secs(5);

/// How it ended.
pub(super) struct End {
    pub(super) code: u8,
    pub(super) loss: Option<Loss>,
    /// By Ctrl-C at the terminal: the shell around is to hear of it.
    pub(super) interrupted: bool,
}

enum Phase {
    Running,
    Ending { since: Instant },
    Killed { since: Instant },
}

struct Watch<'a> {
    plan: &'a Plan,
    guard: &'a Guard,
    child: Child,
    terminal: Terminal,
    phase: Phase,
    out: Out,
}

pub(super) async fn watch(
    plan: &Plan,
    guard: &Guard,
    child: Child,
    signals: &mut Signals,
    out: Out,
) -> End {
    let terminal = Terminal::of(child.group());
    let mut watch = Watch {
        plan,
        guard,
        child,
        terminal,
        phase: Phase::Running,
        out,
    };
    let mut lost = pin!(guard.lost());
    let mut loss = None;
    while !watch.over() {
        tokio::select! {
            biased;
            why = &mut lost, if loss.is_none() => {
                loss = Some(why);
                watch.kill();
            }
            signal = signals.next() => watch.signal(signal),
            () = tokio::time::sleep(watch.pause()) => {}
        }
        watch.reap();
        watch.check();
    }
    let code = watch.child.code().unwrap_or(exit::INTERNAL);
    let by_interrupt = code == exit::by_signal(Signal::SIGINT as i32);
    let interrupted = watch.terminal.take_back() && by_interrupt;
    // A child that was told to end is no success, even if an extension came through after that.
    let ended = !matches!(watch.phase, Phase::Running);
    End {
        code,
        loss: loss.or(ended.then_some(Loss::Expired)),
        interrupted,
    }
}

impl Watch<'_> {
    fn over(&mut self) -> bool {
        let stuck = match self.phase {
            Phase::Killed { since } => since.elapsed() >= VANISHING,
            _ => false,
        };
        self.child.is_gone() || stuck
    }

    /// Until the next moment at which something is due.
    fn pause(&self) -> Duration {
        let (left, plan) = (self.guard.remaining(), self.plan);
        let due = match self.phase {
            Phase::Running => left.saturating_sub(plan.grace + plan.lead),
            Phase::Ending { since } => {
                let over = plan.grace.saturating_sub(since.elapsed());
                over.min(left.saturating_sub(plan.lead))
            }
            Phase::Killed { .. } => LOOK,
        };
        match self.child.code() {
            Some(_) => due.min(LOOK),
            None => due,
        }
    }

    /// Does what is due.
    fn check(&mut self) {
        let (left, plan) = (self.guard.remaining(), self.plan);
        match self.phase {
            Phase::Running if left <= plan.lead => self.kill(),
            Phase::Running if left <= plan.grace + plan.lead => self.terminate(left),
            Phase::Ending { since } if left <= plan.lead || since.elapsed() >= plan.grace => {
                self.kill();
            }
            _ => {}
        }
    }

    fn terminate(&mut self, left: Duration) {
        self.phase = Phase::Ending {
            since: Instant::now(),
        };
        self.child.signal(Signal::SIGTERM);
        // A stopped process can take no notice otherwise.
        self.child.signal(Signal::SIGCONT);
        let text = format!(
            "lock {} is about to be lost: {left:.1?} left, and no quorum extends it; the child is \
             told to end",
            self.plan.name()
        );
        self.out.complain_with("losing", text, Map::new());
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killed { .. }) {
            self.phase = Phase::Killed {
                since: Instant::now(),
            };
            self.child.signal(Signal::SIGKILL);
        }
    }

    fn signal(&mut self, signal: i32) {
        match Signal::try_from(signal) {
            Ok(Signal::SIGCHLD) | Err(_) => {}
            Ok(Signal::SIGCONT) => self.go_on(),
            Ok(signal) => self.child.signal(signal),
        }
    }

    fn reap(&mut self) {
        while let News::Stopped(signal) = self.child.news() {
            match self.terminal.stopped(signal) {
                Stop::GoOn => self.child.signal(Signal::SIGCONT),
                Stop::Child => {}
                Stop::Job => {
                    // Members that ignore Ctrl-Z must not work on while nobody extends.
                    self.child.signal(Signal::SIGSTOP);
                    self.terminal.stop_job();
                    self.go_on();
                }
            }
        }
    }

    /// After a stop: the lock first.
    fn go_on(&mut self) {
        if self.guard.remaining() <= self.plan.lead {
            self.kill();
            return;
        }
        self.terminal.give();
        self.child.signal(Signal::SIGCONT);
    }
}
