//! The commands of one look, and what their answers tell.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{try_join, try_join_all, try_join3};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::time::{sleep, timeout};

use super::{Marker, Plan, Sample, Survey};
use crate::clock::Clock;
use crate::node::connect::{Stage, redis_fault};
use crate::node::wire::{millis, server_fault};
use crate::node::{Fault, FaultKind};

/// What a node made of a command.
enum Said {
    Value(Value),
    Refused(Fault),
}

/// A connection in use, and where to put what is found.
pub(super) struct Look<'a> {
    pub(super) connection: MultiplexedConnection,
    pub(super) plan: &'a Plan,
    pub(super) clock: Clock,
    pub(super) found: &'a RefCell<Survey>,
}

impl Look<'_> {
    /// Looks at everything.
    ///
    /// # Errors
    /// What ended it early. What was found by then is kept.
    pub(super) async fn all(self) -> Result<(), Fault> {
        let limit = self.plan.limit().saturating_mul(2);
        let questions = try_join3(self.facts(), self.reads(), self.dry_runs());
        match timeout(limit, questions).await {
            Ok(answers) => answers.map(|_| ())?,
            Err(_) => return Err(Stage::Introducing.spent(limit)),
        }
        self.probe().await
    }

    /// # Errors
    /// The connection is of no use any more, or there is no answer.
    async fn ask(&self, args: &[&[u8]]) -> Result<Said, Fault> {
        let mut command = Cmd::new();
        for arg in args {
            command.arg(*arg);
        }
        let limit = self.plan.limit();
        let mut connection = self.connection.clone();
        let answer = timeout(limit, connection.send_packed_command(&command)).await;
        let answer = answer.map_err(|_| Stage::Introducing.spent(limit))?;
        match answer {
            Ok(Value::ServerError(error)) => Ok(Said::Refused(server_fault(&error))),
            Ok(value) => Ok(Said::Value(value)),
            Err(error) => {
                let fault = redis_fault(&error);
                match fault.kind() {
                    FaultKind::Permission | FaultKind::Loading | FaultKind::ServerError => {
                        Ok(Said::Refused(fault))
                    }
                    _ => Err(fault),
                }
            }
        }
    }

    async fn facts(&self) -> Result<(), Fault> {
        let info = async {
            match self.ask(&[b"INFO"]).await? {
                Said::Value(value) => self.found.borrow_mut().facts.read_info(&value),
                Said::Refused(fault) if fault.kind() == FaultKind::Auth => return Err(fault),
                Said::Refused(_) => {
                    // Always allowed, and says at least who is there.
                    if let Said::Value(value) = self.ask(&[b"HELLO"]).await? {
                        self.found.borrow_mut().facts.read_hello(&value);
                    }
                }
            }
            Ok(())
        };
        try_join3(info, self.config("save"), self.config("appendfsync")).await?;
        Ok(())
    }

    async fn config(&self, name: &str) -> Result<(), Fault> {
        if let Said::Value(value) = self.ask(&[b"CONFIG", b"GET", name.as_bytes()]).await? {
            self.found.borrow_mut().facts.read_config(name, &value);
        }
        Ok(())
    }

    /// The marker, and the two reading commands of a lock.
    async fn reads(&self) -> Result<(), Fault> {
        let (get, pttl): ([&[u8]; 2], [&[u8]; 2]) = (
            [b"GET", &self.plan.marker_key],
            [b"PTTL", &self.plan.lock_key],
        );
        let (marker, left) = try_join(self.ask(&get), self.ask(&pttl)).await?;
        match marker {
            Said::Value(Value::Nil) => self.found.borrow_mut().marker = Some(Marker::Absent),
            Said::Value(value) => match millis(&value) {
                Ok(since) => self.found.borrow_mut().marker = Some(Marker::Since(since)),
                Err(fault) => self.found.borrow_mut().fault = Some(fault),
            },
            Said::Refused(fault) => self.refused("get", fault),
        }
        if let Said::Refused(fault) = left {
            self.refused("pttl", fault);
        }
        Ok(())
    }

    fn refused(&self, command: &str, fault: Fault) {
        let mut found = self.found.borrow_mut();
        if fault.kind() == FaultKind::Permission {
            let detail = fault.detail().unwrap_or_default();
            let permission = lacking(command, detail, &self.plan.prefix);
            found.miss(permission);
        } else {
            found.fault.get_or_insert(fault);
        }
    }

    /// Asks the server what it would let us do; nothing of it is done. Since Redis 7.0, and only
    /// where `ACL DRYRUN` is allowed.
    async fn dry_runs(&self) -> Result<(), Fault> {
        let Said::Value(Value::BulkString(user)) = self.ask(&[b"ACL", b"WHOAMI"]).await? else {
            return Ok(());
        };
        let (lock, marker) = (
            Arc::clone(&self.plan.lock_key),
            Arc::clone(&self.plan.marker_key),
        );
        let digest = [b'0'; 40];
        let commands: [&[&[u8]]; 10] = [
            &[b"eval", b"return 0", b"1", &lock],
            &[b"eval", b"return 0", b"1", &marker],
            &[b"evalsha", &digest, b"1", &lock],
            &[b"set", &lock, b"x", b"NX", b"PX", b"1"],
            &[b"set", &marker, b"x", b"NX"],
            &[b"get", &lock],
            &[b"del", &lock],
            &[b"pttl", &lock],
            &[b"pexpire", &lock, b"1"],
            &[b"time"],
        ];
        let answers = try_join_all(commands.map(|command| self.dry_run(&user, command))).await?;
        for (command, said) in commands.iter().zip(answers) {
            match said {
                Said::Value(Value::Okay) => {}
                Said::Value(Value::BulkString(text)) => {
                    let name = String::from_utf8_lossy(command[0]);
                    let text = String::from_utf8_lossy(&text);
                    let permission = lacking(&name, &text, &self.plan.prefix);
                    self.found.borrow_mut().miss(permission);
                }
                _ => return Ok(()),
            }
        }
        self.found.borrow_mut().unsure = false;
        Ok(())
    }

    async fn dry_run(&self, user: &[u8], command: &[&[u8]]) -> Result<Said, Fault> {
        let start: [&[u8]; 3] = [b"ACL", b"DRYRUN", user];
        self.ask(&[&start, command].concat()).await
    }

    /// One TIME after the other, spread over the span of the plan.
    async fn probe(&self) -> Result<(), Fault> {
        let start = self.clock.now();
        let step = self.plan.span / self.plan.samples.max(1);
        for count in 0..self.plan.samples {
            let due = start.after(step * count);
            let wait = due.since(self.clock.now());
            if !wait.is_zero() {
                sleep(wait).await;
            }
            let sent = self.clock.now();
            // A slow node is asked less often, rather than for longer.
            if sent.since(start) >= self.plan.span {
                break;
            }
            let said = self.ask(&[b"TIME"]).await?;
            let received = self.clock.now();
            let node_time = match said {
                Said::Value(value) => time(&value),
                Said::Refused(fault) => {
                    self.refused("time", fault);
                    None
                }
            };
            self.found.borrow_mut().samples.push(Sample {
                sent,
                received,
                node_time,
            });
        }
        Ok(())
    }
}

