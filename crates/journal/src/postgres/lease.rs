//! Ownership of a shard.
//!
//! The row of a shard holds its epoch, its owner and the end of the owner's lease. Acquiring a shard raises the epoch.
//! Every commit locks the row and checks the epoch, so a former owner can no longer write. The lease only decides when
//! another node may acquire the shard. All times are those of the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use seal::{Random, SystemRandom};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::database::{PostgresDatabase, Session, timed_out, wait};
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
    /// The task that renews the lease. `None` if a [`ClusterMember`](super::ClusterMember) renews and releases it.
    renewal: Option<JoinHandle<()>>,
}

impl ShardLease {
    /// Acquires the shard. Waits for the lease of another owner to end, if the settings say so.
    pub fn acquire(
        database: &PostgresDatabase,
        shard: i32,
        owner: &ShardOwner,
        settings: &LeaseSettings,
    ) -> Result<Self, JournalError> {
        Self::acquire_with_session(database, shard, owner, settings).map(|(lease, _)| lease)
    }

    /// Acquires the shard, and returns the connection that was used for it.
    pub(super) fn acquire_with_session(
        database: &PostgresDatabase,
        shard: i32,
        owner: &ShardOwner,
        settings: &LeaseSettings,
    ) -> Result<(Self, Session), JournalError> {
        let mut instance = [0; 16];
        SystemRandom.fill(&mut instance);
        let session = database.connect()?;
        let deadline = Instant::now() + settings.max_wait;
        let epoch = loop {
            let attempt = try_acquire(&session, shard, owner, &instance, settings);
            match wait(attempt, database.answer_timeout()).ok_or_else(timed_out)?? {
                Attempt::Acquired { epoch } if !session.take_warning() => break epoch,
                Attempt::Acquired { .. } => return Err(unreplicated()),
                Attempt::OwnedBy { owner, remaining } => {
                    let time_left = deadline.saturating_duration_since(Instant::now());
                    if time_left.is_zero() {
                        return Err(JournalError::OwnedElsewhere { shard, owner });
                    }
                    let pause = remaining.clamp(Duration::from_millis(20), Duration::from_secs(1));
                    std::thread::sleep(pause.min(time_left));
                }
            }
        };
        let is_lost = Arc::new(watch::Sender::new(false));
        let renewal = database.runtime().spawn(renew_regularly(
            database.clone(),
            shard,
            instance,
            settings.duration,
            is_lost.clone(),
        ));
        let (database, duration) = (database.clone(), settings.duration);
        let epoch = AtomicI64::new(epoch);
        let renewal = Some(renewal);
        let ownership = Ownership { database, shard, duration, instance, epoch, is_lost, renewal };
        Ok((Self(Arc::new(ownership)), session))
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
        let instance = &self.0.instance[..];
        let sql = "UPDATE sayso.shard SET epoch = epoch + 1,
                   lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
                   WHERE id = $1 AND instance = $2 RETURNING epoch, commit_number";
        let query = async { session.client.query_opt(sql, &[&self.0.shard, &instance, &lease_ms]).await };
        let row =
            wait(query, self.0.database.answer_timeout()).ok_or_else(timed_out)?.map_err(from_postgres)?;
        let Some(row) = row else { return Err(self.mark_lost()) };
        if session.take_warning() {
            return Err(unreplicated());
        }
        self.0.epoch.store(row.get(0), Ordering::SeqCst);
        Ok(row.get(1))
    }

    /// Releases the shard, so that another owner can acquire it at once. The journal of this owner can no longer write.
    /// Does nothing the second time, or if a cluster node renews the lease.
    pub fn release(&self) {
        self.0.release();
    }
}

impl Ownership {
    fn release(&self) {
        let Some(renewal) = &self.renewal else { return };
        renewal.abort();
        if self.is_lost.send_replace(true) {
            return;
        }
        let (database, shard, instance) = (self.database.clone(), self.shard, self.instance);
        let release = self.database.runtime().spawn(async move {
            let session = database.connect_async().await.ok()?;
            // The new epoch refuses a commit that is still under way.
            let sql =
                "UPDATE sayso.shard SET epoch = epoch + 1, owner = NULL, address = NULL, instance = NULL,
                       lease_until = NULL WHERE id = $1 AND instance = $2";
            session.client.execute(sql, &[&shard, &&instance[..]]).await.ok()
        });
        let _ = wait(release, RELEASE_TIMEOUT);
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        self.release();
    }
}

enum Attempt {
    Acquired { epoch: i64 },
    OwnedBy { owner: String, remaining: Duration },
}

async fn try_acquire(
    session: &Session,
    shard: i32,
    owner: &ShardOwner,
    instance: &[u8],
    settings: &LeaseSettings,
) -> Result<Attempt, JournalError> {
    let lease_ms = milliseconds(settings.duration);
    session.take_warning();
    let sql = "INSERT INTO sayso.shard VALUES
               ($1, 1, $2, $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond', 0, 0, 0, 0, 0)
               ON CONFLICT (id) DO UPDATE SET epoch = shard.epoch + 1, owner = $2, address = $3, instance = $4,
               lease_until = clock_timestamp() + $5::bigint * interval '1 millisecond'
               WHERE shard.lease_until IS NULL OR shard.lease_until < clock_timestamp() OR $6
               RETURNING epoch";
    let row = session
        .client
        .query_opt(sql, &[&shard, &owner.name, &owner.address, &instance, &lease_ms, &settings.take_over])
        .await
        .map_err(from_postgres)?;
    if let Some(row) = row {
        return Ok(Attempt::Acquired { epoch: row.get(0) });
    }
    let sql = "SELECT coalesce(owner, ''),
               coalesce(extract(epoch FROM lease_until - clock_timestamp()) * 1000, 0)::bigint
               FROM sayso.shard WHERE id = $1";
    let row = session.client.query_one(sql, &[&shard]).await.map_err(from_postgres)?;
    let remaining_ms = u64::try_from(row.get::<_, i64>(1)).unwrap_or(0);
    Ok(Attempt::OwnedBy { owner: row.get(0), remaining: Duration::from_millis(remaining_ms) })
}

/// Renews the lease at a third of its time, on a connection of its own, until another owner has taken the shard.
async fn renew_regularly(
    database: PostgresDatabase,
    shard: i32,
    instance: [u8; 16],
    duration: Duration,
    is_lost: Arc<watch::Sender<bool>>,
) {
    let mut session = None;
    let mut pause = duration / 3;
    let lease_ms = milliseconds(duration);
    loop {
        tokio::time::sleep(pause).await;
        // After a failure, there are two more attempts before the lease ends.
        pause = duration / 10;
        let current = match session.take() {
            Some(current) => current,
            None => match tokio::time::timeout(duration, database.connect_async()).await {
                Ok(Ok(current)) => current,
                _ => continue,
            },
        };
        let sql =
            "UPDATE sayso.shard SET lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
                   WHERE id = $1 AND instance = $2";
        let renewal = async { current.client.execute(sql, &[&shard, &&instance[..], &lease_ms]).await };
        match tokio::time::timeout(duration, renewal).await {
            Ok(Ok(0)) => {
                is_lost.send_replace(true);
                return;
            }
            Ok(Ok(_)) => {
                session = Some(current);
                pause = duration / 3;
            }
            _ => {}
        }
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn unreplicated() -> JournalError {
    JournalError::Io(DatabaseFailure::new("the standby did not confirm that this hub owns the shard").into())
}
