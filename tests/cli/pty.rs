//! A terminal for tests: what is typed, and what is shown.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::LIMIT;
use crate::helpers::*;
use crate::support::*;

/// A session of its own on a new terminal.
pub struct Session {
    child: Child,
    master: File,
    shown: Arc<Mutex<String>>,
    read_to: usize,
}

impl Session {
    pub fn start(mut command: Command) -> Session {
        let (master, path) = open_master();
        let slave = || {
            let opened = OpenOptions::new().read(true).write(true).open(&path);
            Stdio::from(opened.expect("the terminal"))
        };
        command.stdin(slave()).stdout(slave()).stderr(slave());
        let lead = || {
            // SAFETY: the calls are async-signal-safe and touch the calling process alone.
            let done = unsafe { (libc::setsid(), libc::ioctl(0, libc::TIOCSCTTY, 0)) };
            match done.0 < 0 || done.1 < 0 {
                true => Err(std::io::Error::last_os_error()),
                false => Ok(()),
            }
        };
        // SAFETY: between fork and exec the closure allocates nothing and takes no lock.
        unsafe { command.pre_exec(lead) };
        let child = spawn_tied(command).expect("the session starts");
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, to) = (master.try_clone().expect("a copy"), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last one closes it, which is an error here.
            while let Ok(count) = reader.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                to.lock().expect("nobody panics").push_str(&text);
                if count == 0 {
                    break;
                }
            }
        });
        Session {
            child,
            master,
            shown,
            read_to: 0,
        }
    }

    pub fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("it is read");
    }

    /// Waits until this is shown, after what was waited for before.
    pub fn sees(&mut self, text: &str) {
        let mut from = self.read_to;
        let seen = eventually(LIMIT, || {
            let shown = self.shown.lock().expect("nobody panics");
            let at = shown[self.read_to..].find(text);
            from = at.map_or(from, |at| self.read_to + at + text.len());
            at.is_some()
        });
        assert!(seen, "{text:?} is not shown, but {:?}", self.shown());
        self.read_to = from;
    }

    pub fn shown(&self) -> String {
        self.shown.lock().expect("nobody panics").clone()
    }

    pub fn finish(&mut self) -> ExitStatus {
        let ended = eventually(LIMIT, || matches!(self.child.try_wait(), Ok(Some(_))));
        assert!(ended, "it does not end; {:?}", self.shown());
        self.child.wait().expect("a child of ours")
    }

    pub fn pause(&self, span: Duration) {
        std::thread::sleep(span);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = send_signal(self.child.id(), libc::SIGTERM);
        let _ = eventually(200 * MS, || matches!(self.child.try_wait(), Ok(Some(_))));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open_master() -> (File, String) {
    let mut name = [0; 64];
    // SAFETY: the descriptor is checked, and the name fits into the buffer, or the call fails.
    let fd = unsafe {
        let fd = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(fd >= 0, "no terminal");
        assert_eq!(libc::grantpt(fd), 0);
        assert_eq!(libc::unlockpt(fd), 0);
        assert_eq!(libc::ptsname_r(fd, name.as_mut_ptr(), name.len()), 0);
        fd
    };
    // SAFETY: it was opened just now, and nobody else has it.
    let master = unsafe { File::from_raw_fd(fd) };
    assert!(master.as_raw_fd() >= 0);
    let name = name.iter().take_while(|byte| **byte != 0);
    let name = name.map(|byte| byte.to_ne_bytes()[0] as char).collect();
    (master, name)
}
