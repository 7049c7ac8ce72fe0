//! Ownership of a shard.
//!
//! The row of a shard holds its epoch, its owner and the end of the owner's lease. Acquiring a shard raises the epoch.
//! Every commit locks the row and checks the epoch, so a former owner can no longer write. The lease only decides when
//! another node may acquire the shard. All times are those of the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use seal::{Random, SystemRandom};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;

use super::database::{PostgresDatabase, Session, timed_out, wait};
use super::durability::{self, COMMIT_COLUMNS, Commit, SETTINGS, commit_result};
use super::error_mapping::{DatabaseFailure, from_postgres};
use crate::JournalError;

/// How long dropping a lease may take. If the database does not answer, the lease expires on its own.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

seal::defaults! {
    /// How a shard is acquired and held.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LeaseSettings {
        /// How long an owner that does not renew its lease keeps the shard. It renews at a third of this time.
        pub duration: Duration = Duration::from_secs(5),
        /// How long to wait for the lease of another owner to end before [`JournalError::OwnedElsewhere`] is returned.
        pub max_wait: Duration = Duration::from_secs(6),
        /// Whether to take the shard even if the lease of another owner has not ended. The other owner is fenced out.
        pub take_over: bool = false,
    }
}

/// The owner of a shard, as shown to other nodes and operators. Nothing else depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardOwner {
    /// The owner's name, such as its host name.
    pub name: String,
    /// Where other nodes can reach the owner.
    pub address: Option<String>,
}

/// The ownership of one shard. A task renews it. Dropping the last clone releases the shard.
#[derive(Clone, Debug)]
pub struct ShardLease(Arc<Ownership>);

#[derive(Debug)]
struct Ownership {
    database: PostgresDatabase,
    shard: i32,
    duration: Duration,
    /// A random number that identifies this owner, even among processes with the same name.
    instance: [u8; 16],
    epoch: AtomicI64,
    is_lost: Arc<watch::Sender<bool>>,
    /// `None` if a [`ClusterMember`](super::ClusterMember) renews and releases the lease.
    renewal: Option<Arc<Renewal>>,
}

/// The task that renews the leases of a hub's shards.
#[derive(Debug)]
struct Renewal(JoinHandle<()>);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ShardLease {
    /// Acquires the shard. Waits for the lease of another owner to end, if the settings say so.
    pub fn acquire(
        database: &PostgresDatabase,
        shard: i32,
        owner: &ShardOwner,
        settings: &LeaseSettings,
    ) -> Result<Self, JournalError> {
        let lease = Self::acquire_all(database, &[shard], owner, settings)?.pop();
        lease.ok_or(JournalError::OwnershipLost { shard })
    }

    /// Acquires all of these shards or none. One task renews them all.
    pub(super) fn acquire_all(
        database: &PostgresDatabase,
        shards: &[i32],
        owner: &ShardOwner,
        settings: &LeaseSettings,
    ) -> Result<Vec<Self>, JournalError> {
        let mut instance = [0; 16];
        SystemRandom.fill(&mut instance);
        let connection = database.borrow()?;
        let session = connection.session()?;
        let acquisition = Acquisition { shards, owner, instance: &instance, settings };
        let deadline = Instant::now() + settings.max_wait;
        let epochs = loop {
            let attempt = acquisition.attempt(session);
            match wait(attempt, database.answer_timeout()).ok_or_else(timed_out)?? {
                Attempt::Acquired(epochs) if !session.take_warning() => break epochs,
                Attempt::Acquired(_) => return Err(unreplicated()),
                Attempt::OwnedBy { shard, owner, remaining } => {
                    let time_left = deadline.saturating_duration_since(Instant::now());
                    if time_left.is_zero() {
                        // In a race with another hub, this one may have acquired some of the shards.
                        let release = release_all(session, &instance);
                        wait(release, database.answer_timeout()).ok_or_else(timed_out)??;
                        connection.put_back();
                        return Err(JournalError::OwnedElsewhere { shard, owner });
                    }
                    let pause = remaining.clamp(Duration::from_millis(20), Duration::from_secs(1));
                    std::thread::sleep(pause.min(time_left));
                }
            }
        };
        connection.put_back();
        let losses: Vec<_> = shards.iter().map(|_| Arc::new(watch::Sender::new(false))).collect();
        let renewed = shards.iter().copied().zip(losses.iter().cloned()).collect();
        let task = renew_regularly(database.clone(), renewed, instance, settings.duration);
        let renewal = Arc::new(Renewal(database.runtime().spawn(task)));
        let ownership = |((shard, epoch), is_lost): ((i32, i64), Arc<watch::Sender<bool>>)| {
            Self(Arc::new(Ownership {
                database: database.clone(),
                shard,
                duration: settings.duration,
                instance,
                epoch: AtomicI64::new(epoch),
                is_lost,
                renewal: Some(renewal.clone()),
            }))
        };
        Ok(shards.iter().copied().zip(epochs).zip(losses).map(ownership).collect())
    }

