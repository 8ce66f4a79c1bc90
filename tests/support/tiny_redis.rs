//! A very small Redis for [`Stub`](super::Stub): the commands that a lock client sends, on one
//! store, with each refusal and each reported fact open to the test.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::keys::{Keys, number};
use super::stub_reply::StubReply;

/// A script that a client wants to run.
#[derive(Debug, Clone)]
pub struct ScriptCall {
    pub sha: String,
    pub body: String,
    pub keys: Vec<Vec<u8>>,
    pub args: Vec<Vec<u8>>,
}

type ScriptHook = Box<dyn Fn(&mut Keys, &ScriptCall) -> StubReply + Send>;

/// Runs no Lua. EVALSHA of an unknown script answers NOSCRIPT; a script that is known (from EVAL
/// or SCRIPT LOAD) goes to the hook of [`on_script`](TinyRedis::on_script), and without one the
/// answer is an error. The databases of SELECT are all the same one. Nothing is ever evicted.
#[derive(Default)]
pub struct TinyRedis {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    keys: Keys,
    facts: Facts,
    password: Option<(String, Vec<u8>)>,
    let_in: HashSet<usize>,
    refusals: HashMap<String, StubReply>,
    scripts: HashMap<String, String>,
    hook: Option<ScriptHook>,
}

struct Facts {
    run_id: String,
    version: String,
    uptime: u64,
    role: String,
}

impl Default for Facts {
    fn default() -> Self {
        let (run_id, version, role) = ("5".repeat(40), "7.0.15".into(), "master".into());
        Facts {
            run_id,
            version,
            uptime: 1_000_000,
            role,
        }
    }
}

impl TinyRedis {
    /// An empty master of version 7.0.15, up for a million seconds, without a password.
    pub fn new() -> TinyRedis {
        TinyRedis::default()
    }

    pub fn set_run_id(&self, run_id: &str) {
        self.lock().facts.run_id = run_id.to_owned();
    }

    pub fn set_version(&self, version: &str) {
        self.lock().facts.version = version.to_owned();
    }

    pub fn set_uptime(&self, seconds: u64) {
        self.lock().facts.uptime = seconds;
    }

    /// `"master"` or `"slave"`. A slave answers READONLY to writes.
    pub fn set_role(&self, role: &str) {
        self.lock().facts.role = role.to_owned();
    }

    /// Asks each connection for this password; the user is `"default"` where AUTH names none.
    pub fn require(&self, user: &str, password: impl AsRef<[u8]>) {
        self.lock().password = Some((user.to_owned(), password.as_ref().to_vec()));
    }

    /// Answers a command in this way from now on. `command` is its name, or its first two words:
    /// `"HELLO"`, `"CLIENT SETINFO"`.
    pub fn answer(&self, command: &str, reply: StubReply) {
        self.lock().refusals.insert(command.to_uppercase(), reply);
    }

    /// Takes an [`answer`](TinyRedis::answer) back.
    pub fn answer_again(&self, command: &str) {
        self.lock().refusals.remove(&command.to_uppercase());
    }

    /// What scripts do. The hook may read and write the keys; it must not call this object.
    pub fn on_script(&self, hook: impl Fn(&mut Keys, &ScriptCall) -> StubReply + Send + 'static) {
        self.lock().hook = Some(Box::new(hook));
    }

    /// Forgets the scripts, as SCRIPT FLUSH does.
    pub fn forget_scripts(&self) {
        self.lock().scripts.clear();
    }

    /// Looks at the keys, or changes them, while no command runs.
    pub fn with_keys<T>(&self, look: impl FnOnce(&mut Keys) -> T) -> T {
        look(&mut self.lock().keys)
    }

