//! The settings of the server that durability depends on. They are checked when a connection opens. Every commit checks that
//! they are still the same, because they can change while the server runs.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::database::Session;
use super::error_mapping::from_postgres;
use crate::JournalError;

/// An SQL expression for all the settings, as one text.
pub(super) const SETTINGS: &str =
    "concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'),
     current_setting('synchronous_commit'), current_setting('synchronous_standby_names'))";

/// Returns the query that [`commit`] expects at the end of a statement. `fence` is the part that checks the ownership and the
/// settings. It returns at most one row, which begins with the epoch. `settings` is the parameter with the checked settings.
pub(super) fn commit_result(fence: &str, settings: &str) -> String {
    format!(
        "SELECT {SETTINGS} = {settings}, pg_conf_load_time()::text, {fence}.* FROM (VALUES (1)) AS one LEFT JOIN {fence} ON true"
    )
}

/// The columns before those of the fence.
pub(super) const COMMIT_COLUMNS: usize = 2;

/// The outcome of a statement that commits.
pub(super) enum Commit {
    /// It is stored, under the checked settings. The row has the columns of the fence after [`COMMIT_COLUMNS`].
    Stored(Row),
    /// Another owner has the shard. Nothing is stored.
    Fenced,
    /// The settings were changed before it. Nothing is stored.
    SettingsChanged,
    /// The settings were changed while it committed. It is stored on the primary, but perhaps on no standby.
    SettingsChangedMeanwhile,
}

/// Runs a statement that ends with [`commit_result`].
///
/// If the setting that names the standbys is emptied, commits that wait for a standby return at once. So if standbys must
/// confirm, a second query, which is sent together with the statement, asks whether the configuration was loaded again. A server
/// process learns of a new configuration before commits are released, and loads it before it runs its next query.
pub(super) async fn commit(
    session: &Session,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Commit, tokio_postgres::Error> {
    let client = &session.client;
    let load_time_afterwards = async {
        match &session.load_time {
            Some(statement) => client.query_one(statement, &[]).await.map(|row| row.get::<_, String>(0)).ok(),
            None => None,
        }
    };
    // The first one is polled first, which sends it.
    let (row, afterwards) = tokio::join!(client.query_one(statement, parameters), load_time_afterwards);
    let row = row?;
    if !row.get::<_, bool>(0) {
        return Ok(Commit::SettingsChanged);
    }
    if row.get::<_, Option<i64>>(COMMIT_COLUMNS).is_none() {
        return Ok(Commit::Fenced);
    }
    if session.load_time.is_some() && afterwards.as_deref() != Some(row.get(1)) {
        return Ok(Commit::SettingsChangedMeanwhile);
    }
    Ok(Commit::Stored(row))
}

/// Refuses a server that could lose acknowledged entries, and names the setting. Returns [`SETTINGS`].
pub(super) async fn check(client: &Client, replicas: u32) -> Result<String, JournalError> {
    let sql = format!(
        "SELECT current_setting('fsync'), current_setting('full_page_writes'),
         current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), {SETTINGS}"
    );
    let row = client.query_one(&sql, &[]).await.map_err(from_postgres)?;
    let settings = ServerSettings {
        fsync: row.get(0),
        full_page_writes: row.get(1),
        synchronous_commit: row.get(2),
        synchronous_standby_names: row.get(3),
    };
    settings.check(replicas).map_err(JournalError::UnsafeSetting)?;
    Ok(row.get(4))
}

/// Prepares the query for the time at which the connection's process has last loaded its configuration.
pub(super) async fn prepare_load_time(client: &Client) -> Result<Statement, JournalError> {
    client.prepare("SELECT pg_conf_load_time()::text").await.map_err(from_postgres)
}

struct ServerSettings<'a> {
    fsync: &'a str,
    full_page_writes: &'a str,
    synchronous_commit: &'a str,
    synchronous_standby_names: &'a str,
}

impl ServerSettings<'_> {
    fn check(&self, replicas: u32) -> Result<(), String> {
        if self.fsync != "on" {
            return Err(format!(
                "fsync is {}, so a power failure can lose commits; set fsync = on",
                self.fsync
            ));
        }
        if self.full_page_writes != "on" {
            let value = self.full_page_writes;
            return Err(format!(
                "full_page_writes is {value}, so a power failure can damage pages; set full_page_writes = on"
            ));
        }
        let commit = self.synchronous_commit;
        if commit == "off" {
            return Err(
                "synchronous_commit is off, so commits are acknowledged before they are on the disk; set \
                        synchronous_commit = on"
                    .to_owned(),
            );
        }
        if replicas == 0 {
            return Ok(());
        }
        if !["on", "remote_apply"].contains(&commit) {
            return Err(format!(
                "synchronous_commit is {commit}, so commits are acknowledged before a standby has them on its disk; set \
                 synchronous_commit = on"
            ));
        }
        let names = self.synchronous_standby_names;
        let confirming = confirming_standbys(names);
        if confirming < replicas {
            return Err(format!(
                "synchronous_standby_names is {names:?}, so {confirming} of {replicas} replicas confirm a commit; list the \
                 standbys there"
            ));
        }
        Ok(())
    }
}

/// Returns how many standbys must confirm a commit: `FIRST 2 (a, b, c)`, `ANY 2 (a, b, c)`, `2 (a, b)`, or a list, of
/// which the first one must.
fn confirming_standbys(names: &str) -> u32 {
    let names = names.trim();
    if names.is_empty() {
        return 0;
    }
    let count = names.split_once('(').and_then(|(before, _)| before.split_whitespace().last()?.parse().ok());
    count.unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirming_standbys_are_counted() {
        let counts =
            ["", "a", "a, b", "*", "FIRST 2 (a, b, c)", "any 3(a,b,c)", "2 (a, b)"].map(confirming_standbys);
        assert_eq!(counts, [0, 1, 1, 1, 2, 3, 2]);
    }

    #[test]
    fn every_unsafe_setting_is_named() {
        let check = |fsync, full_page_writes, synchronous_commit, synchronous_standby_names, replicas| {
            let settings =
                ServerSettings { fsync, full_page_writes, synchronous_commit, synchronous_standby_names };
            settings
                .check(replicas)
                .err()
                .map(|reason| reason.split(' ').next().unwrap_or_default().to_owned())
        };
        assert_eq!(check("on", "on", "on", "", 0), None);
        assert_eq!(check("on", "on", "local", "", 0), None);
        assert_eq!(check("on", "on", "remote_apply", "b", 1), None);
        assert_eq!(check("off", "on", "on", "", 0).as_deref(), Some("fsync"));
        assert_eq!(check("on", "off", "on", "", 0).as_deref(), Some("full_page_writes"));
        assert_eq!(check("on", "on", "off", "", 0).as_deref(), Some("synchronous_commit"));
        assert_eq!(check("on", "on", "remote_write", "b", 1).as_deref(), Some("synchronous_commit"));
        assert_eq!(check("on", "on", "on", "", 1).as_deref(), Some("synchronous_standby_names"));
        assert_eq!(check("on", "on", "on", "b", 2).as_deref(), Some("synchronous_standby_names"));
    }
}
