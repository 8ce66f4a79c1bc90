//! The five nodes, broken and mended through `scripts/cluster`.

use std::env;
use std::ffi::OsString;
use std::process::Stdio;

use tokio::process::Command;

/// The variable in which `scripts/demo` says where `scripts/cluster` is.
const CLUSTER: &str = "QUORUMLOCK_DEMO_CLUSTER";

/// The nodes of the demonstration.
pub struct Nodes {
    script: OsString,
}

impl Nodes {
    pub fn from_env() -> Result<Self, String> {
        match env::var_os(CLUSTER) {
            Some(script) if env::var_os("QUORUMLOCK_NODES").is_some() => Ok(Nodes { script }),
            _ => Err("there are no nodes to break: run scripts/demo, which brings some up".into()),
        }
    }

    /// Ends these nodes by SIGKILL.
    pub async fn kill(&self, nodes: &[&str]) -> Result<(), String> {
        self.run("kill", nodes).await
    }

    /// Starts these nodes with the data that they had.
    pub async fn restart(&self, nodes: &[&str]) -> Result<(), String> {
        self.run("restart", nodes).await
    }

    async fn run(&self, command: &str, nodes: &[&str]) -> Result<(), String> {
        let output = Command::new(&self.script)
            .arg(command)
            .args(nodes)
            .stdin(Stdio::null())
            .output()
            .await
            .map_err(|error| format!("scripts/cluster cannot be run: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("scripts/cluster {command} failed: {}", said.trim()))
    }
}
