//! What a server says of itself.

use std::time::Duration;

use redis::Value;

/// What a server is to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Master,
    /// A replica of the server at this address, as the replica has it.
    Replica {
        of: String,
    },
    Other(String),
}

/// All that may be known; `None` where the server does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) product: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) role: Option<Role>,
    /// The same for a master and its replicas.
    pub(crate) replication_id: Option<String>,
    /// Random for each process of a server.
    pub(crate) run_id: Option<String>,
    pub(crate) uptime: Option<Duration>,
    /// Whether an append-only file is kept, and how it is written out.
    pub(crate) aof: Option<bool>,
    pub(crate) fsync: Option<String>,
    /// Whether snapshots are taken.
    pub(crate) rdb: Option<bool>,
    /// In bytes; zero is no limit.
    pub(crate) max_memory: Option<u64>,
    pub(crate) eviction: Option<String>,
    pub(crate) cluster: Option<bool>,
}

impl Facts {
    /// Reads the answer to INFO.
    pub(crate) fn read_info(&mut self, value: &Value) {
        let Some(info) = text(value) else { return };
        let field = |name: &str| {
            let mut lines = info.lines();
            let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| short(value.trim()))
                .filter(|value| !value.is_empty())
        };
        let flag = |name: &str| field(name).map(|value| value == "1");
        let valkey = field("valkey_version");
        let product = if valkey.is_some() { "Valkey" } else { "Redis" };
        self.version = valkey.or_else(|| field("redis_version"));
        self.product = self.version.as_ref().map(|_| product.to_owned());
        let master = || {
            let host = field("master_host").unwrap_or_else(|| "?".to_owned());
            format!("{host}:{}", field("master_port").unwrap_or_default())
        };
        self.role = field("role").map(|role| match role.as_str() {
            "master" => Role::Master,
            "slave" | "replica" => Role::Replica { of: master() },
            _ => Role::Other(role),
        });
        self.replication_id = field("master_replid");
        self.run_id = field("run_id");
        let seconds = field("uptime_in_seconds").and_then(|text| text.parse::<i64>().ok());
        self.uptime = seconds.map(|seconds| Duration::from_secs(seconds.try_into().unwrap_or(0)));
        self.aof = flag("aof_enabled");
        self.max_memory = field("maxmemory").and_then(|text| text.parse().ok());
        self.eviction = field("maxmemory_policy");
        self.cluster = flag("cluster_enabled");
    }

    /// Reads the answer to HELLO, a list of names and values.
    pub(crate) fn read_hello(&mut self, value: &Value) {
        let Value::Array(items) = value else { return };
        for pair in items.chunks_exact(2) {
            let (Some(name), Some(value)) = (text(&pair[0]), text(&pair[1])) else {
                continue;
            };
            let value = short(&value);
            match (name.as_str(), value.as_str()) {
                ("server", "redis") => self.product = Some("Redis".to_owned()),
                ("server", "valkey") => self.product = Some("Valkey".to_owned()),
                ("version", _) => self.version = Some(value),
                ("role", "master") => self.role = Some(Role::Master),
                ("role", _) => {
                    let of = "?".to_owned();
                    self.role = Some(Role::Replica { of });
                }
                ("mode", mode) => self.cluster = Some(mode == "cluster"),
                _ => {}
            }
        }
    }

    /// Reads the answer to CONFIG GET of one name.
    pub(crate) fn read_config(&mut self, name: &str, value: &Value) {
        let Value::Array(items) = value else { return };
        let [_, value] = items.as_slice() else { return };
        let Some(value) = text(value) else { return };
        match name {
            "save" => self.rdb = Some(!value.trim().is_empty()),
            "appendfsync" => self.fsync = Some(short(&value)),
            _ => {}
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(text) => Some(String::from_utf8_lossy(text).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}

/// An answer may be of any length, and hold anything.
fn short(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control());
    printable.take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn info_of_redis_and_valkey_is_read() {
        let mut facts = Facts::default();
        facts.read_info(&bulk(
            "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:12\r\n\
             maxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n\
             role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_replid:77\r\n\
             cluster_enabled:0\r\n",
        ));
        assert_eq!(facts.product.as_deref(), Some("Redis"));
        assert_eq!(facts.version.as_deref(), Some("7.0.15"));
        let of = "10.0.0.1:6379".to_owned();
        assert_eq!(facts.role, Some(Role::Replica { of }));
        assert_eq!(facts.uptime, Some(Duration::from_secs(12)));
        assert_eq!(facts.max_memory, Some(1 << 20));
        assert_eq!((facts.aof, facts.cluster), (Some(true), Some(false)));

        facts.read_info(&bulk(
            "redis_version:7.2.4\r\nvalkey_version:9.0.1\r\nrole:master\r\nuptime_in_seconds:-5",
        ));
        assert_eq!(facts.product.as_deref(), Some("Valkey"));
        assert_eq!(facts.version.as_deref(), Some("9.0.1"));
        assert_eq!(facts.role, Some(Role::Master));
        assert_eq!(facts.uptime, Some(Duration::ZERO));
        assert_eq!(facts.run_id, None);
    }

    #[test]
    fn hello_and_config_fill_gaps_and_nonsense_fills_none() {
        let mut facts = Facts::default();
        facts.read_info(&Value::Nil);
        facts.read_hello(&Value::Int(3));
        facts.read_config("save", &Value::Array(vec![bulk("save")]));
        assert_eq!(facts, Facts::default());
        let pairs = ["server", "valkey", "version", "9.1.0", "role", "master"];
        facts.read_hello(&Value::Array(pairs.iter().map(|text| bulk(text)).collect()));
        assert_eq!(facts.product.as_deref(), Some("Valkey"));
        assert_eq!(facts.role, Some(Role::Master));
        facts.read_config("save", &Value::Array(vec![bulk("save"), bulk("")]));
        assert_eq!(facts.rdb, Some(false));
        facts.read_config("save", &Value::Array(vec![bulk("save"), bulk("60 1")]));
        assert_eq!(facts.rdb, Some(true));
    }
}
