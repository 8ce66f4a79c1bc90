//! Server clocks that can be set while the server runs.
//!
//! libfaketime cannot be loaded into a server with jemalloc, which asks for the time before that
//! library is ready. `clock.c` is the little that is needed of it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::support::ServerBuilder;

/// The compiled library, in a directory that lives as long as the process.
fn library() -> Option<&'static PathBuf> {
    static BUILT: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let library = dir.path().join("clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/matrix/clock.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(source)
            .output();
        match built {
            Ok(output) if output.status.success() => Some((dir, library)),
            other => {
                eprintln!("left out: clocks that can be set need a C compiler on Linux: {other:?}");
                None
            }
        }
    });
    built.as_ref().map(|(_, library)| library)
}

/// The clock of one server.
pub struct Clock {
    dir: TempDir,
}

impl Clock {
    /// `None` where such a clock cannot be built.
    pub fn new() -> Option<Clock> {
        library()?;
        let dir = tempfile::tempdir().expect("a directory");
        let clock = Clock { dir };
        fs::write(clock.file(), 0i64.to_ne_bytes()).expect("a file for the clock");
        Some(clock)
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("offset")
    }

    /// A server whose clock this is.
    pub fn of(&self, server: ServerBuilder) -> ServerBuilder {
        let library = library().expect("built, since there is a clock");
        let server = server.env("TEST_CLOCK_OFFSET", self.file());
        server.env("LD_PRELOAD", library)
    }

    /// From now on the clock is so many seconds off.
    pub fn set(&self, seconds: i64) {
        use std::os::unix::fs::FileExt;
        let file = fs::OpenOptions::new().write(true).open(self.file());
        let written = file.and_then(|file| file.write_all_at(&seconds.to_ne_bytes(), 0));
        written.expect("the clock's file");
    }
}