/// The rule that would allow what was refused with `text`: a command, or the keys.
fn lacking(command: &str, text: &str, prefix: &str) -> String {
    let text = text.split(';').next().unwrap_or_default();
    match text.contains(" key") || text.contains("keys") {
        true => format!("~{prefix}*"),
        false => format!("+{command}"),
    }
}

/// TIME: seconds and microseconds, as text. None that is centuries away.
fn time(value: &Value) -> Option<Duration> {
    let Value::Array(parts) = value else {
        return None;
    };
    let number = |value: &Value| match value {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    match parts.as_slice() {
        [seconds, micros] => {
            let seconds = Duration::from_secs(number(seconds)?);
            let time = seconds.checked_add(Duration::from_micros(number(micros)?))?;
            u64::try_from(time.as_nanos()).is_ok().then_some(time)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_no_clock_shows_is_none() {
        let said = |seconds: u64, micros: u64| {
            let text = |number: u64| Value::BulkString(number.to_string().into_bytes());
            time(&Value::Array(vec![text(seconds), text(micros)]))
        };
        assert_eq!(said(1, 500_000), Some(Duration::from_millis(1_500)));
        assert_eq!(said(u64::MAX, 1_000_000), None);
        assert_eq!(said(u64::MAX / 2, 0), None);
    }

    #[test]
    fn a_refusal_names_the_rule_that_is_missing() {
        let prefix = "locks:";
        for (text, rule) in [
            ("User b has no permissions to run the 'set' command", "+set"),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                "~locks:*",
            ),
            (
                "User b has no permissions to access the 'locks:{x}' key",
                "~locks:*",
            ),
            ("NOPERM no run; needed: keys", "+set"),
        ] {
            assert_eq!(lacking("set", text, prefix), rule, "{text}");
        }
    }
}
