//! Redis or Valkey servers for one run of a bench.

use std::{
    env, io,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// The variable that names the server program, instead of a search along `PATH`.
const SERVER_ENV: &str = "QUORUMLOCK_SERVER";

/// How long one server may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How many free ports are tried for one server: somebody else may take a port between our
/// finding it and the server's binding it.
const PORT_TRIES: usize = 5;

/// Independent servers without persistence, on free ports of the loopback interface.
///
/// They end when this value is dropped, and are killed by the kernel when the thread that started
/// them ends; so start them on the main thread.
pub struct Servers {
    nodes: Vec<Server>,
    _dir: TempDir,
}

struct Server {
    process: Child,
    port: u16,
}

impl Servers {
    /// Starts `count` servers and waits until each of them answers.
    ///
    /// The program is the one that `QUORUMLOCK_SERVER` names, else `redis-server` or
    /// `valkey-server` from `PATH`.
    ///
    /// # Panics
    ///
    /// If there is no such program, or a server does not come up: a bench cannot go on without.
    pub fn start(count: usize) -> Self {
        let program = server_program();
        let dir = TempDir::new().expect("a directory for the servers");
        let nodes = (0..count)
            .map(|_| Server::start(&program, dir.path()))
            .collect();
        Self { nodes, _dir: dir }
    }

    /// The servers' addresses, as `redis://` URLs.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// Stops a server as it stands: it accepts connections and answers nothing.
    pub fn pause(&self, index: usize) {
        self.signal(index, libc::SIGSTOP);
    }

    /// Lets a stopped server go on.
    pub fn resume(&self, index: usize) {
        self.signal(index, libc::SIGCONT);
    }

    fn signal(&self, index: usize, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.nodes[index].process.id()).expect("a process id");
        // SAFETY: kill takes two numbers; the process is a child that nobody has waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }
}

/// The URL of a port on which nobody listens.
pub fn refusing_url() -> String {
    format!("redis://127.0.0.1:{}/", free_port())
}

impl Server {
    fn start(program: &Path, dir: &Path) -> Self {
        for _ in 0..PORT_TRIES {
            let port = free_port();
            let process = spawn(program, dir, port);
            let mut server = Self { process, port };
            if server.wait_until_up() {
                return server;
            }
        }
        panic!(
            "{} did not come up on {PORT_TRIES} ports",
            program.display()
        );
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Whether the process came to answer on its port; false if it ended first.
    fn wait_until_up(&mut self) -> bool {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if self
                .process
                .try_wait()
                .expect("the state of a child")
                .is_some()
            {
                return false;
            }
            if self.answering_pid() == Some(self.process.id()) {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// The process that answers on our port: another one, if somebody else was faster.
    fn answering_pid(&self) -> Option<u32> {
        let client = redis::Client::open(self.url()).ok()?;
        let mut connection = client.get_connection_with_timeout(START_TIMEOUT).ok()?;
        let info: redis::InfoDict = redis::cmd("INFO")
            .arg("server")
            .query(&mut connection)
            .ok()?;
        info.get("process_id")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only where the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(program: &Path, dir: &Path, port: u16) -> Child {
    let mut command = Command::new(program);
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let parent = std::process::id();
    // SAFETY: between fork and exec only prctl and getppid are called, both async-signal-safe,
    // and nothing allocates.
    unsafe {
        command.pre_exec(move || die_with(parent));
    }
    command
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()))
}

/// Asks the kernel to kill this process when its parent goes, even by SIGKILL.
#[cfg(target_os = "linux")]
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory of ours.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have gone before the call; then no signal comes any more.
    if std::os::unix::process::parent_id() != parent {
        // An error without allocation: nothing may allocate between fork and exec.
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with(_parent: u32) -> io::Result<()> {
    Ok(())
}

fn server_program() -> PathBuf {
    if let Some(program) = env::var_os(SERVER_ENV) {
        return program.into();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    ["redis-server", "valkey-server"]
        .iter()
        .flat_map(|name| env::split_paths(&path).map(move |dir| dir.join(name)))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| {
            panic!("no redis-server or valkey-server on PATH, and {SERVER_ENV} is not set")
        })
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port()
}
