//! `completions` and `man`, by clap's own generators.

use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::args::Cli;
use super::exit;
use super::settings::Unusable;

pub(crate) fn completions(shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "quorumlock", &mut script);
    put(&script)
}

pub(crate) fn man(subcommand: Option<&str>) -> Result<u8, Unusable> {
    let mut command = Cli::command();
    command.build();
    let command = match subcommand {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            let unknown = || Unusable::Text(format!("man: there is no subcommand {name:?}"));
            let found: Command = found.ok_or_else(unknown)?;
            let page: &'static str = format!("quorumlock-{name}").leak();
            found.name(page)
        }
    };
    let mut page = Vec::new();
    match clap_mangen::Man::new(command).render(&mut page) {
        Ok(()) => Ok(put(&page)),
        Err(_) => Ok(exit::INTERNAL),
    }
}

fn put(bytes: &[u8]) -> u8 {
    let mut to = io::stdout();
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Ok(()) => exit::OK,
        Err(_) => exit::INTERNAL,
    }
}
