//! Which server program the tests run.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Major and minor version of the server program.
pub fn server_version() -> (u32, u32) {
    static VERSION: OnceLock<(u32, u32)> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let output = Command::new(server_program()).arg("--version").output();
        let output = output.expect("the server program tells its version");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text
            .split_once("v=")
            .map(|(_, rest)| rest)
            .unwrap_or_default();
        let mut parts = version
            .split(['.', ' '])
            .map_while(|part| part.parse().ok());
        let major = parts
            .next()
            .unwrap_or_else(|| panic!("no version in {text:?}"));
        (major, parts.next().unwrap_or(0))
    })
}

pub(super) fn server_program() -> PathBuf {
    if let Some(program) = std::env::var_os("QUORUMLOCK_SERVER").filter(|value| !value.is_empty()) {
        return program.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = |name: &str| {
        std::env::split_paths(&path)
            .map(|dir| dir.join(name))
            .find(|p| p.is_file())
    };
    named("redis-server").or_else(|| named("valkey-server")).unwrap_or_else(|| {
        panic!(
            "these tests need a real server: neither redis-server nor valkey-server is on the PATH. \
             Run scripts/test, or set QUORUMLOCK_SERVER to a server program"
        )
    })
}
