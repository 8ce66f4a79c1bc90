//! A real PostgreSQL server in a directory of its own, reached by a socket in that directory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tempfile::TempDir;

use super::eventually;
use super::process::{send_signal, spawn_tied};

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The variable that names the directory of `initdb` and `postgres`.
const BIN_ENV: &str = "QUORUMLOCK_POSTGRES_BIN";

/// One server; ended when dropped, or with the test process.
pub struct Postgres {
    dir: TempDir,
    child: Child,
}

impl Postgres {
    /// The server that the tests of this process share: the first that asks starts it, and the
    /// last that lets go ends it.
    pub fn shared() -> Arc<Postgres> {
        static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Postgres::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// A new server with nothing in it. Panics with its log if it does not come up.
    pub fn start() -> Postgres {
        let bin = programs();
        let dir = tempfile::Builder::new()
            .prefix("pg")
            .tempdir()
            .expect("a directory");
        let account = Account::fit(dir.path());
        let mut initdb = account.command(&bin.join("initdb"), dir.path());
        initdb
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
            .args(["--locale=C", "--no-sync", "--pgdata=data"]);
        let made = initdb
            .output()
            .unwrap_or_else(|error| panic!("initdb: {error}"));
        assert!(
            made.status.success(),
            "initdb in {}: {}",
            dir.path().display(),
            String::from_utf8_lossy(&made.stderr)
        );
        let mut postgres = account.command(&bin.join("postgres"), dir.path());
        postgres.args(["-D", "data", "-k"]).arg(dir.path());
        for setting in [
            "listen_addresses=",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "max_connections=100",
            // Neither of these leaves anything outside the directory.
            "dynamic_shared_memory_type=mmap",
            "shared_buffers=16MB",
        ] {
            postgres.args(["-c", setting]);
        }
        let log = fs::File::create(dir.path().join("log")).expect("a log");
        postgres.stdin(Stdio::null()).stdout(Stdio::null());
        postgres.stderr(log);
        let child = spawn_tied(postgres).unwrap_or_else(|error| panic!("postgres: {error}"));
        let mut server = Postgres { dir, child };
        let up = eventually(START_LIMIT, || server.is_up());
        assert!(up, "PostgreSQL did not come up:\n{}", server.log());
        server
    }

    /// How to reach one of its databases, as tokio-postgres reads it.
    pub fn config(&self, database: &str) -> String {
        let dir = self.dir.path().display();
        format!("host={dir} user=postgres dbname={database}")
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// The last line of the pid file says so once it takes connections. An end shows in the log.
    fn is_up(&mut self) -> bool {
        if !matches!(self.child.try_wait(), Ok(None)) {
            panic!("PostgreSQL ended at once:\n{}", self.log());
        }
        let lines = fs::read_to_string(self.dir.path().join("data/postmaster.pid"));
        lines.is_ok_and(|lines| lines.lines().any(|line| line.trim() == "ready"))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT is PostgreSQL's immediate shutdown: no checkpoint, no waiting for sessions. It
        // takes the server's processes and its shared memory with it, which SIGKILL would not.
        let _ = send_signal(self.child.id(), libc::SIGQUIT);
        if !eventually(STOP_LIMIT, || !matches!(self.child.try_wait(), Ok(None))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Who runs the server: it refuses to be root, so that root steps down for it.
struct Account(Option<(u32, u32)>);

impl Account {
    /// Ourselves, or if that is root an account without rights, to which `dir` is given.
    fn fit(dir: &Path) -> Account {
        let owner = fs::metadata(dir).expect("our directory");
        if owner.uid() != 0 {
            return Account(None);
        }
        let users = fs::read_to_string("/etc/passwd").expect("the list of users");
        let ids = ["nobody", "postgres"].iter().find_map(|name| {
            let line = users
                .lines()
                .find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        });
        let (user, group) = ids.expect("an account `nobody` or `postgres` to run PostgreSQL as");
        chown(dir, Some(user), Some(group)).expect("the directory for another user");
        Account(Some((user, group)))
    }

    fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LC_ALL", "C").env("TZ", "UTC");
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

/// The directory of `initdb` and `postgres`: what the variable says, else `PATH`, else where the
/// packages put them, else what `pg_config` says. scripts/lib.sh looks in the same places.
fn programs() -> PathBuf {
    let complete = |dir: &PathBuf| dir.join("initdb").is_file() && dir.join("postgres").is_file();
    if let Some(dir) = std::env::var_os(BIN_ENV).filter(|value| !value.is_empty()) {
        let dir = PathBuf::from(dir);
        assert!(
            complete(&dir),
            "{BIN_ENV}={} holds no initdb and postgres",
            dir.display()
        );
        return dir;
    }
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(versions("/usr/lib/postgresql", "", "bin"));
    places.extend(versions("/usr", "pgsql-", "bin"));
    places.extend(versions("/usr/libexec", "postgresql", ""));
    places.extend(versions("/opt/homebrew/opt", "postgresql", "bin"));
    places.extend(versions("/usr/local/opt", "postgresql", "bin"));
    if let Ok(told) = Command::new("pg_config").arg("--bindir").output() {
        places.push(String::from_utf8_lossy(&told.stdout).trim().into());
    }
    places.into_iter().find(complete).unwrap_or_else(|| {
        panic!(
            "these tests need PostgreSQL: neither PATH nor the usual places hold initdb and \
             postgres. Run scripts/test, or set {BIN_ENV} to their directory"
        )
    })
}

/// `<parent>/<prefix>*/<inner>`, the newest version first.
fn versions(parent: &str, prefix: &str, inner: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().join(inner))
        .collect();
    found.sort();
    found.reverse();
    found
}
