//! The command: work under a lock from a crontab or a script, and an operator's looks at locks.
//!
//! ```text
//!   args ─► settings (file ◄ environment ◄ arguments) ─► Client ─► run | look | release | config
//! ```
//!
//! It stands on the library's public calls alone.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod args;
mod config;
mod exit;
mod look;
mod out;
mod pages;
mod release;
mod run;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Verb};
use out::Out;
use settings::Unusable;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and go to standard output.
            let code = if error.use_stderr() {
                exit::USAGE
            } else {
                exit::OK
            };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let out = Out {
        json: cli.common.json,
    };
    let code = act(cli, out).unwrap_or_else(|error| {
        out.complain("usage", error);
        exit::USAGE
    });
    ExitCode::from(code)
}

fn act(cli: Cli, out: Out) -> Result<u8, Unusable> {
    let common = &cli.common;
    let verb = match cli.verb {
        Verb::Run(run) => return run::run(common, &run, out),
        Verb::Config => return config::config(&settings::find(common, &[])?, out),
        Verb::Completions { shell } => return Ok(pages::completions(shell)),
        Verb::Man { subcommand } => return pages::man(subcommand.as_deref()),
        verb => verb,
    };
    let client = settings::client(common)?;
    let Ok(runtime) = runtime() else {
        out.complain("internal", "there is no runtime to be had");
        return Ok(exit::INTERNAL);
    };
    runtime.block_on(async {
        match verb {
            Verb::Status { resource } => look::status(&client, &resource, out).await,
            Verb::List { prefix } => Ok(look::list(&client, &prefix, out).await),
            Verb::Release { resource, force } => {
                release::release(&client, &resource, force, out).await
            }
            _ => Ok(look::check(&client, out).await),
        }
    })
}

/// One thread does: the library has its own.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
