//! The table of nodes and shards.

use std::time::Duration;

use cluster::{
    Answer, InstanceId, LeaseToken, NodeEntry, Query, ShardEntry, ShardId, ShardOwner, TableSnapshot,
};
use tokio::sync::Mutex;
use tokio_postgres::Client;

use super::super::database::{PostgresDatabase, Session, timed_out, wait};
use super::super::error_mapping::from_postgres;
use crate::JournalError;

/// The identity of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name, which is unique in the cluster.
    pub name: String,
    /// Where it can be reached, for operators and other nodes.
    pub address: String,
}

/// The table of the nodes and shards of a cluster, on a connection of its own.
#[derive(Debug)]
pub struct ClusterTable {
    database: PostgresDatabase,
    session: Mutex<Option<Session>>,
}

impl ClusterTable {
    /// Opens the table. The first call for a database fixes its number of shards; a later one with another number fails.
    pub fn open(database: &PostgresDatabase, shards: u16) -> Result<Self, JournalError> {
        let shards = i32::from(database.fix_shard_count(Some(shards), shards)?);
        let table = Self { database: database.clone(), session: Mutex::new(None) };
        let stored = table.run(async |client| {
            let sql = "WITH fixed AS (INSERT INTO sayso.cluster (shards) VALUES ($1) ON CONFLICT DO NOTHING
                           RETURNING shards)
                       INSERT INTO sayso.shard SELECT id, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0
                       FROM fixed, generate_series(0, fixed.shards - 1) AS id ON CONFLICT DO NOTHING";
            client.execute(sql, &[&shards]).await?;
            Ok(client.query_one("SELECT shards FROM sayso.cluster", &[]).await?.get::<_, i32>(0))
        })?;
        if stored == shards {
            Ok(table)
        } else {
            Err(JournalError::ShardCount { stored, configured: shards })
        }
    }

    /// Opens the table of an existing cluster. Returns `None` if the database has none.
    pub fn open_existing(database: &PostgresDatabase) -> Result<Option<Self>, JournalError> {
        let table = Self { database: database.clone(), session: Mutex::new(None) };
        let exists = table.run(async |client| {
            client.query_opt("SELECT FROM sayso.cluster", &[]).await.map(|row| row.is_some())
        })?;
        Ok(exists.then_some(table))
    }

    /// Reads the table.
    pub fn read(&self) -> Result<TableSnapshot, JournalError> {
        self.run(async |client| read_table(client).await)
    }

    /// Asks a node to give its shards away. Returns whether a live node has this name.
    pub fn request_drain(&self, node: &str) -> Result<bool, JournalError> {
        let sql = "UPDATE sayso.node SET drain_requested = true
                   WHERE name = $1 AND alive_until > clock_timestamp()";
        self.run(async |client| client.execute(sql, &[&node]).await.map(|rows| rows > 0))
    }

    /// Asks all nodes to distribute the shards evenly.
    pub fn request_rebalance(&self) -> Result<(), JournalError> {
        let sql = "UPDATE sayso.cluster SET rebalance_requests = rebalance_requests + 1";
        self.run(async |client| client.execute(sql, &[]).await.map(drop))
    }

    /// Stores the settings of a node, so that the others can compare them with theirs.
    pub fn publish_settings(&self, node: &str, settings: &str) -> Result<(), JournalError> {
        let sql = "UPDATE sayso.node SET settings = $2 WHERE name = $1";
        self.run(async |client| client.execute(sql, &[&node, &settings]).await.map(drop))
    }

    /// Returns the names and settings of the live nodes that have stored theirs.
    pub fn settings(&self) -> Result<Vec<(String, String)>, JournalError> {
        let sql = "SELECT name, settings FROM sayso.node
                   WHERE settings IS NOT NULL AND alive_until > clock_timestamp() ORDER BY name";
        let rows = self.run(async |client| client.query(sql, &[]).await)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Performs a query of a node. Gives up after `limit`.
    pub(super) async fn perform(
        &self,
        node: &ClusterNode,
        instance: InstanceId,
        query: &Query,
        limit: Duration,
    ) -> Answer {
        let attempt = async {
            let mut guard = self.session.lock().await;
            let session = match guard.take() {
                Some(session) if !session.client.is_closed() => session,
                _ => self.database.connect_async().await?,
            };
            session.take_warning();
            let answer = perform(&session.client, node, instance, query).await.map_err(from_postgres)?;
            // A promoted standby may not have an acquisition that only the former primary has stored.
            let is_unreplicated = session.take_warning() && matches!(query, Query::Acquire { .. });
            *guard = Some(session);
            Ok::<_, JournalError>(if is_unreplicated { Answer::Failed } else { answer })
        };
        // A connection that is still running a query when the time is up is closed.
        match tokio::time::timeout(limit, attempt).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Answer::Failed,
        }
    }

    fn run<T>(
        &self,
        query: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, JournalError> {
        let session = self.database.connect()?;
        let result = wait(query(&session.client), self.database.answer_timeout());
        result.ok_or_else(timed_out)?.map_err(from_postgres)
    }
}