    /// The answer to one command of one connection.
    pub fn handle(&self, connection: usize, args: &[Vec<u8>]) -> StubReply {
        let words: Vec<_> = args
            .iter()
            .map(|a| String::from_utf8_lossy(a).to_uppercase())
            .collect();
        let Some(name) = words.first() else {
            return error("ERR empty command");
        };
        let mut inner = self.lock();
        let two_words = words.get(1).map(|second| format!("{name} {second}"));
        let refusal = two_words.and_then(|name| inner.refusals.get(&name));
        if let Some(reply) = refusal.or_else(|| inner.refusals.get(name)) {
            return reply.clone();
        }
        match (name.as_str(), args) {
            ("AUTH", [_, password]) => inner.authenticate(connection, b"default", password),
            ("AUTH", [_, user, password]) => inner.authenticate(connection, user, password),
            ("HELLO", _) => inner.hello(connection, &words, args),
            _ if inner.is_locked_out(connection) => error("NOAUTH Authentication required."),
            _ => inner.run(name, &words, args),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn is_locked_out(&self, connection: usize) -> bool {
        self.password.is_some() && !self.let_in.contains(&connection)
    }

    fn authenticate(&mut self, connection: usize, user: &[u8], password: &[u8]) -> StubReply {
        match &self.password {
            Some((name, secret)) if name.as_bytes() == user && secret == password => {
                self.let_in.insert(connection);
                StubReply::Ok
            }
            Some(_) => error("WRONGPASS invalid username-password pair or user is disabled."),
            None => error("ERR AUTH called without any password configured for the default user."),
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`
    fn hello(&mut self, connection: usize, words: &[String], args: &[Vec<u8>]) -> StubReply {
        if let Some(at) = words.iter().position(|word| word == "AUTH") {
            let Some([user, password]) = args.get(at + 1..at + 3) else {
                return error("ERR syntax error");
            };
            let reply = self.authenticate(connection, user, password);
            if reply != StubReply::Ok {
                return reply;
            }
        } else if self.is_locked_out(connection) {
            return error("NOAUTH HELLO must be called with the client already authenticated.");
        }
        let (version, role) = (&self.facts.version, &self.facts.role);
        let map = |head: &str, proto: u8| {
            let text = |text: &str| format!("${}\r\n{text}\r\n", text.len());
            let pairs = [
                ("server", "redis"),
                ("version", version),
                ("mode", "standalone"),
                ("role", role),
            ];
            let pairs: String = pairs
                .iter()
                .map(|(name, value)| text(name) + &text(value))
                .collect();
            StubReply::Raw(format!("{head}\r\n{pairs}{}:{proto}\r\n", text("proto")).into_bytes())
        };
        match words.get(1).map(String::as_str) {
            Some("3") => map("%5", 3),
            None | Some("2") => map("*10", 2),
            Some(_) => error("NOPROTO unsupported protocol version"),
        }
    }

    fn run(&mut self, name: &str, words: &[String], args: &[Vec<u8>]) -> StubReply {
        let writes = matches!(name, "SET" | "DEL" | "PEXPIRE" | "EVAL" | "EVALSHA");
        if writes && self.facts.role != "master" {
            return error("READONLY You can't write against a read only replica.");
        }
        match (name, args) {
            ("PING", _) => StubReply::Simple("PONG".into()),
            ("SELECT" | "CLIENT", _) => StubReply::Ok,
            ("INFO", _) => StubReply::Bulk(self.info().into_bytes()),
            ("TIME", _) => time(),
            ("PUBLISH", [_, _, _]) => StubReply::Int(0),
            ("GET", [_, key]) => self.keys.get(key).map_or(StubReply::Nil, StubReply::Bulk),
            ("SET", [_, key, value, options @ ..]) => self.keys.set(key, value, options),
            ("PTTL", [_, key]) => StubReply::Int(self.keys.pttl(key)),
            ("PEXPIRE", [_, key, ms]) => match number(ms) {
                Some(ms) => StubReply::Int(self.keys.expire(key, Duration::from_millis(ms)).into()),
                None => error("ERR value is not an integer or out of range"),
            },
            ("DEL", [_, keys @ ..]) => count(keys, |key| self.keys.remove(key)),
            ("EXISTS", [_, keys @ ..]) => count(keys, |key| self.keys.get(key).is_some()),
            ("SCRIPT", [_, _, body]) if words[1] == "LOAD" => StubReply::bulk(self.load(body)),
            ("SCRIPT", [_, _, ..]) if words[1] == "FLUSH" => {
                self.scripts.clear();
                StubReply::Ok
            }
            ("EVAL", [_, body, rest @ ..]) => {
                let sha = self.load(body);
                self.script(&sha, rest)
            }
            ("EVALSHA", [_, sha, rest @ ..]) => self.script(&String::from_utf8_lossy(sha), rest),
            _ => error(&format!(
                "ERR unknown command '{name}' or wrong number of arguments"
            )),
        }
    }

    fn info(&self) -> String {
        let Facts {
            run_id,
            version,
            uptime,
            role,
        } = &self.facts;
        format!(
            "# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\nrun_id:{run_id}\r\n\
             uptime_in_seconds:{uptime}\r\n\r\n# Replication\r\nrole:{role}\r\n"
        )
    }

    fn load(&mut self, body: &[u8]) -> String {
        let body = String::from_utf8_lossy(body).into_owned();
        let sha = redis::Script::new(&body).get_hash().to_owned();
        self.scripts.insert(sha.clone(), body);
        sha
    }

    /// `rest` is the number of keys, the keys and the arguments.
    fn script(&mut self, sha: &str, rest: &[Vec<u8>]) -> StubReply {
        let Some(body) = self.scripts.get(&sha.to_lowercase()) else {
            return error("NOSCRIPT No matching script. Please use EVAL.");
        };
        let Some(hook) = &self.hook else {
            return error("ERR this stub runs no scripts");
        };
        let keys = rest
            .first()
            .and_then(|n| number(n))
            .and_then(|n| usize::try_from(n).ok());
        let Some((keys, args)) = keys.and_then(|n| rest[1..].split_at_checked(n)) else {
            return error("ERR Number of keys can't be greater than number of args");
        };
        let (sha, body) = (sha.to_lowercase(), body.clone());
        hook(
            &mut self.keys,
            &ScriptCall {
                sha,
                body,
                keys: keys.to_vec(),
                args: args.to_vec(),
            },
        )
    }
}

fn count(keys: &[Vec<u8>], mut fits: impl FnMut(&Vec<u8>) -> bool) -> StubReply {
    let hits = keys.iter().filter(|key| fits(key)).count();
    StubReply::Int(i64::try_from(hits).unwrap_or(i64::MAX))
}

fn time() -> StubReply {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let parts = [now.as_secs().to_string(), now.subsec_micros().to_string()];
    StubReply::Array(parts.iter().map(StubReply::bulk).collect())
}

fn error(text: &str) -> StubReply {
    StubReply::error(text)
}
