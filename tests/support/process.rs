//! Child processes that cannot outlive the test process.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};

type Job = Box<dyn FnOnce() + Send>;

/// Starts `command` so that the kernel kills the child when this process ends, however it ends.
///
/// The kernel ties that signal to the thread that spawned the child. A test's own thread ends with
/// the test, so all children are spawned by one thread that lives as long as the process.
pub fn spawn_tied(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        let run = move || queue.into_iter().for_each(|job| job());
        std::thread::Builder::new()
            .name("spawner".into())
            .spawn(run)
            .expect("a thread for spawning children");
        jobs
    });
    let (answer, result) = mpsc::sync_channel(1);
    let job = Box::new(move || {
        die_with_parent(&mut command);
        let _ = answer.send(command.spawn());
    });
    spawner
        .send(job)
        .expect("the spawner lives as long as the process");
    result.recv().expect("the spawner answers every job")
}

fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let prepare = move || {
        // SAFETY: both calls only touch the calling process and are async-signal-safe.
        let (tied, present) = unsafe {
            (
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
                libc::getppid(),
            )
        };
        if tied != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the signal was asked for.
        if u32::try_from(present) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// Sends a signal to one process.
///
/// # Errors
/// What kill(2) said; ESRCH when there is no such process.
pub fn send_signal(pid: u32, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    assert!(pid > 1, "{pid} names no single child process");
    // SAFETY: kill(2) reads no memory of ours.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The state letter the kernel shows (R, S, T for stopped, Z for dead but not yet waited for);
/// `None` when there is no such process.
pub fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the state is in brackets and may hold anything.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether the process runs or could run again (a stopped one can).
pub fn is_alive(pid: u32) -> bool {
    !matches!(state_of(pid), None | Some('Z' | 'X'))
}
