//! The command's arguments, up to where files are read and nodes are asked.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use clap::Parser;

use crate::args::{Cli, Verb};
use crate::settings::{effective, find, span};

const PASSWORD: &str = "hunter2";

/// Arguments with a byte of zero between them, as in /proc/PID/cmdline.
pub fn arguments(data: &[u8]) {
    let words = data.split(|&byte| byte == 0).map(OsStr::from_bytes);
    let words: Vec<_> = [OsStr::new("quorumlock")]
        .into_iter()
        .chain(words)
        .collect();
    let mut cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    // One that is there and can be used: nothing is read that the input names.
    cli.common.config = Some(crate::EXAMPLE.into());
    let (mut flags, mut spans) = (Vec::new(), Vec::new());
    if let Verb::Run(run) = &cli.verb {
        assert!(!run.command.is_empty(), "run what?");
        flags.push(("--ttl", "ttl", run.ttl.as_ref()));
        flags.push(("--wait", "wait", run.wait.as_ref()));
        spans.push(("--grace", run.grace.as_ref()));
        spans.push(("--at-least", run.at_least.as_ref()));
    }
    let said = match find(&cli.common, &flags) {
        Ok(found) => {
            assert!(effective(&found.config, "max_ttl").is_ok());
            let _ = effective(&found.config, "wait");
            String::new()
        }
        Err(error) => error.to_string(),
    };
    let hides = cli.common.node.iter().any(|url| is_password(url));
    assert!(!(hides && said.contains(PASSWORD)), "{said}");
    for (flag, text) in spans {
        if let Some(Err(error)) = text.map(|text| span(flag, text)) {
            assert!(error.to_string().starts_with(flag));
        }
    }
}

fn is_password(url: &str) -> bool {
    let once = url.matches(PASSWORD).count() == 1;
    once && url.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.to_ascii_lowercase().ends_with("unix") && rest.starts_with(&format!(":{PASSWORD}@"))
    })
}
