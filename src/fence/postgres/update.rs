//! An update of one row that carries its own token or version.

use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;

use super::{from_bigint, quoted, to_bigint};
use crate::fence::Stale;
use crate::quorum::FencingToken;

type Value<'a> = &'a (dyn ToSql + Sync);

/// An UPDATE of one row that goes through only if the row has seen no higher token, or is still at
/// the version that was read, or both.
///
/// The check is part of the statement, so that it holds in a transaction and without one. The
/// version alone is optimistic concurrency, and needs no lock at all: the lock then only saves the
/// work of those who would lose.
///
/// Tables and columns are one name each, and are quoted, so a name with a schema is not taken: set
/// `search_path` for that.
///
/// ```no_run
/// # async fn f(client: &quorumlock::tokio_postgres::Client, token: quorumlock::FencingToken)
/// # -> Result<(), quorumlock::fence::postgres::UpdateError> {
/// use quorumlock::fence::postgres::Update;
///
/// // UPDATE "seat" SET "buyer" = $2, "fence" = $3, "version" = "version" + 1
/// //  WHERE "id" = $1 AND coalesce("fence", 0) <= $3 AND "version" = $4
/// let update = Update::new("seat", "id", &12_i32)
///     .set("buyer", &"ada")
///     .fence(token)
///     .version(3);
/// assert!(update.sql().starts_with("UPDATE \"seat\" SET \"buyer\" = $2, \"fence\" = $3"));
/// update.execute(client).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "nothing is sent before `execute`"]
pub struct Update<'a> {
    table: &'a str,
    key: (&'a str, Value<'a>),
    set: Vec<(&'a str, Value<'a>)>,
    fence: Option<(&'a str, FencingToken)>,
    version: Option<(&'a str, i64)>,
}

/// Why a guarded update was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The row has seen a higher token. Give up the work.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The row was updated since it was read. Read it again and decide again.
    #[error("the row is at version {found} by now, and was read at {expected}")]
    Changed {
        /// The version that was read.
        expected: i64,
        /// The version that the row had just after the refusal.
        found: i64,
    },
    /// There is no row with this key (or it was deleted while we looked).
    #[error("there is no such row")]
    Missing,
    /// It was refused, and a look at the row just after shows no reason: somebody has put back
    /// what was there. Read the row again and decide again.
    #[error("the row has changed while we looked")]
    Unclear,
    /// A `bigint` ends at 2^63 − 1, and this token is above. Nothing was sent.
    #[error("the fencing token {0} does not fit into a bigint")]
    TokenTooLarge(FencingToken),
    /// Neither a token nor a version was given, so nothing would be guarded. Nothing was sent.
    #[error("a guarded update needs a token, a version, or both")]
    Unguarded,
    /// The connection or the server failed.
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
}

impl<'a> Update<'a> {
    /// An update of the row of `table` whose column `key` has this value. The column must be a
    /// primary key or unique, or several rows are updated.
    pub fn new(table: &'a str, key: &'a str, value: Value<'a>) -> Self {
        Update {
            table,
            key: (key, value),
            set: Vec::new(),
            fence: None,
            version: None,
        }
    }

    /// Sets a column.
    pub fn set(mut self, column: &'a str, value: Value<'a>) -> Self {
        self.set.push((column, value));
        self
    }

    /// Only if the column `fence` holds no higher token, and sets it to `token`.
    pub fn fence(self, token: FencingToken) -> Self {
        self.fence_column("fence", token)
    }

    /// [`Update::fence`] with another column, a `bigint`. NULL is no token yet.
    pub fn fence_column(mut self, column: &'a str, token: FencingToken) -> Self {
        self.fence = Some((column, token));
        self
    }

    /// Only if the column `version` still holds `read`, and adds one to it.
    pub fn version(self, read: i64) -> Self {
        self.version_column("version", read)
    }

    /// [`Update::version`] with another column, a `bigint`.
    pub fn version_column(mut self, column: &'a str, read: i64) -> Self {
        self.version = Some((column, read));
        self
    }

    /// The statement as it is sent.
    #[must_use]
    pub fn sql(&self) -> String {
        let mut set = Vec::new();
        let mut only = vec![format!("{} = $1", quoted(self.key.0))];
        for (column, _) in &self.set {
            set.push(format!("{} = ${}", quoted(column), set.len() + 2));
        }
        if let Some((column, _)) = self.fence {
            let (column, at) = (quoted(column), set.len() + 2);
            set.push(format!("{column} = ${at}"));
            only.push(format!("coalesce({column}, 0) <= ${at}"));
        }
        if let Some((column, _)) = self.version {
            let (column, at) = (quoted(column), set.len() + 2);
            set.push(format!("{column} = {column} + 1"));
            only.push(format!("{column} = ${at}"));
        }
        format!(
            "UPDATE {} SET {} WHERE {}",
            quoted(self.table),
            set.join(", "),
            only.join(" AND ")
        )
    }

