//! Real server processes on loopback ports.

use std::ffi::OsString;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::ports::ReservedPort;
use super::probe::Probe;
use super::process::{send_signal, spawn_tied, state_of};
use super::program::{server_program, server_version};
use super::{Reply, eventually};

const START_LIMIT: Duration = Duration::from_secs(10);
const SIGNAL_LIMIT: Duration = Duration::from_secs(5);
/// Starts tried on other ports when a server ends at once.
const PORTS_TRIED: usize = 5;

/// One server process with a directory of its own; killed when dropped, or with the test process.
pub struct Server {
    options: ServerBuilder,
    port: ReservedPort,
    dir: TempDir,
    process: Mutex<Process>,
}

#[derive(Default)]
struct Process {
    child: Option<Child>,
    paused: bool,
}

/// Options of a [`Server`] before it starts.
#[derive(Debug, Clone, Default)]
pub struct ServerBuilder {
    aof: bool,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    port: Option<u16>,
}

impl ServerBuilder {
    /// Whether the server keeps an append-only file; it does not by default.
    pub fn aof(mut self, on: bool) -> Self {
        self.aof = on;
        self
    }

    /// More options, as on the server's command line: `["--maxmemory", "1mb"]`.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// A variable in the server's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.envs.push((name.into(), value.into()));
        self
    }

    /// This port and no other; without it the server gets one that is free.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Starts the server and returns when it answers. Panics with the server's log if it does not.
    pub fn start(self) -> Server {
        let tries = if self.port.is_some() { 1 } else { PORTS_TRIED };
        let mut complaint = String::new();
        for _ in 0..tries {
            let port = self
                .port
                .map_or_else(ReservedPort::any, ReservedPort::exactly);
            let port = port.unwrap_or_else(|error| panic!("no port for a server: {error}"));
            let server = Server {
                options: self.clone(),
                port,
                dir: tempfile::tempdir().expect("a directory for a server"),
                process: Mutex::default(),
            };
            let launched = server.launch(&mut server.lock());
            match launched {
                Ok(()) => return server,
                Err(what) => complaint = what,
            }
            if !complaint.contains("Address already in use") {
                break;
            }
        }
        panic!("{complaint}");
    }
}

impl Server {
    pub fn start() -> Server {
        Server::builder().start()
    }

    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// The process, if it runs (a paused one does).
    pub fn pid(&self) -> Option<u32> {
        self.lock().child.as_ref().map(Child::id)
    }

    /// A new connection of the plain client.
    pub fn probe(&self) -> Probe {
        Probe::connect(self.port())
            .unwrap_or_else(|error| panic!("no probe to {}: {error}", self.url()))
    }

    /// Stalls the server by SIGSTOP. Its kernel still accepts connections and bytes.
    pub fn pause(&self) {
        self.lock().signal(libc::SIGSTOP, true);
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        self.lock().signal(libc::SIGCONT, false);
    }

    /// Kills the server by SIGKILL; afterwards its port refuses connections.
    pub fn kill(&self) {
        self.lock().kill();
    }

    /// Stops the server as an operator would (SIGTERM), by SIGKILL if it takes more than 5 s.
    pub fn stop(&self) {
        let mut process = self.lock();
        if process.paused {
            process.signal(libc::SIGCONT, false);
        }
        if let Some(child) = &mut process.child {
            let _ = send_signal(child.id(), libc::SIGTERM);
            let _ = eventually(SIGNAL_LIMIT, || !matches!(child.try_wait(), Ok(None)));
        }
        process.kill();
    }

    /// Kills the server if it runs, and starts it on the same port with no data at all.
    pub fn restart_empty(&self) {
        let mut process = self.lock();
        process.kill();
        for entry in fs::read_dir(self.dir.path())
            .expect("the server's directory")
            .flatten()
        {
            let path = entry.path();
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.unwrap_or_else(|error| panic!("cannot remove {}: {error}", path.display()));
        }
        self.launch(&mut process)
            .unwrap_or_else(|complaint| panic!("{complaint}"));
    }

    /// Kills the server if it runs, and starts it on the same port with the data it had.
    ///
    /// With `aof(true)` that is every write it acknowledged. Without, it is told to SAVE first,
    /// and so must be running.
    pub fn restart_with_data(&self) {
        let mut process = self.lock();
        if !self.options.aof {
            assert!(
                process.child.is_some() && !process.paused,
                "a server without aof(true) must run to keep its data over a restart"
            );
            assert_eq!(self.probe().command(&["SAVE"]), Reply::Simple("OK".into()));
        }
        process.kill();
        self.launch(&mut process)
            .unwrap_or_else(|complaint| panic!("{complaint}"));
    }

    /// What the server wrote to its log and to its standard error.
    pub fn log(&self) -> String {
        let read = |name: &str| fs::read(self.dir.path().join(name)).unwrap_or_default();
        let (log, errors) = (read("server.log"), read("stderr.log"));
        format!(
            "{}{}",
            String::from_utf8_lossy(&log),
            String::from_utf8_lossy(&errors)
        )
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self, process: &mut Process) -> Result<(), String> {
        let told =
            |what: &str| format!("the server on port {} {what}:\n{}", self.port(), self.log());
        let child =
            spawn_tied(self.command()).map_err(|error| format!("no server started: {error}"))?;
        let pid = child.id();
        *process = Process {
            child: Some(child),
            paused: false,
        };
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline {
            if process
                .child
                .as_mut()
                .is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
            {
                process.child = None;
                return Err(told("ended at once"));
            }
            if self.answers(pid) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        process.kill();
        Err(told("did not answer PING"))
    }

    /// Whether this very process answers; an error such as NOAUTH is an answer, LOADING is none.
    fn answers(&self, pid: u32) -> bool {
        let Ok(mut probe) = Probe::connect(self.port()) else {
            return false;
        };
        let ready = match probe.try_command(&["PING"]) {
            Ok(Reply::Error(text)) => !text.starts_with("LOADING"),
            Ok(_) => true,
            Err(_) => false,
        };
        ready
            && match probe.try_command(&["INFO", "server"]) {
                Ok(Reply::Bulk(info)) => {
                    String::from_utf8_lossy(&info).contains(&format!("process_id:{pid}\r"))
                }
                other => other.is_ok(),
            }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(server_program());
        let aof = if self.options.aof { "yes" } else { "no" };
        let port = self.port().to_string();
        command.args(["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no"]);
        command.args(["--save", "", "--appendonly", aof, "--logfile", "server.log"]);
        command.arg("--dir").arg(self.dir.path());
        if server_version().0 >= 7 {
            // Before 7.0 DEBUG is always allowed, and the option unknown.
            command.args(["--enable-debug-command", "local"]);
        }
        command.args(&self.options.args);
        command.envs(self.options.envs.iter().map(|(name, value)| (name, value)));
        let errors = fs::File::create(self.dir.path().join("stderr.log"));
        command
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(errors.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.lock().kill();
    }
}

impl Process {
    /// Returns when the process stands still, or runs again.
    fn signal(&mut self, signal: i32, pausing: bool) {
        let pid = self
            .child
            .as_ref()
            .map(Child::id)
            .expect("the server is not running");
        send_signal(pid, signal).unwrap_or_else(|error| panic!("signal to {pid}: {error}"));
        let done = eventually(SIGNAL_LIMIT, || {
            matches!(state_of(pid), Some('T' | 't')) == pausing
        });
        assert!(done, "process {pid} took no notice of signal {signal}");
        self.paused = pausing;
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // SIGKILL ends a stopped process too. Until the wait the pid cannot be another's.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.paused = false;
    }
}
