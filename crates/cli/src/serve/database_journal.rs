//! The journal in a database, and its ownership.

#[cfg(feature = "postgres")]
use std::time::Duration;

#[cfg(feature = "postgres")]
use journal::{PostgresDatabase, PostgresSettings, ShardLease};

/// The ownership of the journals in a database. Journals in files or in memory cannot lose it.
#[derive(Default)]
pub(super) struct JournalOwnership {
    #[cfg(feature = "postgres")]
    leases: Vec<ShardLease>,
}

/// How the ownership of a journal ends.
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only journals in a database have owners"))]
pub(super) enum OwnershipEnd {
    /// Another hub has taken the journal, or may have.
    Lost(String),
    /// An operator has asked the node of a cluster to give its shards away.
    GivenAway,
}

impl JournalOwnership {
    /// Waits until this hub must no longer use the journal.
    pub(super) async fn ended(&self) -> OwnershipEnd {
        #[cfg(feature = "postgres")]
        if !self.leases.is_empty() {
            let shard = first_lost(&self.leases).await;
            return OwnershipEnd::Lost(journal::JournalError::OwnershipLost { shard }.to_string());
        }
        std::future::pending().await
    }

    /// Releases the journals, so that another hub can open them at once. This one can no longer write.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_self, reason = "only leases are released"))]
    pub(super) fn release(&self) {
        #[cfg(feature = "postgres")]
        ShardLease::release_all(&self.leases);
    }
}

/// Waits until another owner has taken one of the shards, and returns it.
#[cfg(feature = "postgres")]
async fn first_lost(leases: &[ShardLease]) -> i32 {
    let mut losses: Vec<_> = leases.iter().map(|lease| (lease.shard(), Box::pin(lease.lost()))).collect();
    std::future::poll_fn(|context| {
        let lost = losses
            .iter_mut()
            .find_map(|(shard, lost)| lost.as_mut().poll(context).is_ready().then_some(*shard));
        lost.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}

/// Number of shards of a new database that only one hub uses.
#[cfg(feature = "postgres")]
const DEFAULT_SHARDS: u16 = 1;

/// Parses the address of the database.
#[cfg(feature = "postgres")]
pub(super) fn database_settings(address: &str, config: &super::Config) -> Result<PostgresSettings, String> {
    let mut settings = PostgresSettings::parse(address).map_err(|error| format!("journal: {error}"))?;
    settings.replicas = u32::try_from(config.database_replicas).unwrap_or(u32::MAX);
    settings.connections = config.database_connections;
    settings.timeouts.statement = config.database_statement_timeout;
    Ok(settings)
}

/// Returns why a hub or a node of a cluster cannot use its database, or whether the database has the tokens of a cluster. Changes
/// nothing.
#[cfg(feature = "postgres")]
pub(super) fn check(config: &super::Config) -> Result<bool, Vec<String>> {
    use super::cluster_texts::{TOKENS_TEXT, parse_tokens};

    let Some(address) = &config.database else { return Ok(true) };
    let settings = database_settings(address.expose(), config).map_err(|problem| vec![problem])?;
    let name = settings.to_string();
    let describe = |error: journal::JournalError| vec![format!("journal {name}: {error}")];
    let (database, has_tables) = PostgresDatabase::check(settings).map_err(describe)?;
    if !has_tables {
        return Ok(false);
    }
    let mut problems = Vec::new();
    let stored = database.shard_count().map_err(describe)?;
    let configured = i32::try_from(config.shards).unwrap_or(i32::MAX);
    if let Some(stored) = stored.filter(|stored| config.has_configured_shards && *stored != configured) {
        problems.extend(describe(journal::JournalError::ShardCount { stored, configured }));
    }
    let mut has_tokens = false;
    if config.cluster {
        let tokens = journal::SharedTexts::new(&database).read(TOKENS_TEXT, None).map_err(describe)?;
        has_tokens = tokens.is_some();
        problems.extend(tokens.and_then(|tokens| parse_tokens(&tokens.content).err()));
    }
    if problems.is_empty() { Ok(has_tokens) } else { Err(problems) }
}

/// Without Postgres, an address is a problem in itself, which is reported elsewhere.
#[cfg(not(feature = "postgres"))]
#[expect(clippy::unnecessary_wraps, reason = "with Postgres, there may be problems")]
pub(super) fn check(_config: &super::Config) -> Result<bool, Vec<String>> {
    Ok(true)
}

/// Returns the shards of the database. The first hub or node fixes their number.
#[cfg(feature = "postgres")]
pub(super) fn shard_map(
    database: &PostgresDatabase,
    config: &super::Config,
    default: u16,
) -> Result<hub::ShardMap, journal::JournalError> {
    let configured = u16::try_from(config.shards).unwrap_or(hub::ShardMap::MAX_COUNT);
    let count = database.fix_shard_count(config.has_configured_shards.then_some(configured), default)?;
    Ok(hub::ShardMap::new(count).with_former_single(database.was_single()?))
}

/// Opens the journals in a Postgres database. Waits for the leases of a hub that was killed to end.
#[cfg(feature = "postgres")]
pub(super) fn open(address: &str, config: &super::Config) -> Result<super::OpenedJournals, String> {
    use journal::{Journal, LeaseSettings, PostgresJournal, ShardOwner};

    super::create_data_dir(&config.data)?;
    let settings = database_settings(address, config)?;
    let name = settings.to_string();
    let describe = |error: journal::JournalError| format!("journal {name}: {error}");
    let database = PostgresDatabase::open(settings).map_err(describe)?;
    let map = shard_map(&database, config, DEFAULT_SHARDS).map_err(describe)?;
    let count = map.count();
    let host = rustix::system::uname();
    let owner = ShardOwner {
        name: format!("{}, process {}", host.nodename().to_string_lossy(), std::process::id()),
        address: None,
    };
    let duration = config.database_lease;
    let lease = LeaseSettings { duration, max_wait: duration + Duration::from_secs(1), take_over: false };
    let journals = PostgresJournal::open_all(&database, count, &owner, &lease).map_err(describe)?;
    let leases: Vec<_> = journals.iter().map(|journal| journal.lease().clone()).collect();
    let epochs: Vec<_> = leases.iter().map(|lease| lease.epoch().to_string()).collect();
    let status = match epochs.as_slice() {
        [epoch] => format!("journal {name}: shard 0, epoch {epoch}"),
        epochs => format!("journal {name}: {count} shards, epochs {}", epochs.join(", ")),
    };
    Ok(super::OpenedJournals {
        journals: journals.into_iter().map(|journal| Box::new(journal) as Box<dyn Journal>).collect(),
        map,
        status: Some(status),
        ownership: JournalOwnership { leases },
    })
}
