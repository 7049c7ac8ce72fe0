//! The number of shards of a database, which is fixed when the database is first used.

use super::database::{PostgresDatabase, timed_out, wait};
use super::error_mapping::from_postgres;
use crate::JournalError;

impl PostgresDatabase {
    /// Returns the number of shards. The first call for a database stores it: the configured number, or else the default. A later
    /// call with another configured number fails.
    pub fn fix_shard_count(&self, configured: Option<u16>, default: u16) -> Result<u16, JournalError> {
        let connection = self.borrow()?;
        let session = connection.session()?;
        let wanted = i32::from(configured.unwrap_or(default));
        let fix = async {
            let sql = "INSERT INTO sayso.shard_count (count) VALUES ($1) ON CONFLICT DO NOTHING";
            session.client.execute(sql, &[&wanted]).await?;
            session.client.query_one("SELECT count FROM sayso.shard_count", &[]).await
        };
        let row = wait(fix, self.answer_timeout()).ok_or_else(timed_out)?.map_err(from_postgres)?;
        connection.put_back();
        let stored: i32 = row.get(0);
        if configured.is_some() && stored != wanted {
            return Err(JournalError::ShardCount { stored, configured: wanted });
        }
        u16::try_from(stored).map_err(|error| JournalError::Io(error.into()))
    }

    /// Returns the number of shards, if it is fixed.
    pub fn shard_count(&self) -> Result<Option<i32>, JournalError> {
        let connection = self.borrow()?;
        let query = connection.session()?.client.query_opt("SELECT count FROM sayso.shard_count", &[]);
        let row = wait(query, self.answer_timeout()).ok_or_else(timed_out)?.map_err(from_postgres)?;
        let count = row.map(|row| row.get(0));
        connection.put_back();
        Ok(count)
    }

    /// Whether shard 0 was once the only one, because the journals were imported from a hub with one shard.
    pub fn was_single(&self) -> Result<bool, JournalError> {
        let connection = self.borrow()?;
        let query = connection.session()?.client.query_opt("SELECT was_single FROM sayso.shard_count", &[]);
        let row = wait(query, self.answer_timeout()).ok_or_else(timed_out)?.map_err(from_postgres)?;
        let was_single = row.is_some_and(|row| row.get(0));
        connection.put_back();
        Ok(was_single)
    }
}
