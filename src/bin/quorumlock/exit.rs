//! What the command ends with.

/// All went well; of `status`, the lock is held.
pub(crate) const OK: u8 = 0;
/// A question was answered with no: `status` found the lock free, `release` found nothing to
/// free, `check` has something to say. Never the end of `run`, but for a child's own.
pub(crate) const NO: u8 = 1;
/// The arguments or the configuration cannot be used; nothing was sent. EX_USAGE.
pub(crate) const USAGE: u8 = 64;
/// No quorum of nodes answered, or they refuse to serve. EX_UNAVAILABLE.
pub(crate) const UNAVAILABLE: u8 = 69;
/// A mistake of the command or the machine. EX_SOFTWARE.
pub(crate) const INTERNAL: u8 = 70;
/// Somebody else holds the lock. EX_TEMPFAIL.
pub(crate) const HELD: u8 = 75;
/// The lock was lost while the child ran, however the child ended. EX_PROTOCOL.
pub(crate) const LOST: u8 = 76;
/// The program is there and cannot be run, as of shells.
pub(crate) const CANNOT_RUN: u8 = 126;
/// The program is not there, as of shells.
pub(crate) const NOT_FOUND: u8 = 127;

/// The end of a process that a signal has ended, as of shells.
pub(crate) fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(INTERNAL)
}

/// For the help of `run`.
pub(crate) const TABLE: &str = "\
Exit status:
  the child's own, 128+n if signal n ended it, and:
   64  wrong usage or configuration; nothing was sent
   69  no quorum of nodes
   70  internal error
   75  held elsewhere (0 with --if-held skip)
   76  the lock was lost while the child ran, however the child ended
  126  the program cannot be run
  127  the program was not found
  128+n  signal n came while waiting; the child was not started";

/// For the help of the whole.
pub(crate) const OVERVIEW: &str = "\
Configuration: the file of --config, else of QUORUMLOCK_CONFIG, else ./quorumlock.toml,
$XDG_CONFIG_HOME/quorumlock/quorumlock.toml (~/.config), /etc/quorumlock/quorumlock.toml: the first
that is there. Over it the variables QUORUMLOCK_NODES, QUORUMLOCK_TTL and so on, and over those the
arguments. `quorumlock config` shows what comes of it.

Exit status, but for run: 0 yes (held, freed, good); 1 no (free, nothing there, findings);
64 wrong usage or configuration; 69 too few nodes answered to tell; 70 internal error; 75 split:
several contend for the lock.";
