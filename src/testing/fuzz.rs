//! What reads the bytes of others, for `fuzz/` and `tests/fuzz_corpus` and nobody else: one function
//! for each kind. Each takes any bytes at all, and panics where a promise is broken.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::clock::Instant;
use crate::config::{Config, ConfigError};
use crate::node::lane::{Entry, Work};
use crate::node::wire::{self, Answer, Replies};
use crate::node::{Ask, Fencing, Order, OwnerToken, Reply};

/// A password of the corpora. Whatever becomes of the text around it, as long as it stands where a
/// password does, no message may have it.
const PASSWORD: &str = "hunter2";

/// The owner token of what is asked: twenty bytes of this.
const OWNER: [u8; 20] = [0x11; 20];

/// A configuration file.
#[cfg(feature = "serde")]
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let assigned = [" = \"", "=\""].map(|sign| format!("password{sign}{PASSWORD}\""));
    let hides = assigned.iter().any(|text_of| text.contains(text_of));
    // Where it stands at other places, too, nobody can tell what it is.
    let once = text.matches(PASSWORD).count() == 1;
    let said = match Config::from_toml(text) {
        Ok(config) => usable(&config),
        Err(error) => shown(&error),
    };
    assert!(!(hides && once && said.contains(PASSWORD)), "{said}");
}

/// The URL of a node.
pub fn address(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let said = usable(&Config::new([text]));
    // At that place it can be nothing else, but in the path of a socket.
    let hides = text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.to_ascii_lowercase().ends_with("unix") && rest.starts_with(&format!(":{PASSWORD}@"))
    });
    let once = text.matches(PASSWORD).count() == 1;
    assert!(!(hides && once && said.contains(PASSWORD)), "{said}");
}

/// All that can be said of settings, if they can be used or not.
fn usable(config: &Config) -> String {
    let mut said = format!("{config:?}");
    match config.validate() {
        Ok(()) => {
            let rows = config.effective();
            said.push_str(&format!("{rows:?}"));
            // What passed the check can be used.
            let client = crate::client::Client::with_config(config.clone());
            assert!(client.is_ok(), "{:?}", client.err());
        }
        Err(error) => said.push_str(&shown(&error)),
    }
    said
}

fn shown(error: &ConfigError) -> String {
    format!("{error} {error:?}")
}

/// What a server sends. The first byte says in what pieces it comes, which may change nothing.
pub fn replies(data: &[u8]) {
    let Some((&step, bytes)) = data.split_first() else {
        return;
    };
    let whole = read(bytes, bytes.len());
    let pieces = read(bytes, usize::from(step) + 1);
    // Not by value: a NaN is no NaN.
    assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
    let (values, _) = whole;
    alike(bytes, values.first());
    for at in 0..values.len() {
        judge(&values[at..]);
    }
    let _ = wire::introduced(&values);
    let _ = wire::note(bytes);
}

/// The values in `bytes`, which come in pieces of this size; and whether there is no going on.
fn read(bytes: &[u8], piece: usize) -> (Vec<Value>, bool) {
    let mut replies = Replies::default();
    let mut values = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let room = replies.room();
        let count = rest.len().min(piece).min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        replies.received(count);
        loop {
            match replies.next() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(_) => return (values, true),
            }
        }
    }
    (values, false)
}

/// What is read by hand is what redis-rs reads.
fn alike(bytes: &[u8], ours: Option<&Value>) {
    let plain = bytes.first().is_some_and(|kind| b"+:_$*".contains(kind));
    let Some(ours) = ours.filter(|_| plain && !bytes.contains(&b'|')) else {
        return;
    };
    if let Ok(theirs) = redis::parse_redis_value(bytes) {
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }
}

/// Everything that may be asked, answered with these values. A vote for us needs more than noise.
fn judge(values: &[Value]) {
    let fence = Fencing {
        hint: 1,
        retention_millis: 2,
        max_ttl_millis: 3,
    };
    let grant = |fence, announced| {
        Work::Ask(Ask::Grant {
            ttl_millis: 1_500,
            fence,
            block: 1,
            announced,
        })
    };
    let extend = Ask::Extend {
        ttl_millis: 1_500,
        restore: true,
        fence: None,
    };
    let release = Ask::Release {
        until: Instant::FAR,
        fence: None,
    };
    let works = [
        grant(None, false),
        grant(None, true),
        grant(Some(fence), false),
        Work::Ask(Ask::Raise { to: 9, fence }),
        Work::Ask(extend),
        Work::Ask(release),
        Work::Inspect,
    ];
    for work in works {
        let entry = Entry {
            id: 1,
            order: Arc::new(Order {
                round: 1,
                key: Arc::from(&b"k"[..]),
                token: OwnerToken::new(OWNER),
            }),
            work,
            spelled_out: false,
        };
        let answer = wire::decode(&entry, &mut values.iter().cloned());
        let (Answer::Reply(reply) | Answer::Timed(reply, _)) = &answer else {
            continue;
        };
        let refused = matches!(
            values.first(),
            None | Some(Value::Nil | Value::ServerError(_))
        );
        let ours = matches!(
            reply,
            Reply::Granted { .. } | Reply::Renewed | Reply::Restored | Reply::Raised(true)
        );
        assert!(!(refused && ours), "{values:?} was read as {reply:?}");
        if let Answer::Timed(_, time) = answer {
            // What the coordinator does with it next.
            let _ = crate::node::counter::Now::at(time, Duration::from_secs(60));
        }
        let _ = format!("{reply:?}");
    }
    values.iter().cloned().for_each(|value| {
        let _ = wire::pushed(value);
    });
}