    /// Sends it, on a client, a transaction, or what a pool hands out.
    ///
    /// # Errors
    /// [`UpdateError::Stale`], [`UpdateError::Changed`] and [`UpdateError::Missing`]: the row is
    /// as it was; which of them it is comes from a look at the row after the refusal. The
    /// transaction, if there is one, is still good: whoever commits it commits the rest of it.
    /// [`UpdateError::TokenTooLarge`] and [`UpdateError::Unguarded`] before anything is sent;
    /// [`UpdateError::Postgres`].
    ///
    /// # Cancel safety
    /// Outside a transaction a dropped future leaves open whether the row was updated.
    ///
    /// # Round trips
    /// Two, one to prepare the statement; when it is refused, two more for the reason.
    ///
    /// # Guarantee
    /// The row's token never goes back, and no version is overwritten unseen, as long as every
    /// writer of these columns asks the same.
    pub async fn execute(&self, client: &impl GenericClient) -> Result<(), UpdateError> {
        let fence = match self.fence {
            Some((_, token)) if token.is_none() => {
                return Err(UpdateError::Stale(Stale::NO_TOKEN));
            }
            Some((_, token)) => Some(to_bigint(token).ok_or(UpdateError::TokenTooLarge(token))?),
            None => None,
        };
        let version = self.version.map(|(_, version)| version);
        if fence.is_none() && version.is_none() {
            return Err(UpdateError::Unguarded);
        }
        let mut values: Vec<Value<'_>> = vec![self.key.1];
        values.extend(self.set.iter().map(|(_, value)| *value));
        values.extend(fence.iter().map(|fence| fence as Value<'_>));
        values.extend(version.iter().map(|version| version as Value<'_>));
        match client.execute(&self.sql(), &values).await? {
            0 => Err(self.reason(client).await?),
            _ => Ok(()),
        }
    }

    /// Why no row was updated.
    async fn reason(
        &self,
        client: &impl GenericClient,
    ) -> Result<UpdateError, tokio_postgres::Error> {
        let column = |name: Option<&str>| name.map_or_else(|| "NULL::bigint".to_owned(), quoted);
        let look = format!(
            "SELECT {}, {} FROM {} WHERE {} = $1",
            column(self.fence.map(|(name, _)| name)),
            column(self.version.map(|(name, _)| name)),
            quoted(self.table),
            quoted(self.key.0),
        );
        let Some(row) = client.query_opt(&look, &[self.key.1]).await? else {
            return Ok(UpdateError::Missing);
        };
        let (highest, found): (Option<i64>, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        if let (Some((_, offered)), Some(highest)) = (self.fence, highest.map(from_bigint))
            && highest > offered
        {
            return Ok(UpdateError::Stale(Stale { offered, highest }));
        }
        match (self.version, found) {
            (Some((_, expected)), Some(found)) if found != expected => {
                Ok(UpdateError::Changed { expected, found })
            }
            _ => Ok(UpdateError::Unclear),
        }
    }
}

impl std::fmt::Debug for Update<'_> {
    /// The statement, without the values: they may be anything.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Update").field(&self.sql()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_guards_what_was_asked_for() {
        let token = FencingToken::from_u64(7);
        let update = Update::new("seat", "id", &1_i32);
        assert_eq!(
            update.clone().set("buyer", &"ada").fence(token).sql(),
            "UPDATE \"seat\" SET \"buyer\" = $2, \"fence\" = $3 \
             WHERE \"id\" = $1 AND coalesce(\"fence\", 0) <= $3"
        );
        assert_eq!(
            update.version_column("rev", 4).sql(),
            "UPDATE \"seat\" SET \"rev\" = \"rev\" + 1 WHERE \"id\" = $1 AND \"rev\" = $2"
        );
    }

    #[test]
    fn names_are_quoted_and_values_stay_out_of_the_text() {
        let value = "x'; DROP TABLE seat; --";
        let update = Update::new("se\"at; --", "id", &value).set("a b", &value);
        let sql = update.version(1).sql();
        assert!(sql.starts_with("UPDATE \"se\"\"at; --\" SET \"a b\" = $2, "));
        assert!(!sql.contains("DROP"));
    }
}
