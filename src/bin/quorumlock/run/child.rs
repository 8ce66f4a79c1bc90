//! The child, and the process group that it leads.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use quorumlock::Guard;

use super::super::exit;
use super::plan::Plan;
use super::token;

/// The variables that the child gets.
const RESOURCE: &str = "QUORUMLOCK_RESOURCE";
const TOKEN: &str = "QUORUMLOCK_FENCING_TOKEN";

/// The leader of a group of its own: it and whatever it starts can be told to end together, and
/// nobody else with them.
pub(super) struct Child {
    leader: Pid,
    code: Option<u8>,
    gone: bool,
}

/// Why there is no child.
pub(super) struct Refused {
    pub(super) code: u8,
    pub(super) text: String,
}

/// What a child has to tell.
pub(super) enum News {
    /// The leader was stopped by this signal.
    Stopped(Signal),
    /// Nothing more for now.
    None,
}

impl Child {
    /// # Errors
    /// The program cannot be started; with the exit status for that.
    pub(super) fn start(plan: &Plan, guard: &Guard) -> Result<Self, Refused> {
        adopt_orphans();
        let empty = OsStr::new("");
        let program = plan.command.first().map_or(empty, |name| name.as_os_str());
        let mut command = Command::new(program);
        command.args(plan.command.iter().skip(1));
        command.env(RESOURCE, &plan.resource);
        match token(guard) {
            Some(token) => command.env(TOKEN, token),
            // Not that of a command around this one.
            None => command.env_remove(TOKEN),
        };
        let child = command.process_group(0).spawn();
        let child = child.map_err(|error| refused(program, &error))?;
        let leader = i32::try_from(child.id()).map_err(|_| Refused {
            code: exit::INTERNAL,
            text: "a process without a number".to_owned(),
        })?;
        // Waited for below: all of its group together.
        drop(child);
        Ok(Child {
            leader: Pid::from_raw(leader),
            code: None,
            gone: false,
        })
    }

    pub(super) fn group(&self) -> Pid {
        self.leader
    }

    /// The exit status of the leader, if it has ended.
    pub(super) fn code(&self) -> Option<u8> {
        self.code
    }

    /// Sends a signal to all of the group. Nobody there is no error; a member that belongs to
    /// another user is left out by the kernel.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.gone {
            let _ = killpg(self.leader, signal);
        }
    }

    /// Takes in what the children have to tell.
    pub(super) fn news(&mut self) -> News {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        loop {
            match waitpid(None, Some(flags)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.leader => {
                    // The low eight bits are all that there is.
                    self.code = Some(code.to_le_bytes()[0]);
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.leader => {
                    self.code = Some(exit::by_signal(signal as i32));
                }
                Ok(WaitStatus::Stopped(pid, signal)) if pid == self.leader => {
                    return News::Stopped(signal);
                }
                Ok(WaitStatus::StillAlive) => return News::None,
                // Orphans of the group, which are ours now; or nobody is left.
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return News::None,
            }
        }
    }

    /// Whether nobody of the group is left. Once it is so it stays so: the number may be
    /// somebody else's next.
    pub(super) fn is_gone(&mut self) -> bool {
        let left = || killpg(self.leader, None) != Err(Errno::ESRCH);
        self.gone = self.gone || (self.code.is_some() && !left());
        self.gone
    }
}

fn refused(program: &OsStr, error: &io::Error) -> Refused {
    let code = match error.kind() {
        ErrorKind::NotFound => exit::NOT_FOUND,
        // An argument with a zero byte never gets here; too many processes may.
        ErrorKind::WouldBlock | ErrorKind::OutOfMemory => exit::INTERNAL,
        _ => exit::CANNOT_RUN,
    };
    let text = format!("{program:?} cannot be run: {error}");
    Refused { code, text }
}

/// Whoever of the group loses its parent becomes our child, so that its end is told to us.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // Without it the end of a group is found by looking, a little later.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}
