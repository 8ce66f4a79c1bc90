//! A value in Redis or Valkey that refuses stale writers.
//!
//! The value and the highest token seen live under one key, a hash with the fields `value` and
//! `fence`; so they expire, are copied and are deleted together. Any server will do, it need not
//! be one of the lock's nodes; and any connection of the `redis` crate, which is
//! [`quorumlock::redis`](crate::redis) in the version that fits. The key is used as it is given.
//!
//! Everybody may read by `HGET key value`. Nobody may write but through [`write()`].
//!
//! The token protects the value as long as the server keeps both: a server that forgets its last
//! second when it crashes, or fails over to a replica that lags behind, forgets the highest token
//! of that second, and lets a stale write of it pass. So does a key that expires while an old
//! holder is still about.
//!
//! ```no_run
//! # async fn f(mut connection: quorumlock::redis::aio::MultiplexedConnection)
//! # -> Result<(), quorumlock::fence::redis::Error> {
//! use quorumlock::{FencingToken, fence::redis};
//!
//! let (old, new) = (FencingToken::from_u64(33), FencingToken::from_u64(34));
//! redis::write(&mut connection, "balance/7", old, "100").await?;
//! redis::write(&mut connection, "balance/7", new, "120").await?;
//! let refused = redis::write(&mut connection, "balance/7", old, "90").await.unwrap_err();
//! assert_eq!(refused.stale().map(|stale| stale.highest), Some(new));
//!
//! let entry = redis::read(&mut connection, "balance/7").await?.unwrap();
//! assert_eq!((entry.value.as_deref(), entry.highest), (Some(&b"120"[..]), new));
//! # Ok(()) }
//! ```

use std::sync::LazyLock;

use ::redis::aio::ConnectionLike;
use ::redis::{ErrorKind, FromRedisValue, RedisError, ServerErrorKind};

use super::Stale;
use crate::quorum::FencingToken;

/// What a fenced key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// What was written last; none if tokens were checked, and nothing written.
    pub value: Option<Vec<u8>>,
    /// The highest token seen: of the last write, or of a [`check`] after it.
    pub highest: FencingToken,
}

/// Why a fenced operation on Redis was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The resource has seen a higher token. Nothing was written; give up the work.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The key holds something that is no fenced value: another type, a hash of somebody else, or
    /// a token that is no number. It is left alone. Choose another key, or move what is there.
    #[error("the key holds {found}, and no fenced value; it is left alone")]
    Foreign {
        /// What is there.
        found: String,
    },
    /// The connection or the server failed. After a connection error the write may have been
    /// done; it may be sent again under the same token.
    #[error(transparent)]
    Redis(#[from] RedisError),
}

impl Error {
    /// The refusal, if that is what it is.
    #[must_use]
    pub fn stale(&self) -> Option<Stale> {
        match self {
            Error::Stale(stale) => Some(*stale),
            _ => None,
        }
    }
}

/// Writes `value` to `key`, unless the key has seen a higher token than `token`.
///
/// # Errors
/// [`Error::Stale`] it has, and nothing was written; [`Error::Foreign`] the key is no fenced
/// value; [`Error::Redis`] connection and server errors.
///
/// # Cancel safety
/// A dropped future leaves open whether the value was written. Writing it again under the same
/// token does no harm.
///
/// # Round trips
/// One; two when the server does not know the script yet.
///
/// # Guarantee
/// The server checks and writes in one step: no write is done after one with a higher token, as
/// long as the server keeps the key.
pub async fn write(
    connection: &mut impl ConnectionLike,
    key: impl AsRef<[u8]>,
    token: FencingToken,
    value: impl AsRef<[u8]>,
) -> Result<(), Error> {
    offer(connection, key.as_ref(), token, Some(value.as_ref())).await
}

/// Shows `token` to `key`: from now on the key refuses lower ones. Writes no value.
///
/// For a holder that reads first and writes later: after this, what it reads cannot be changed by
/// an older holder. It does not allow a plain write afterwards, which may be overtaken.
///
/// # Errors
/// As for [`write()`].
///
/// # Cancel safety
/// As for [`write()`].
///
/// # Round trips
/// As for [`write()`].
pub async fn check(
    connection: &mut impl ConnectionLike,
    key: impl AsRef<[u8]>,
    token: FencingToken,
) -> Result<(), Error> {
    offer(connection, key.as_ref(), token, None).await
}

/// Reads the value and the highest token, both of the same moment; none if the key is not there.
/// Needs no lock.
///
/// # Errors
/// [`Error::Foreign`] the key is no fenced value; [`Error::Redis`] connection and server errors.
///
/// # Cancel safety
/// It changes nothing.
///
/// # Round trips
/// As for [`write()`].
pub async fn read(
    connection: &mut impl ConnectionLike,
    key: impl AsRef<[u8]>,
) -> Result<Option<Entry>, Error> {
    type Answer = (i64, Vec<u8>, Option<Vec<u8>>);
    let answer: Answer = READ.run(connection, key.as_ref(), &[]).await?;
    match answer {
        (1, fence, value) => Ok(Some(Entry {
            value,
            highest: parse(&fence)?,
        })),
        (0, ..) => Ok(None),
        (_, found, _) => Err(foreign(&found)),
    }
}

async fn offer(
    connection: &mut impl ConnectionLike,
    key: &[u8],
    token: FencingToken,
    value: Option<&[u8]>,
) -> Result<(), Error> {
    if token.is_none() {
        return Err(Error::Stale(Stale::NO_TOKEN));
    }
    let digits = u64::from(token).to_string();
    let arguments: Vec<&[u8]> = [Some(digits.as_bytes()), value]
        .into_iter()
        .flatten()
        .collect();
    let answer: (i64, Vec<u8>) = WRITE.run(connection, key, &arguments).await?;
    match answer {
        (1, _) => Ok(()),
        (0, highest) => Err(Error::Stale(Stale {
            offered: token,
            highest: parse(&highest)?,
        })),
        (_, found) => Err(foreign(&found)),
    }
}

fn parse(digits: &[u8]) -> Result<FencingToken, Error> {
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok());
    number
        .map(FencingToken::from_u64)
        .ok_or_else(|| foreign(b"a token that is no 64-bit number"))
}

fn foreign(found: &[u8]) -> Error {
    Error::Foreign {
        found: String::from_utf8_lossy(found).into_owned(),
    }
}

/// A script and its digest.
struct Script {
    text: &'static str,
    sha: String,
}

static WRITE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("write.lua")));
static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("read.lua")));

impl Script {
    fn new(text: &'static str) -> Self {
        let sha = ::redis::Script::new(text).get_hash().to_owned();
        Script { text, sha }
    }

    /// By digest, and by text where the server does not know it: which also teaches it, and needs
    /// no right to load scripts. NOSCRIPT means that nothing was done yet.
    async fn run<T: FromRedisValue>(
        &self,
        connection: &mut impl ConnectionLike,
        key: &[u8],
        arguments: &[&[u8]],
    ) -> Result<T, RedisError> {
        let command = |name: &str, script: &str| {
            let mut command = ::redis::cmd(name);
            command.arg(script).arg(1).arg(key);
            for argument in arguments {
                command.arg(*argument);
            }
            command
        };
        let answer = command("EVALSHA", &self.sha).query_async(connection).await;
        match answer {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                command("EVAL", self.text).query_async(connection).await
            }
            answer => answer,
        }
    }
}
