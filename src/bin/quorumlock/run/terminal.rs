//! The controlling terminal, and who has it.
//!
//! The child's group is not ours, and only one group at a time may read a terminal and gets its
//! Ctrl-C. So the child's group is given the terminal, as a shell does it, where ours has it: at
//! once if both standard input and output are terminals; else when the child asks for it, by
//! reading or by changing its modes (SIGTTIN, SIGTTOU). In `run … | less` it is `less` that needs
//! the terminal. The child's stop is ours, so that the shell around sees a stopped job, and
//! `fg` gives the terminal back.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, getpgrp, getpid, getppid, getsid, tcgetpgrp, tcsetpgrp};

pub(super) struct Terminal {
    /// `None` without a controlling terminal.
    device: Option<File>,
    child: Pid,
}

/// What a stop of the child comes to.
pub(super) enum Stop {
    /// It may go on: it has the terminal that it asked for, or there is no shell to stop for.
    GoOn,
    /// The whole job is to stop.
    Job,
    /// Only the child has stopped.
    Child,
}

impl Terminal {
    pub(super) fn of(child: Pid) -> Self {
        let device = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let terminal = Terminal {
            device: device.ok(),
            child,
        };
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            terminal.give();
        }
        terminal
    }

    /// Gives the terminal to the child if it is ours to give; says whether the child has it.
    pub(super) fn give(&self) -> bool {
        match self.holder() {
            Some(holder) if holder == self.child => true,
            Some(holder) if holder == getpgrp() => self.set(self.child),
            _ => false,
        }
    }

    /// Takes the terminal back from the child; says whether the child had it.
    pub(super) fn take_back(&self) -> bool {
        self.holder() == Some(self.child) && self.set(getpgrp())
    }

    /// The child was stopped by `signal`.
    pub(super) fn stopped(&self, signal: Signal) -> Stop {
        let Some(holder) = self.holder() else {
            return Stop::Child;
        };
        let wants = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        if wants && self.give() {
            return Stop::GoOn;
        }
        let by_terminal = wants || signal == Signal::SIGTSTP;
        if by_terminal && !has_shell() {
            // Without a shell that could go on with it, such a signal stops nobody.
            return Stop::GoOn;
        }
        match wants || holder == self.child || holder == getpgrp() {
            true => Stop::Job,
            false => Stop::Child,
        }
    }

    /// Stops this process, and with it the others of the job; returns when it goes on.
    pub(super) fn stop_job(&self) {
        self.take_back();
        // What stopped the child was for the whole job, and only the child's group has got it. The
        // shell sees a stopped job once nobody of our group runs. This signal has no handler here,
        // and the kernel drops it where nobody could go on with us.
        let _ = killpg(getpgrp(), Signal::SIGTTIN);
    }

    fn holder(&self) -> Option<Pid> {
        tcgetpgrp(self.device.as_ref()?).ok()
    }

    fn set(&self, group: Pid) -> bool {
        let Some(device) = &self.device else {
            return false;
        };
        // Whoever does this from the background gets SIGTTOU for it, unless that is blocked.
        let mut set = SigSet::empty();
        set.add(Signal::SIGTTOU);
        let before = set.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
        let done = tcsetpgrp(device, group).is_ok();
        if let Ok(before) = before {
            let _ = before.thread_set_mask();
        }
        done
    }
}

/// Ends this process as an interrupt at the terminal ends whatever runs there: with the rest of our
/// group, and so that a shell around leaves its loop or its script, which an exit status alone does
/// not tell it. Returns where there is no shell.
pub(super) fn interrupt() {
    if has_shell() {
        let _ = killpg(getpgrp(), Signal::SIGINT);
        let _ = signal_hook::low_level::emulate_default_handler(Signal::SIGINT as i32);
    }
}

/// Whether a shell with job control may be around: a parent in our session.
fn has_shell() -> bool {
    match (getsid(None), getsid(Some(getppid()))) {
        (Ok(ours), Ok(parents)) => ours == parents && ours != getpid(),
        _ => false,
    }
}
