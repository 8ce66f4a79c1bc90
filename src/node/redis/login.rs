//! The first words on a connection: protocol, credentials, database, and who is there (P10).
//!
//! ```text
//!   HELLO 3, INFO, marker                               nothing to log in with
//!   HELLO 3 AUTH, SELECT ─► INFO, marker                a server that speaks RESP3
//!   HELLO 3 AUTH, refused ─► AUTH, SELECT ─► …          one that does not
//! ```
//!
//! RESP3 is a wish: what a lock needs goes over RESP2 as well. Without a login all goes out at
//! once; with one, nothing is asked before it is known that it went well, since the marker would
//! be written to another database, or in another user's name.

use std::io;

use redis::{Cmd, ServerError, Value};
use tokio::io::Interest;

use crate::node::connect::{Target, socket_fault};
use crate::node::socket::Socket;
use crate::node::wire::{self, Replies, server_fault};
use crate::node::{Fault, FaultKind, Life};

/// A connection before its session.
pub(super) struct Login<'a> {
    pub(super) socket: &'a mut Socket,
    pub(super) replies: &'a mut Replies,
    /// Whether the server has said anything yet.
    pub(super) heard: bool,
    /// Whether it speaks RESP3, and so may say things unasked.
    pub(super) resp3: bool,
}

/// Name and password, where there are any.
type Credentials = (Option<String>, Option<String>);

impl Login<'_> {
    /// Logs in, and reads who is there. Without `hello` RESP3 is not asked for.
    ///
    /// # Errors
    /// The node cannot serve us, or the connection has ended.
    pub(super) async fn run(
        &mut self,
        target: &Target,
        marker_key: &[u8],
        hello: bool,
    ) -> Result<Life, Fault> {
        let credentials = target.credentials().await?;
        let [info, marker] = wire::introduction(marker_key);
        if credentials.1.is_none() && target.database == 0 {
            let mut commands = vec![info, marker];
            if hello {
                commands.insert(0, greeting(None));
            }
            let values = self.exchange(&commands, hello).await?;
            // A refused HELLO leaves everything as it was.
            self.resp3 = hello && matches!(values[0], Value::Map(_));
            return wire::introduced(&values[usize::from(hello)..]);
        }
        self.log_in(target, credentials, hello).await?;
        let values = self.exchange(&[info, marker], false).await?;
        wire::introduced(&values)
    }

    async fn log_in(
        &mut self,
        target: &Target,
        (user, password): Credentials,
        hello: bool,
    ) -> Result<(), Fault> {
        let mut known = password.is_none();
        if hello {
            let who = password.as_deref();
            let who = who.map(|password| (user.as_deref().unwrap_or("default"), password));
            let values = self.exchange(&[greeting(who)], true).await?;
            match values.first() {
                Some(Value::ServerError(error)) if error.code() == "WRONGPASS" => {
                    return Err(refused(error));
                }
                // Too old, not allowed to, or it dislikes how it was asked: AUTH will tell.
                Some(Value::ServerError(_)) | None => {}
                Some(value) => {
                    known = true;
                    self.resp3 = matches!(value, Value::Map(_));
                }
            }
        }
        if let Some(password) = password.filter(|_| !known) {
            let words = [user.as_deref(), Some(&password)];
            if let Err(error) = self.authenticate(&words).await? {
                // Before Redis 6.0 there were no names.
                let nameless = error.details().is_some_and(|text| {
                    text.contains("wrong number of arguments") && user.is_some()
                });
                if !nameless {
                    return Err(refused(&error));
                }
                let again = self.authenticate(&[None, Some(&password)]).await?;
                again.map_err(|error| refused(&error))?;
            }
        }
        if target.database != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(target.database);
            if let Some(Value::ServerError(error)) = self.exchange(&[select], false).await?.first()
            {
                return Err(server_fault(error));
            }
        }
        Ok(())
    }

    async fn authenticate(
        &mut self,
        words: &[Option<&str>],
    ) -> Result<Result<(), ServerError>, Fault> {
        let mut auth = redis::cmd("AUTH");
        for word in words.iter().flatten() {
            auth.arg(*word);
        }
        match self.exchange(&[auth], false).await?.pop() {
            Some(Value::ServerError(error)) => Ok(Err(error)),
            _ => Ok(Ok(())),
        }
    }

    /// Sends `commands`, of which the first may be HELLO (`greets`), and reads as many replies.
    ///
    /// # Errors
    /// The connection has ended; with a reason, if the server said one.
    async fn exchange(&mut self, commands: &[Cmd], greets: bool) -> Result<Vec<Value>, Fault> {
        let mut out = Vec::new();
        for command in commands {
            command.write_packed_command(&mut out);
        }
        let (stream, mut sent) = (self.socket.stream(), 0);
        let mut values = Vec::with_capacity(commands.len());
        let mut deaf = None;
        loop {
            if deaf.is_none() {
                match self.socket.write(&out[sent..]) {
                    Ok(count) => sent += count,
                    Err(error) => deaf = Some(socket_fault(error)),
                }
            }
            loop {
                while let Some(value) = self.replies.next()? {
                    self.heard = true;
                    if !matches!(value, Value::Push { .. }) {
                        values.push(value);
                    }
                    if values.len() == commands.len() {
                        return Ok(values);
                    }
                }
                match self.socket.read(self.replies.room()) {
                    Ok(0) => return Err(last_words(&values, greets, hung_up())),
                    Ok(count) => self.replies.received(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(last_words(&values, greets, socket_fault(error))),
                }
            }
            if let Some(fault) = deaf {
                return Err(last_words(&values, greets, fault));
            }
            let interest = match sent < out.len() || self.socket.wants_write() {
                true => Interest::READABLE | Interest::WRITABLE,
                false => Interest::READABLE,
            };
            stream.ready(interest).await.map_err(socket_fault)?;
        }
    }
}

/// HELLO, which asks for RESP3, with a login where there is one.
fn greeting(who: Option<(&str, &str)>) -> Cmd {
    let mut hello = redis::cmd("HELLO");
    hello.arg(3);
    if let Some((user, password)) = who {
        hello.arg("AUTH").arg(user).arg(password);
    }
    hello
}

fn refused(error: &ServerError) -> Fault {
    let fault = server_fault(error);
    match fault.kind() {
        FaultKind::Loading => fault,
        _ => Fault::new(FaultKind::Auth, fault.detail().unwrap_or_default()),
    }
}

pub(super) fn hung_up() -> Fault {
    let detail = "the server closed the connection";
    Fault::new(FaultKind::ConnectionLost, detail)
}

/// Why the connection has ended with `end`: an error may say it, as a rule one that is no answer
/// to HELLO. A server that is full says so before it reads anything, and resets the connection.
fn last_words(values: &[Value], greets: bool, end: Fault) -> Fault {
    match values.get(usize::from(greets)).or(values.first()) {
        Some(Value::ServerError(error)) => server_fault(error),
        _ => end,
    }
}
