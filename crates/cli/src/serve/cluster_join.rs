//! A node joins its cluster. Until it has joined, it answers requests with status 503.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hub::ShardMap;
use journal::{
    ClusterEvent, ClusterMember, ClusterNode, ClusterTable, JournalError, PostgresDatabase, SharedTexts,
};
use tokio::net::TcpListener;
use tokio::signal::unix::SignalKind;
use wire::auth::Tokens;
use wire::http::{HttpResponse, RequestHead, StatusCode};
use wire::{Access, AuthPolicy, HttpServer, HttpService, ServiceOutcome, ServiceRequest, Tls};

use super::cluster_texts::ClusterTexts;
use super::config::Config;
use super::database_journal::{database_settings, shard_map};
use super::shared_settings::SharedSettings;
use crate::hub_args::{build_runtime, wait_for_signal};
use crate::output::{describe_io_error, print_stderr};

/// Number of shards of a new cluster, if none is configured. It bounds how many nodes and processor cores can share the work.
const DEFAULT_SHARDS: u16 = 16;

/// How long a node waits before it tries again to reach the database.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A node that has joined its cluster, and runs no shard yet.
pub(super) struct JoinedNode {
    pub(super) member: ClusterMember,
    pub(super) name: String,
    /// The name of the database, for the log.
    pub(super) database: String,
    pub(super) shards: ShardMap,
    pub(super) texts: ClusterTexts,
}

/// Waits until this node has joined. `internal_address` is where the other nodes reach it. Returns `None` if the node was
/// stopped.
pub(super) fn join(
    config: &Config,
    listener: &std::net::TcpListener,
    internal_address: &str,
    hosts: Vec<String>,
    tls: Option<Tls>,
) -> Result<Option<JoinedNode>, String> {
    // When this runtime ends, its connections end with it, so clients connect again to the hub.
    let runtime = build_runtime(1)?;
    let result = runtime.block_on(async {
        let stop = wait_for_signal([SignalKind::terminate(), SignalKind::interrupt()]);
        let listener = listener.try_clone().and_then(TcpListener::from_std);
        let listener = listener.map_err(|error| describe_io_error(&error))?;
        let policy = AuthPolicy::Tokens(Tokens::default());
        let server = HttpServer::new(Joining, policy, config.wire, hosts, Arc::default());
        let server = Arc::new(server.with_tls(tls).with_proxy(config.behind_proxy));
        tokio::select! {
            () = server.serve(listener) => Ok(None),
            () = stop => Ok(None),
            joined = open_and_join(config, internal_address) => joined.map(Some),
        }
    });
    runtime.shutdown_background();
    result
}

async fn open_and_join(config: &Config, internal_address: &str) -> Result<JoinedNode, String> {
    let (database, table, shards, texts) = open_database(config).await?;
    let name = config.cluster_node.clone();
    let name = name.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    let node = ClusterNode { name: name.clone(), address: internal_address.to_owned() };
    let mut member = ClusterMember::join(&database, table, node, config.database_lease);
    let mut snapshots = member.table();
    // The first snapshot shows that the node is in the table.
    let mut has_joined = pin!(snapshots.changed());
    loop {
        let event = tokio::select! {
            // The member acquires nothing before it has read the table, so no other event is lost.
            biased;
            _ = &mut has_joined => break,
            event = member.next_event() => event,
        };
        if let Some(ClusterEvent::NameTaken) = event {
            return Err(format!(
                "another node of the cluster is named {name:?}; give this one another name with --cluster-node"
            ));
        }
    }
    compare_settings(config, &database, &name).await?;
    Ok(JoinedNode { member, name, database: database.settings().to_string(), shards, texts })
}

/// Stores the settings of this node, and warns if another node has different ones.
async fn compare_settings(config: &Config, database: &PostgresDatabase, node: &str) -> Result<(), String> {
    let settings = SharedSettings::of(config)?;
    let (database, node) = (database.clone(), node.to_owned());
    let publish = move || match ClusterTable::open_existing(&database)? {
        Some(table) => settings.publish(&table, &node),
        None => Ok(()),
    };
    if let Err(error) = tokio::task::spawn_blocking(publish).await.map_err(|error| error.to_string())? {
        print_stderr(&format!("warning: cannot compare the settings of the nodes: {error}"));
    }
    Ok(())
}

type OpenedDatabase = (PostgresDatabase, ClusterTable, ShardMap, ClusterTexts);

/// Opens the database and what the nodes share in it. Tries again while the database cannot be reached.
async fn open_database(config: &Config) -> Result<OpenedDatabase, String> {
    let Some(address) = &config.database else { return Err("--cluster needs --journal".to_owned()) };
    let mut last_error = String::new();
    loop {
        let settings = database_settings(address.expose(), config)?;
        let name = settings.to_string();
        let own_config = config.clone();
        let open = move || {
            let database = PostgresDatabase::open(settings)?;
            let shards = shard_map(&database, &own_config, DEFAULT_SHARDS)?;
            let table = ClusterTable::open(&database, shards.count())?;
            Ok::<_, JournalError>((database, table, shards))
        };
        match tokio::task::spawn_blocking(open).await.map_err(|error| error.to_string())? {
            Ok((database, table, shards)) => {
                let (texts, data) = (SharedTexts::new(&database), config.data.clone());
                let open = move || ClusterTexts::open(texts, &data);
                let texts = tokio::task::spawn_blocking(open).await.map_err(|error| error.to_string())?;
                return Ok((database, table, shards, texts?));
            }
            Err(error @ JournalError::Io(_)) => {
                let error = format!("journal {name}: {error}");
                if error != last_error {
                    print_stderr(&format!("warning: {error}; trying again every second"));
                    last_error = error;
                }
            }
            Err(error) => return Err(format!("journal {name}: {error}")),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Answers until the node has joined.
struct Joining;

impl HttpService for Joining {
    type Caller = ();

    fn admit(&self, _head: &RequestHead, _peer: IpAddr) -> Result<Access<()>, HttpResponse> {
        Err(unavailable())
    }

    async fn handle(&self, _request: ServiceRequest) -> ServiceOutcome {
        unavailable().into()
    }

    fn route_template(&self, _head: &RequestHead) -> Option<&'static str> {
        None
    }

    fn readiness(&self) -> Result<(), String> {
        Err(NOT_JOINED.to_owned())
    }
}

const NOT_JOINED: &str = "This node has not joined its cluster yet.";

fn unavailable() -> HttpResponse {
    HttpResponse::problem(StatusCode::ServiceUnavailable, NOT_JOINED).header("Retry-After", "1")
}
