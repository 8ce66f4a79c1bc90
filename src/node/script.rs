//! The Lua scripts, and which of them a connection's server has cached.

use std::sync::LazyLock;

/// A script and its digest.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) text: &'static str,
    pub(crate) sha: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        let sha = redis::Script::new(text).get_hash().to_owned();
        Script { text, sha }
    }
}

pub(crate) static MARKER: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("marker.lua")));
pub(crate) static EXTEND: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("extend.lua")));
pub(crate) static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("release.lua")));
