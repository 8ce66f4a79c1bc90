//! A cluster with a configuration, and runs of the command on it.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::helpers::*;
use crate::support::*;

/// No run of any test takes so long.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The lease in most tests.
pub const TTL: Duration = Duration::from_secs(2);

/// Nodes, a directory, and a configuration in it.
pub struct Site {
    pub cluster: Cluster,
    pub dir: TempDir,
    pub ttl: Duration,
}

impl Site {
    pub fn start(nodes: usize) -> Site {
        Site::with(nodes, TTL)
    }

    pub fn with(nodes: usize, ttl: Duration) -> Site {
        let cluster = Cluster::start(nodes);
        let dir = tempfile::tempdir().expect("a directory");
        let site = Site { cluster, dir, ttl };
        let urls = site.cluster.urls();
        site.configure("quorumlock.toml", &urls);
        site
    }

    /// Writes a configuration of these nodes.
    pub fn configure(&self, name: &str, urls: &[String]) -> PathBuf {
        let ttl = self.ttl.as_millis();
        let timeout = node_timeout(self.ttl).as_millis();
        let text = format!(
            "nodes = {urls:?}\nttl = \"{ttl}ms\"\nmax_ttl = \"10s\"\n\
             node_timeout = \"{timeout}ms\"\n[retry]\ndelay = \"10ms\"\nmax_delay = \"50ms\"\n"
        );
        let path = self.dir.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// The command with these arguments, in the directory of the site.
    pub fn command(&self, args: &[&str]) -> Command {
        command(self.dir.path(), args)
    }

    /// Starts `run`; words after `--` are the child.
    pub fn spawn(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Done {
        self.spawn(args).finish()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits for a file that a child makes.
    pub fn await_file(&self, name: &str) {
        let there = eventually(LIMIT, || self.exists(name));
        assert!(there, "{name} did not come");
    }

    /// Waits until no node has a key of this lock, its label included.
    pub fn no_key(&self, resource: &str, within: Duration) -> bool {
        let probe = self.cluster.probe();
        let start = key(resource).into_bytes();
        eventually(within, || {
            let mut keys = probe.all_keys().into_iter();
            keys.all(|(_, key)| !key.starts_with(&start) || stays(&key))
        })
    }

    /// Somebody else's lock on all nodes.
    pub fn occupy(&self, resource: &str, lasts: Duration) {
        for node in self.cluster.iter() {
            let mut probe = node.probe();
            probe.set_raw(key(resource), "ab".repeat(20), Some(lasts));
        }
    }

    /// The same lock is free again, and whoever waits for it hears of that.
    pub fn vacate(&self, resource: &str) {
        let mut probes: Vec<_> = self.cluster.iter().map(Server::probe).collect();
        let key = key(resource);
        for command in [&["DEL", &*key][..], &["PUBLISH", &*key, "1"]] {
            for probe in &mut probes {
                probe.command(command);
            }
        }
    }
}

/// The command in this directory, and with none of the surrounding's settings.
pub fn command(dir: &std::path::Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorumlock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUORUMLOCK_") {
            command.env_remove(name);
        }
    }
    command.env_remove("XDG_CONFIG_HOME").env("HOME", dir);
    command.current_dir(dir).args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    hear_signals(&mut command);
    command
}

/// Whoever runs tests in the background of a script ignores interrupts; the command would, too.
pub fn hear_signals(command: &mut Command) {
    let reset = || {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
            // SAFETY: async-signal-safe, and it touches the calling process alone.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(reset) };
}

/// A run that has begun. It ends with the test.
pub struct Running {
    child: Child,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Done {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("no exit status: {self:?}"))
    }
}

impl Running {
    pub fn start(command: Command) -> Running {
        let child = spawn_tied(command).expect("the command starts");
        Running { child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        send_signal(self.pid(), signal).expect("it takes a signal");
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        let ended = eventually(within, || self.has_ended());
        assert!(ended, "the command does not end");
        self.child.wait().expect("a child of ours")
    }

    pub fn finish(self) -> Done {
        self.finish_within(LIMIT)
    }

    pub fn finish_within(mut self, within: Duration) -> Done {
        let begin = Instant::now();
        let read = |stream: Option<Box<dyn Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut stream) = stream {
                    let _ = stream.read_to_end(&mut bytes);
                }
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let out = read(self.child.stdout.take().map(|it| Box::new(it) as _));
        let err = read(self.child.stderr.take().map(|it| Box::new(it) as _));
        let status = self.wait(within.saturating_sub(begin.elapsed()));
        let done = |text: std::thread::JoinHandle<String>| text.join().expect("a reader");
        Done {
            status,
            out: done(out),
            err: done(err),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            // Its group first: TERM reaches the child, too.
            let _ = send_signal(self.pid(), libc::SIGTERM);
            let _ = eventually(500 * MS, || self.has_ended());
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// How often a row of a table is run: 20 times in the full tier.
pub fn times() -> usize {
    pick(1, 20)
}