    /// Returns the ownership that a cluster node has acquired, and which it renews and releases.
    pub(super) fn of_cluster_node(
        database: &PostgresDatabase,
        shard: i32,
        instance: [u8; 16],
        epoch: i64,
        duration: Duration,
    ) -> Self {
        Self(Arc::new(Ownership {
            database: database.clone(),
            shard,
            duration,
            instance,
            epoch: AtomicI64::new(epoch),
            is_lost: Arc::new(watch::Sender::new(false)),
            renewal: None,
        }))
    }

    /// Returns a receiver that changes to `true` when another owner has taken the shard, and is closed when nothing uses the
    /// ownership any more.
    pub(super) fn watch_loss(&self) -> watch::Receiver<bool> {
        self.0.is_lost.subscribe()
    }

    /// Returns the shard.
    pub fn shard(&self) -> i32 {
        self.0.shard
    }

    /// Returns the epoch that every commit checks.
    pub fn epoch(&self) -> i64 {
        self.0.epoch.load(Ordering::SeqCst)
    }

    /// Returns whether another owner has taken the shard. `false` means only that this node has not noticed it yet.
    pub fn is_lost(&self) -> bool {
        *self.0.is_lost.borrow()
    }

    /// Returns a future that completes when another owner has taken the shard, and never completes otherwise.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut receiver = self.0.is_lost.subscribe();
        async move {
            if receiver.wait_for(|is_lost| *is_lost).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn database(&self) -> &PostgresDatabase {
        &self.0.database
    }

    pub(super) fn mark_lost(&self) -> JournalError {
        self.0.is_lost.send_replace(true);
        JournalError::OwnershipLost { shard: self.0.shard }
    }

    /// Raises the epoch on a new connection, and returns the number of the last commit. The row's lock waits for a
    /// transaction of the old connection to end, and the new epoch refuses one that arrives later. So the number shows
    /// for certain whether a commit with a lost acknowledgement is stored. Because this is a synchronous commit, all
    /// earlier commits are on the standbys as well when it returns.
    pub(super) fn confirm(&self, session: &Session) -> Result<i64, JournalError> {
        session.take_warning();
        let lease_ms = milliseconds(self.0.duration);
        let (instance, settings) = (&self.0.instance[..], &session.settings);
        let sql = format!(
            "WITH held AS (UPDATE sayso.shard SET epoch = epoch + 1,
                 lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
                 WHERE id = $1 AND instance = $2 AND {SETTINGS} = $4 RETURNING epoch, commit_number)
             {}",
            commit_result("held", "$4")
        );
        let update = async {
            let statement = session.client.prepare(&sql).await?;
            durability::commit(session, &statement, &[&self.0.shard, &instance, &lease_ms, settings]).await
        };
        let update = wait(update, self.0.database.answer_timeout()).ok_or_else(timed_out)?;
        match update.map_err(from_postgres)? {
            Commit::Fenced => Err(self.mark_lost()),
            Commit::SettingsChanged | Commit::SettingsChangedMeanwhile => Err(settings_changed()),
            Commit::Stored(_) if session.take_warning() => Err(unreplicated()),
            Commit::Stored(row) => {
                self.0.epoch.store(row.get(COMMIT_COLUMNS), Ordering::SeqCst);
                Ok(row.get(COMMIT_COLUMNS + 1))
            }
        }
    }

    /// Releases the shard, so that another owner can acquire it at once. The journal of this owner can no longer write.
    /// Does nothing the second time, or if a cluster node renews the lease.
    pub fn release(&self) {
        self.0.release();
    }

    /// Releases all shards of a hub at once, as [`release`](Self::release) does one.
    pub fn release_all(leases: &[Self]) {
        let Some(Self(first)) = leases.first() else { return };
        let is_released = |lease: &&Self| lease.0.instance == first.instance && lease.0.end();
        let shards = leases.iter().filter(is_released).map(Self::shard).collect();
        first.release_shards(shards);
    }
}

impl Ownership {
    fn release(&self) {
        if self.end() {
            self.release_shards(vec![self.shard]);
        }
    }

    /// Ends the ownership in this process. Returns whether the shard must be released.
    fn end(&self) -> bool {
        self.renewal.is_some() && !self.is_lost.send_replace(true)
    }

    fn release_shards(&self, shards: Vec<i32>) {
        if shards.is_empty() {
            return;
        }
        let (database, instance) = (self.database.clone(), self.instance);
        let release = self.database.runtime().spawn(async move {
            let session = database.connect_async().await.ok()?;
            // The new epoch refuses a commit that is still under way.
            let sql = format!("{RELEASE} AND id = ANY ($2)");
            session.client.execute(&sql, &[&&instance[..], &shards]).await.ok()
        });
        let _ = wait(release, RELEASE_TIMEOUT);
    }
}

/// Frees the shards of an owner.
const RELEASE: &str =
    "UPDATE sayso.shard SET epoch = epoch + 1, owner = NULL, address = NULL, instance = NULL,
                       lease_until = NULL WHERE instance = $1";

async fn release_all(session: &Session, instance: &[u8]) -> Result<(), JournalError> {
    session.client.execute(RELEASE, &[&instance]).await.map(drop).map_err(from_postgres)
}

