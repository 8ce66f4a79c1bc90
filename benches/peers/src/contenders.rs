//! Who takes part, how its worker is started, and what it can be asked for.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// quorumlock without fencing tokens, which is what the peers do; beside the default where nobody
/// contends.
pub const PLAIN: &str = "quorumlock without tokens";

/// A library that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    pub name: &'static str,
    pub language: Language,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    Node,
    Python,
}

/// All of them; the first is what the others are compared with.
pub const ALL: [Contender; 6] = [
    Contender {
        name: "quorumlock",
        language: Language::Rust,
    },
    Contender {
        name: PLAIN,
        language: Language::Rust,
    },
    Contender {
        name: "rslock",
        language: Language::Rust,
    },
    Contender {
        name: "distributed-lock-redis",
        language: Language::Rust,
    },
    Contender {
        name: "node-redlock",
        language: Language::Node,
    },
    Contender {
        name: "pottery",
        language: Language::Python,
    },
];

impl Contender {
    /// The program of its worker.
    pub fn command(&self) -> Command {
        let installed = tools();
        match self.language {
            Language::Rust => {
                let own = env::current_exe().unwrap_or_else(|_| PathBuf::from("peers"));
                let mut command = Command::new(own);
                command.args(["worker", self.name]);
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.env("NODE_PATH", installed.join("node/node_modules"));
                command.arg(home().join("node/worker.js"));
                command
            }
            Language::Python => {
                let mut command = Command::new("python3");
                command.env("PYTHONPATH", installed.join("python"));
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                command.arg(home().join("python/worker.py"));
                command
            }
        }
    }
}

/// The folder of this crate.
pub fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where `setup` puts the libraries of the other languages.
pub fn tools() -> PathBuf {
    home().join("../../target/peers")
}
