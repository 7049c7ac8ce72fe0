//! The journal in a database, and its ownership.

#[cfg(feature = "postgres")]
use std::time::Duration;

#[cfg(feature = "postgres")]
use journal::{ClusterEvent, ClusterMember, PostgresDatabase, PostgresSettings, ShardLease};

/// The ownership of the journals in a database. Journals in files or in memory cannot lose it.
#[derive(Default)]
pub(super) struct JournalOwnership {
    #[cfg(feature = "postgres")]
    leases: Vec<ShardLease>,
    /// The cluster node that acquired the journal.
    #[cfg(feature = "postgres")]
    member: Option<tokio::sync::Mutex<ClusterMember>>,
}

/// How the ownership of a journal ends.
pub(super) enum OwnershipEnd {
    /// Another hub has taken the journal, or may have.
    Lost(String),
    /// An operator has asked the node to give the journal away.
    GivenAway,
}

#[cfg(feature = "postgres")]
impl JournalOwnership {
    /// Returns the ownership of a journal that a cluster node has acquired.
    pub(super) fn of_member(lease: ShardLease, member: ClusterMember) -> Self {
        Self { leases: vec![lease], member: Some(tokio::sync::Mutex::new(member)) }
    }

    /// Returns a future that is ready when the cluster node gives the journal away or its lease has ended.
    async fn stopped_by_cluster(&self) -> OwnershipEnd {
        let Some(member) = &self.member else { return std::future::pending().await };
        loop {
            match member.lock().await.next_event().await {
                Some(ClusterEvent::Stop(_, cluster::StopReason::GivenAway)) => {
                    return OwnershipEnd::GivenAway;
                }
                Some(ClusterEvent::Stop(_, cluster::StopReason::LeaseEnded)) => {
                    return OwnershipEnd::Lost(
                        "this node could not renew its lease in time, so another node may have taken over"
                            .to_owned(),
                    );
                }
                Some(ClusterEvent::NameTaken) => {
                    return OwnershipEnd::Lost("another node uses the name of this one".to_owned());
                }
                Some(_) => {}
                None => return std::future::pending().await,
            }
        }
    }
}

impl JournalOwnership {
    /// Waits until this hub must no longer use the journal.
    pub(super) async fn ended(&self) -> OwnershipEnd {
        #[cfg(feature = "postgres")]
        if !self.leases.is_empty() {
            return tokio::select! {
                shard = first_lost(&self.leases) => {
                    OwnershipEnd::Lost(journal::JournalError::OwnershipLost { shard }.to_string())
                }
                end = self.stopped_by_cluster() => end,
            };
        }
        std::future::pending().await
    }

    /// Releases the journal, so that another hub can open it at once. This one can no longer write.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unused_async, clippy::unused_self, reason = "only a lease is released")
    )]
    pub(super) async fn release(&self) {
        #[cfg(feature = "postgres")]
        {
            if let Some(member) = &self.member {
                leave(&mut *member.lock().await, self.leases.first().map(ShardLease::shard)).await;
            }
            ShardLease::release_all(&self.leases);
        }
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

/// How long a node that stops waits until the database has released its journal. If it does not answer, the lease ends by
/// itself.
#[cfg(feature = "postgres")]
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes a node leave the cluster. `shard` is the one that it has just stopped.
#[cfg(feature = "postgres")]
pub(super) async fn leave(member: &mut ClusterMember, shard: Option<i32>) {
    member.leave();
    if let Some(shard) = shard {
        member.report_stopped(shard);
    }
    let left = async {
        loop {
            match member.next_event().await {
                None | Some(ClusterEvent::Left) => return,
                Some(ClusterEvent::Start(lease)) => member.report_stopped(lease.shard()),
                Some(ClusterEvent::Stop(shard, _)) => member.report_stopped(shard),
                Some(_) => {}
            }
        }
    };
    let _ = tokio::time::timeout(LEAVE_TIMEOUT, left).await;
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

/// Returns the number of shards of the database. The first hub or node fixes it.
#[cfg(feature = "postgres")]
pub(super) fn shard_count(
    database: &PostgresDatabase,
    config: &super::Config,
    default: u16,
) -> Result<u16, journal::JournalError> {
    let configured = u16::try_from(config.shards).unwrap_or(hub::ShardMap::MAX_COUNT);
    database.fix_shard_count(config.has_configured_shards.then_some(configured), default)
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
    let count = shard_count(&database, config, DEFAULT_SHARDS).map_err(describe)?;
    let was_single = database.was_single().map_err(describe)?;
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
        map: hub::ShardMap::new(count).with_former_single(was_single),
        status: Some(status),
        ownership: JournalOwnership { leases, member: None },
    })
}
