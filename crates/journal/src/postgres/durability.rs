//! The settings of the server that durability depends on.

use tokio_postgres::Client;

use super::error_mapping::from_postgres;
use crate::JournalError;

/// Refuses a server that could lose acknowledged entries, and names the setting.
pub(super) async fn check(client: &Client, replicas: u32) -> Result<(), JournalError> {
    let row = client
        .query_one(
            "SELECT current_setting('fsync'), current_setting('full_page_writes'),
             current_setting('synchronous_commit'), current_setting('synchronous_standby_names')",
            &[],
        )
        .await
        .map_err(from_postgres)?;
    let settings = ServerSettings {
        fsync: row.get(0),
        full_page_writes: row.get(1),
        synchronous_commit: row.get(2),
        synchronous_standby_names: row.get(3),
    };
    settings.check(replicas).map_err(JournalError::UnsafeSetting)
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
