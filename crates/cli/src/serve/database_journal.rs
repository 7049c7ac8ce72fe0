//! The journal in a database, and its ownership.

#[cfg(feature = "postgres")]
use std::time::Duration;

#[cfg(feature = "postgres")]
use journal::{ClusterEvent, ClusterMember, PostgresDatabase, PostgresSettings, ShardLease};

/// The ownership of a journal in a database. A journal in a file or in memory cannot lose it.
#[derive(Default)]
pub(super) struct JournalOwnership {
    #[cfg(feature = "postgres")]
    lease: Option<ShardLease>,
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
        Self { lease: Some(lease), member: Some(tokio::sync::Mutex::new(member)) }
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
        if let Some(lease) = &self.lease {
            let lost = async {
                lease.lost().await;
                OwnershipEnd::Lost(journal::JournalError::OwnershipLost { shard: lease.shard() }.to_string())
            };
            return tokio::select! {
                end = lost => end,
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
                leave(&mut *member.lock().await, self.lease.as_ref().map(ShardLease::shard)).await;
            }
            if let Some(lease) = &self.lease {
                lease.release();
            }
        }
    }
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

/// A hub without a cluster has one shard, and a cluster has one as well.
#[cfg(feature = "postgres")]
pub(super) const ONLY_SHARD: i32 = 0;

/// Parses the address of the database.
#[cfg(feature = "postgres")]
pub(super) fn database_settings(address: &str, config: &super::Config) -> Result<PostgresSettings, String> {
    let mut settings = PostgresSettings::parse(address).map_err(|error| format!("journal: {error}"))?;
    settings.replicas = u32::try_from(config.database_replicas).unwrap_or(u32::MAX);
    Ok(settings)
}

/// Opens the journal in a Postgres database. Waits for the lease of a hub that was killed to end.
#[cfg(feature = "postgres")]
pub(super) fn open(
    address: &str,
    config: &super::Config,
    map: hub::ShardMap,
) -> Result<super::OpenedJournals, String> {
    use journal::{LeaseSettings, PostgresJournal, ShardOwner};

    super::create_data_dir(&config.data)?;
    let settings = database_settings(address, config)?;
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
    let ownership = JournalOwnership { lease: Some(journal.lease().clone()), member: None };
    let status = format!("journal {name}: shard {ONLY_SHARD}, epoch {}", journal.lease().epoch());
    Ok(super::OpenedJournals { journals: vec![Box::new(journal)], map, status: Some(status), ownership })
}
