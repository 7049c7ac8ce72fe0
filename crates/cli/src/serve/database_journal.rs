//! The journal in a database, and its ownership.

/// The ownership of a journal in a database. A journal in a file or in memory cannot lose it.
#[derive(Default)]
pub(super) struct JournalOwnership {
    #[cfg(feature = "postgres")]
    lease: Option<journal::ShardLease>,
}

impl JournalOwnership {
    /// Waits until another hub has taken the journal, and returns the error.
    pub(super) async fn lost(&self) -> String {
        #[cfg(feature = "postgres")]
        if let Some(lease) = &self.lease {
            lease.lost().await;
            return journal::JournalError::OwnershipLost { shard: lease.shard() }.to_string();
        }
        std::future::pending().await
    }

    /// Lets another hub open the journal at once. This one can no longer write.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_self, reason = "only a lease is released"))]
    pub(super) fn release(&self) {
        #[cfg(feature = "postgres")]
        if let Some(lease) = &self.lease {
            lease.release();
        }
    }
}

/// A hub without a cluster has one shard.
#[cfg(feature = "postgres")]
const ONLY_SHARD: i32 = 0;

/// Opens the journal in a Postgres database. Waits for the lease of a hub that was killed to end.
#[cfg(feature = "postgres")]
pub(super) fn open(
    address: &str,
    config: &super::Config,
    map: hub::ShardMap,
) -> Result<super::OpenedJournals, String> {
    use std::time::Duration;

    use journal::{LeaseSettings, PostgresDatabase, PostgresJournal, PostgresSettings, ShardOwner};

    super::create_data_dir(&config.data)?;
    let mut settings = PostgresSettings::parse(address).map_err(|error| format!("journal: {error}"))?;
    settings.replicas = u32::try_from(config.database_replicas).unwrap_or(u32::MAX);
    let name = settings.to_string();
    let describe = |error: journal::JournalError| format!("journal {name}: {error}");
    let database = PostgresDatabase::open(settings).map_err(describe)?;
    let host = rustix::system::uname();
    let owner = ShardOwner {
        name: format!("{}, process {}", host.nodename().to_string_lossy(), std::process::id()),
        address: None,
    };
    let duration = config.database_lease;
    let lease = LeaseSettings { duration, max_wait: duration + Duration::from_secs(1), take_over: false };
    let journal = PostgresJournal::open(&database, ONLY_SHARD, &owner, &lease).map_err(describe)?;
    let ownership = JournalOwnership { lease: Some(journal.lease().clone()) };
    let status = format!("journal {name}: shard {ONLY_SHARD}, epoch {}", journal.lease().epoch());
    Ok(super::OpenedJournals { journals: vec![Box::new(journal)], map, status: Some(status), ownership })
}