impl Drop for Ownership {
    fn drop(&mut self) {
        self.release();
    }
}

enum Attempt {
    /// With the epochs of the shards, in their order.
    Acquired(Vec<i64>),
    OwnedBy {
        shard: i32,
        owner: String,
        remaining: Duration,
    },
}

/// An attempt to acquire several shards.
struct Acquisition<'a> {
    shards: &'a [i32],
    owner: &'a ShardOwner,
    instance: &'a [u8],
    settings: &'a LeaseSettings,
}

impl Acquisition<'_> {
    async fn attempt(&self, session: &Session) -> Result<Attempt, JournalError> {
        let Self { shards, owner, instance, settings } = self;
        let lease_ms = milliseconds(settings.duration);
        session.take_warning();
        // The rows are locked in the order of their numbers, so that two hubs cannot block each other.
        let sql = "INSERT INTO sayso.shard
                   SELECT id, 1, $2, $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond', 0, 0, 0, 0, 0
                   FROM unnest($1::integer[]) AS wanted (id) WHERE $6 OR NOT EXISTS (SELECT FROM sayso.shard
                   WHERE shard.id = ANY ($1) AND lease_until >= clock_timestamp() AND instance IS DISTINCT FROM $4)
                   ORDER BY id
                   ON CONFLICT (id) DO UPDATE SET epoch = shard.epoch + 1, owner = $2, address = $3, instance = $4,
                   lease_until = clock_timestamp() + $5::bigint * interval '1 millisecond'
                   WHERE shard.lease_until IS NULL OR shard.lease_until < clock_timestamp() OR shard.instance = $4 OR $6
                   RETURNING id, epoch";
        let parameters: [&(dyn ToSql + Sync); 6] =
            [shards, &owner.name, &owner.address, instance, &lease_ms, &settings.take_over];
        let rows = session.client.query(sql, &parameters).await.map_err(from_postgres)?;
        let acquired: HashMap<i32, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let epochs: Option<Vec<i64>> = shards.iter().map(|shard| acquired.get(shard).copied()).collect();
        if let Some(epochs) = epochs {
            return Ok(Attempt::Acquired(epochs));
        }
        let sql = "SELECT id, coalesce(owner, ''),
                   coalesce(extract(epoch FROM lease_until - clock_timestamp()) * 1000, 0)::bigint
                   FROM sayso.shard WHERE id = ANY ($1) AND instance IS DISTINCT FROM $2
                   ORDER BY lease_until >= clock_timestamp() DESC NULLS LAST, id LIMIT 1";
        let row = session.client.query_opt(sql, &[shards, instance]).await.map_err(from_postgres)?;
        let (shard, owner, remaining) =
            row.map_or((0, String::new(), 0_i64), |row| (row.get(0), row.get(1), row.get(2)));
        let remaining_ms = u64::try_from(remaining).unwrap_or(0);
        Ok(Attempt::OwnedBy { shard, owner, remaining: Duration::from_millis(remaining_ms) })
    }
}

/// Renews leases at a third of their time, on a connection of its own, until other owners have taken all shards.
async fn renew_regularly(
    database: PostgresDatabase,
    mut shards: Vec<(i32, Arc<watch::Sender<bool>>)>,
    instance: [u8; 16],
    duration: Duration,
) {
    let mut session = None;
    let mut pause = duration / 3;
    let lease_ms = milliseconds(duration);
    loop {
        tokio::time::sleep(pause).await;
        // After a failure, there are two more attempts before the leases end.
        pause = duration / 10;
        shards.retain(|(_, is_lost)| !*is_lost.borrow());
        if shards.is_empty() {
            return;
        }
        let current = match session.take() {
            Some(current) => current,
            None => match tokio::time::timeout(duration, database.connect_async()).await {
                Ok(Ok(current)) => current,
                _ => continue,
            },
        };
        let ids: Vec<i32> = shards.iter().map(|(shard, _)| *shard).collect();
        // Commits lock the rows one at a time, and this statement waits for them in the same order as other renewals.
        let sql = "WITH held AS (SELECT id FROM sayso.shard WHERE id = ANY ($1) AND instance = $2
                   ORDER BY id FOR UPDATE)
                   UPDATE sayso.shard SET lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
                   FROM held WHERE shard.id = held.id RETURNING shard.id";
        let renewal = async { current.client.query(sql, &[&ids, &&instance[..], &lease_ms]).await };
        if let Ok(Ok(rows)) = tokio::time::timeout(duration, renewal).await {
            let renewed: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
            for (_, is_lost) in shards.iter().filter(|(shard, _)| !renewed.contains(shard)) {
                is_lost.send_replace(true);
            }
            session = Some(current);
            pause = duration / 3;
        }
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn unreplicated() -> JournalError {
    JournalError::Io(DatabaseFailure::new("the standby did not confirm that this hub owns the shard").into())
}

fn settings_changed() -> JournalError {
    JournalError::Io(DatabaseFailure::new("the settings of the database have changed").into())
}