async fn perform(
    client: &Client,
    node: &ClusterNode,
    instance: InstanceId,
    query: &Query,
) -> Result<Answer, tokio_postgres::Error> {
    let instance = &instance.0[..];
    match query {
        Query::Heartbeat { renew, is_draining, lease } => {
            let lease_ms = milliseconds(*lease);
            let sql = "INSERT INTO sayso.node VALUES
                       ($1, $2, $3, clock_timestamp() + $4::bigint * interval '1 millisecond', $5, false)
                       ON CONFLICT (name) DO UPDATE SET instance = $2, address = $3,
                       alive_until = clock_timestamp() + $4::bigint * interval '1 millisecond', draining = $5,
                       drain_requested = node.drain_requested AND node.instance = $2,
                       settings = CASE WHEN node.instance = $2 THEN node.settings END
                       WHERE node.instance = $2 OR node.alive_until < clock_timestamp()";
            let rows =
                client.execute(sql, &[&node.name, &instance, &node.address, &lease_ms, is_draining]).await?;
            if rows == 0 {
                return Ok(Answer::NameTaken);
            }
            let mut renewed = Vec::new();
            if !renew.is_empty() {
                let shards: Vec<i32> = renew.iter().map(|(shard, _)| i32::from(shard.0)).collect();
                let tokens: Vec<Vec<u8>> = renew.iter().map(|(_, token)| token.to_bytes().to_vec()).collect();
                let sql = "UPDATE sayso.shard SET lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
                           FROM unnest($1::integer[], $2::bytea[]) AS held (id, instance)
                           WHERE shard.id = held.id AND shard.instance = held.instance RETURNING shard.id";
                let rows = client.query(sql, &[&shards, &tokens, &lease_ms]).await?;
                renewed.extend(rows.iter().filter_map(|row| shard_id(row.get(0))));
            }
            Ok(Answer::Heartbeat { renewed, table: read_table(client).await? })
        }
        Query::Acquire { shards, token, lease } => {
            let (ids, epochs): (Vec<i32>, Vec<i64>) =
                shards.iter().map(|(shard, epoch)| (i32::from(shard.0), *epoch)).unzip();
            // The rows are locked in the order of their numbers, so that two nodes cannot block each other.
            let sql = "WITH free AS (SELECT shard.id FROM sayso.shard
                           JOIN unnest($1::integer[], $2::bigint[]) AS wanted (id, epoch)
                           ON shard.id = wanted.id AND shard.epoch = wanted.epoch
                           WHERE shard.lease_until IS NULL OR shard.lease_until < clock_timestamp()
                           OR substring(shard.instance FOR 8) = $3 ORDER BY shard.id FOR UPDATE OF shard)
                       UPDATE sayso.shard SET epoch = shard.epoch + 1, owner = $4, address = $5, instance = $6,
                       lease_until = clock_timestamp() + $7::bigint * interval '1 millisecond'
                       FROM free WHERE shard.id = free.id RETURNING shard.id, shard.epoch";
            let (token, lease_ms) = (token.to_bytes(), milliseconds(*lease));
            let rows = client
                .query(sql, &[&ids, &epochs, &instance, &node.name, &node.address, &&token[..], &lease_ms])
                .await?;
            let acquired = rows.iter().filter_map(|row| Some((shard_id(row.get(0))?, row.get(1))));
            Ok(Answer::Acquired(acquired.collect()))
        }
        Query::Release { shard, token } => {
            let sql =
                "UPDATE sayso.shard SET epoch = epoch + 1, owner = NULL, address = NULL, instance = NULL,
                       lease_until = NULL WHERE id = $1 AND instance = $2";
            client.execute(sql, &[&i32::from(shard.0), &&token.to_bytes()[..]]).await?;
            Ok(Answer::Done)
        }
        Query::Leave => {
            let sql = "DELETE FROM sayso.node WHERE name = $1 AND instance = $2";
            client.execute(sql, &[&node.name, &instance]).await?;
            Ok(Answer::Done)
        }
    }
}

async fn read_table(client: &Client) -> Result<TableSnapshot, tokio_postgres::Error> {
    let sql = "SELECT name, instance, address,
               (extract(epoch FROM alive_until - clock_timestamp()) * 1000)::bigint, draining, drain_requested
               FROM sayso.node ORDER BY name";
    let nodes = client.query(sql, &[]).await?;
    let nodes = nodes.iter().filter_map(|row| {
        let instance = InstanceId(row.get::<_, &[u8]>(1).try_into().ok()?);
        Some(NodeEntry {
            name: row.get(0),
            instance,
            address: row.get(2),
            remaining: remaining(Some(row.get(3))),
            is_draining: row.get(4),
            drain_requested: row.get(5),
        })
    });
    let nodes = nodes.collect();
    // A failed `sayso migrate` may have left rows of further shards.
    let sql = "SELECT id, epoch, owner, coalesce(address, ''), instance,
               (extract(epoch FROM lease_until - clock_timestamp()) * 1000)::bigint
               FROM sayso.shard WHERE id < (SELECT count FROM sayso.shard_count) ORDER BY id";
    let shards = client.query(sql, &[]).await?;
    let shards = shards.iter().filter_map(|row| {
        let owner = row.get::<_, Option<String>>(2).map(|name| ShardOwner {
            name,
            address: row.get(3),
            token: row.get::<_, Option<&[u8]>>(4).and_then(LeaseToken::from_bytes),
        });
        Some(ShardEntry {
            shard: shard_id(row.get(0))?,
            epoch: row.get(1),
            owner,
            remaining: remaining(row.get(5)),
        })
    });
    let shards = shards.collect();
    let row = client.query_one("SELECT coalesce(max(rebalance_requests), 0) FROM sayso.cluster", &[]).await?;
    Ok(TableSnapshot { nodes, shards, rebalance_requests: row.get(0) })
}

fn shard_id(id: i32) -> Option<ShardId> {
    u16::try_from(id).ok().map(ShardId)
}

fn remaining(milliseconds: Option<i64>) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds.unwrap_or(0)).unwrap_or(0))
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
