//! The arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::exit;

/// One worker at a time on a named resource, agreed on by a majority of independent Redis or
/// Valkey nodes.
#[derive(Parser)]
#[command(name = "quorumlock", version, after_long_help = exit::OVERVIEW)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Args)]
pub(crate) struct Common {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A node, instead of those that are configured; once for each. Not with a password: everybody
    /// on the machine can read it
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) node: Vec<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    Run(Run),
    /// Who holds a lock, by quorum and on each node
    Status {
        resource: OsString,
    },
    /// The locks whose names begin with PREFIX, all without it
    List {
        #[arg(default_value = "")]
        prefix: OsString,
    },
    /// Free a lock whoever holds it
    ///
    /// The holder may be at work. It hears of the loss at its next extension, and does not set its
    /// key again; until then somebody else may be granted the lock. Says whose lock it took.
    Release {
        resource: OsString,
        /// Yes, take it away from its holder
        #[arg(long)]
        force: bool,
    },
    /// Ask the nodes how they are, and say which settings do not fit
    Check,
    /// Every setting as it will be used, and where it comes from
    Config,
    /// Print a completion script
    Completions {
        shell: Shell,
    },
    /// Print the manual page, of the whole or of one subcommand
    Man {
        subcommand: Option<String>,
    },
}

/// Run a command while holding a lock
///
/// The lock extends itself until the whole process group of the command is gone, and is released
/// then. If it is going to be lost, the group gets TERM, and KILL before the end of validity.
///
/// Signals are passed on to the group: TERM, INT, HUP, QUIT, USR1, USR2, WINCH, TSTP and CONT. One
/// that comes while waiting for the lock ends the wait.
///
/// The command gets its arguments as they are, no shell in between, and in its environment
/// QUORUMLOCK_RESOURCE and QUORUMLOCK_FENCING_TOKEN. For example:
/// quorumlock run --if-held skip nightly -- /usr/local/bin/nightly --verbose
#[derive(Args)]
#[command(after_help = exit::TABLE)]
pub(crate) struct Run {
    /// How long the lease is good for without an extension [default: 10s, or as configured]
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// How long to wait for the lock: a duration, or "forever" [default: 30s, or as configured; 0s
    /// with --if-held skip and with --at-least]
    #[arg(long, value_name = "DURATION")]
    pub(crate) wait: Option<String>,
    /// How long the command has between TERM and KILL when the lock is being lost [default: half of
    /// the time that there is, up to 10s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) grace: Option<String>,
    /// Keep the lock for so long from the start, by the nodes' own expiry, although the command
    /// ended sooner: so that one of many hosts whose clocks differ runs a short job. At most
    /// max_ttl
    #[arg(long, value_name = "DURATION")]
    pub(crate) at_least: Option<String>,
    /// A few words for people, which status and list show beside host, process and time
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// What a lock that is held elsewhere comes to: 0, or 75
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub(crate) if_held: IfHeld,
    /// What to lock: any name
    pub(crate) resource: OsString,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IfHeld {
    /// Exit status 0, and not a word
    Skip,
    /// Exit status 75
    Fail,
}
