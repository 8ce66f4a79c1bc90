//! The Lua scripts, and which of them a connection's server has cached.

use std::sync::LazyLock;

/// A script and its digest.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) text: &'static str,
    pub(crate) sha: String,
}

/// The SHA-1 of a text, in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    redis::Script::new(text).get_hash().to_owned()
}

impl Script {
    fn new(text: &'static str) -> Self {
        Script {
            text,
            sha: digest(text),
        }
    }
}

/// A script that raises fencing counters.
macro_rules! lifting {
    ($file:literal) => {
        concat!(include_str!("lift.lua"), include_str!($file))
    };
}

pub(crate) static MARKER: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("marker.lua")));
pub(crate) static GRANT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("grant.lua")));
pub(crate) static RAISE: LazyLock<Script> = LazyLock::new(|| Script::new(lifting!("raise.lua")));
pub(crate) static EXTEND: LazyLock<Script> = LazyLock::new(|| Script::new(lifting!("extend.lua")));
pub(crate) static FORCE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("force.lua")));
pub(crate) static LABEL: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("label.lua")));
pub(crate) static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(lifting!("release.lua")));
