//! Rows in PostgreSQL that refuse stale writers (feature `postgres`).
//!
//! Two ways, both inside your own transaction, so that the check and the writes commit together or
//! not at all:
//!
//! - [`check`] keeps the highest token of each resource in a table of its own, for work that
//!   touches any rows of any tables. [`CREATE_TABLE`] makes it.
//! - [`Update`] changes one row of a table that has a token or a version column.
//!   [`add_columns`] adds them.
//!
//! The SQL is plain, and stands in `migrations/`; other programs that share the database can do
//! the same with it. The types are those of [`quorumlock::tokio_postgres`](crate::tokio_postgres);
//! pools hand out transactions that lead to them.
//!
//! ```no_run
//! # async fn f(client: &mut quorumlock::tokio_postgres::Client, token: quorumlock::FencingToken)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use quorumlock::fence::postgres;
//!
//! client.batch_execute(postgres::CREATE_TABLE).await?; // or by your own migrations
//!
//! let transaction = client.transaction().await?;
//! postgres::check(&transaction, "seat/12a", token).await?; // an error rolls back when dropped
//! transaction.execute("INSERT INTO booking (seat, buyer) VALUES ('12a', 'ada')", &[]).await?;
//! transaction.commit().await?;
//! assert_eq!(postgres::highest(client, "seat/12a").await?, Some(token));
//! # Ok(()) }
//! ```

use tokio_postgres::{GenericClient, Transaction};

use super::Stale;
use crate::quorum::FencingToken;

mod update;

pub use update::{Update, UpdateError};

/// The table of highest tokens, `quorumlock_fence`: the text of
/// `migrations/0001_quorumlock_fence.up.sql`. Running it again changes nothing.
pub const CREATE_TABLE: &str = include_str!("../../../migrations/0001_quorumlock_fence.up.sql");

/// Takes [`CREATE_TABLE`] back: the text of `migrations/0001_quorumlock_fence.down.sql`.
pub const DROP_TABLE: &str = include_str!("../../../migrations/0001_quorumlock_fence.down.sql");

/// The longest name of a resource in the table, in bytes: what fits into a row of its index. Lock
/// and check a digest of a longer one.
pub const LONGEST_RESOURCE: usize = 2000;

/// The statement that gives `table` the columns `fence` and `version`, both `bigint NOT NULL
/// DEFAULT 0`: the text of `migrations/columns.sql`. `table` is one name, and is quoted.
///
/// ```
/// let sql = quorumlock::fence::postgres::add_columns("seat");
/// assert!(sql.contains("ALTER TABLE \"seat\""));
/// ```
#[must_use]
pub fn add_columns(table: &str) -> String {
    include_str!("../../../migrations/columns.sql").replace("{table}", &quoted(table))
}

/// Why a fenced operation on PostgreSQL was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The resource has seen a higher token. Roll back, and give up the work.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// A `bigint` ends at 2^63 − 1, and this token is above. Tokens from the nodes end at 2^53.
    /// Nothing was sent.
    #[error("the fencing token {0} does not fit into a bigint")]
    TokenTooLarge(FencingToken),
    /// A resource in the table has a name of 1 to [`LONGEST_RESOURCE`] bytes. Nothing was sent.
    #[error("a resource's name has 1 to {LONGEST_RESOURCE} bytes in the table, and not {0}")]
    ResourceName(usize),
    /// The connection or the server failed, and with it the transaction. Under REPEATABLE READ and
    /// SERIALIZABLE this may be a serialization failure (40001): run the transaction again.
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
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

/// Inserts the row at first use; afterwards locks it, as SELECT … FOR UPDATE does, and raises it.
/// One statement, so that there is no gap between looking and locking.
const OFFER: &str = "
    INSERT INTO quorumlock_fence AS seen (resource, highest) VALUES ($1, $2)
    ON CONFLICT (resource) DO UPDATE SET highest = greatest(seen.highest, excluded.highest)
    RETURNING highest";

const HIGHEST: &str = "SELECT highest FROM quorumlock_fence WHERE resource = $1";

/// Checks `token` against the highest that `resource` has seen, and makes it the highest, as part
/// of `transaction`. Call it before the writes that it protects, in the same transaction; commit
/// only after it succeeded.
///
/// # Errors
/// [`Error::Stale`] the resource has seen a higher token: roll back (dropping the transaction
/// does). [`Error::TokenTooLarge`] and [`Error::ResourceName`] before anything is sent;
/// [`Error::Postgres`].
///
/// # Cancel safety
/// As for any statement: drop the transaction with the future, and nothing has happened.
///
/// # Round trips
/// One, and one for the first use on a connection, to prepare it. It waits while another
/// transaction that has checked the same resource is open, as long as `lock_timeout` allows.
///
/// # Guarantee
/// The row stays locked until `transaction` ends. So of two transactions that have checked the
/// same resource one ends before the other goes on; none commits after one with a higher token has
/// committed; and one that rolls back leaves the highest token as it was. No clock is involved.
pub async fn check(
    transaction: &Transaction<'_>,
    resource: impl AsRef<[u8]>,
    token: FencingToken,
) -> Result<(), Error> {
    if token.is_none() {
        return Err(Error::Stale(Stale::NO_TOKEN));
    }
    let resource = resource.as_ref();
    if !(1..=LONGEST_RESOURCE).contains(&resource.len()) {
        return Err(Error::ResourceName(resource.len()));
    }
    let offered = to_bigint(token).ok_or(Error::TokenTooLarge(token))?;
    let row = transaction.query_one(OFFER, &[&resource, &offered]).await?;
    let highest: i64 = row.try_get(0)?;
    if highest > offered {
        return Err(Error::Stale(Stale {
            offered: token,
            highest: from_bigint(highest),
        }));
    }
    Ok(())
}

/// The highest token that `resource` has seen, of those committed; none before its first.
///
/// For people and tests. It locks nothing: a write that must depend on it needs [`check`].
///
/// # Errors
/// Connection and server errors.
///
/// # Cancel safety
/// It changes nothing.
///
/// # Round trips
/// As for [`check`], and it waits for nobody.
pub async fn highest(
    client: &impl GenericClient,
    resource: impl AsRef<[u8]>,
) -> Result<Option<FencingToken>, tokio_postgres::Error> {
    let row = client.query_opt(HIGHEST, &[&resource.as_ref()]).await?;
    let highest: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(highest.map(from_bigint))
}

fn to_bigint(token: FencingToken) -> Option<i64> {
    i64::try_from(u64::from(token)).ok()
}

/// The table's constraint keeps negative numbers out; in a table of the caller's nothing may, and
/// there they stand for no token at all.
fn from_bigint(number: i64) -> FencingToken {
    FencingToken::from_u64(u64::try_from(number).unwrap_or(0))
}

/// An identifier as SQL wants it, whatever it contains.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
