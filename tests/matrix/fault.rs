//! What can be wrong with a node, and when.

use std::fmt;
use std::time::Duration;

/// A way of being a bad node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Refused,
    Stopped,
    RestartedEmpty,
    RestartedWithAof,
    Blackholed,
    Delayed20,
    Delayed200,
    /// The connection is reset at the next request, which the server never sees.
    ResetLost,
    /// The server has run the next request, and the connection is reset before its reply.
    ResetRun,
    WrongPassword,
    Replica,
    Evicts,
    Forward,
    Back,
}

pub const FAULTS: [Fault; 14] = [
    Fault::Refused,
    Fault::Stopped,
    Fault::RestartedEmpty,
    Fault::RestartedWithAof,
    Fault::Blackholed,
    Fault::Delayed20,
    Fault::Delayed200,
    Fault::ResetLost,
    Fault::ResetRun,
    Fault::WrongPassword,
    Fault::Replica,
    Fault::Evicts,
    Fault::Forward,
    Fault::Back,
];

impl Fault {
    /// What is added to a round trip.
    pub fn delay(self) -> Option<Duration> {
        match self {
            Fault::Delayed20 => Some(Duration::from_millis(20)),
            Fault::Delayed200 => Some(Duration::from_millis(200)),
            _ => None,
        }
    }

    pub fn restarts(self) -> bool {
        matches!(self, Fault::RestartedEmpty | Fault::RestartedWithAof)
    }

    /// By how many seconds the node's clock is set.
    pub fn step(self) -> Option<i64> {
        match self {
            Fault::Forward => Some(3600),
            Fault::Back => Some(-3600),
            _ => None,
        }
    }

    /// Whether the restart guard has a part in it: then all nodes must have their votes first.
    pub fn is_guarded(self) -> bool {
        self.restarts() || self.step().is_some()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Refused => "connections refused",
            Fault::Stopped => "stopped (SIGSTOP)",
            Fault::RestartedEmpty => "killed, back empty",
            Fault::RestartedWithAof => "killed, back with its AOF",
            Fault::Blackholed => "blackholed",
            Fault::Delayed20 => "20 ms later",
            Fault::Delayed200 => "200 ms later",
            Fault::ResetLost => "reset after the request, which is lost",
            Fault::ResetRun => "reset before the reply, the command run",
            Fault::WrongPassword => "another password",
            Fault::Replica => "a read-only replica",
            Fault::Evicts => "tiny `maxmemory`, evicts",
            Fault::Forward => "clock set 1 h forward",
            Fault::Back => "clock set 1 h back",
        })
    }
}

/// When the fault comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Acquire,
    Hold,
    Extend,
    Release,
}

pub const PHASES: [Phase; 4] = [Phase::Acquire, Phase::Hold, Phase::Extend, Phase::Release];

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Acquire => "acquire",
            Phase::Hold => "while held",
            Phase::Extend => "extend",
            Phase::Release => "release",
        })
    }
}
