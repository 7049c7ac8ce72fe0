//! `sayso serve --cluster`: a node waits until it owns the journal, and answers with status 503 until then.
//!
//! The tokens and the key that signs receipts are in the database, so every node has the same ones.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use journal::{
    ClusterEvent, ClusterMember, ClusterNode, ClusterTable, JournalError, PostgresDatabase, PostgresJournal,
    SharedTexts,
};
use seal::es256::SigningKey;
use seal::{Random, SystemRandom, base64url};
use tokio::net::TcpListener;
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wire::auth::Tokens;
use wire::http::{HttpResponse, RequestHead, StatusCode};
use wire::{Access, AuthPolicy, HttpServer, HttpService, ServiceOutcome, ServiceRequest, Tls};

use super::OpenedJournals;
use super::config::Config;
use super::database_journal::{JournalOwnership, database_settings, leave};
use super::first_token;
use crate::hub_args::{build_runtime, wait_for_signal};
use crate::output::{describe_io_error, print_stderr};

/// The names of the shared texts.
pub(crate) const TOKENS_TEXT: &str = "tokens";
pub(crate) const KEY_TEXT: &str = "receipt-key";

/// Number of shards of a cluster.
pub(crate) const SHARDS: u16 = 1;

/// How often the active node looks for changed tokens, so that a revocation takes effect within a second.
const TOKEN_INTERVAL: Duration = Duration::from_millis(400);
/// How long a node waits before it tries again to reach the database.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Everything that the node that owns the journal needs for serving.
pub(super) struct ActiveNode {
    pub(super) journals: OpenedJournals,
    pub(super) tokens: Tokens,
    pub(super) signing_key: SigningKey,
    pub(super) token_changes: TokenChanges,
}

/// Waits until this node owns the journal. During that time, answers requests with status 503. Returns `None` if the node was stopped.
pub(super) fn wait_until_active(
    config: &Config,
    listener: &std::net::TcpListener,
    hosts: Vec<String>,
    tls: Option<Tls>,
) -> Result<Option<ActiveNode>, String> {
    // When this runtime ends, the connections of the standby end with it, so clients connect again to the active node.
    let runtime = build_runtime(1)?;
    let result = runtime.block_on(async {
        let stop = wait_for_signal([SignalKind::terminate(), SignalKind::interrupt()]);
        let listener = listener.try_clone().and_then(TcpListener::from_std);
        let listener = listener.map_err(|error| describe_io_error(&error))?;
        let address = listener.local_addr().map_err(|error| describe_io_error(&error))?;
        let policy = AuthPolicy::Tokens(Tokens::default());
        let server = HttpServer::new(Standby, policy, config.wire, hosts, Arc::default());
        let server = Arc::new(server.with_tls(tls).with_proxy(config.behind_proxy));
        let scheme = if config.tls_cert.is_some() { "https" } else { "http" };
        print_stderr(&format!("waiting for the journal on {scheme}://{address}"));
        tokio::select! {
            () = server.serve(listener) => Ok(None),
            result = acquire(config, address, stop) => result,
        }
    });
    runtime.shutdown_background();
    result
}

/// Joins the cluster and waits until this node owns the journal, or until it is stopped.
async fn acquire(
    config: &Config,
    address: SocketAddr,
    stop: impl Future<Output = ()>,
) -> Result<Option<ActiveNode>, String> {
    let mut stop = pin!(stop);
    let (database, table) = tokio::select! {
        () = &mut stop => return Ok(None),
        opened = open_database(config) => opened?,
    };
    let name = config.cluster_node.clone();
    let name = name.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    let node = ClusterNode {
        name: name.clone(),
        address: config.host.first().cloned().unwrap_or(address.to_string()),
    };
    let mut member = ClusterMember::join(&database, table, node, config.database_lease);
    loop {
        let event = tokio::select! {
            () = &mut stop => {
                leave(&mut member, None).await;
                return Ok(None);
            }
            event = member.next_event() => event,
        };
        match event {
            Some(ClusterEvent::Start(lease)) => {
                let (shard, data, database) = (lease.shard(), config.data.clone(), database.clone());
                let (owned, name) = (lease.clone(), name.clone());
                let start = move || start(owned, &name, &data, &database);
                match tokio::task::spawn_blocking(start).await.map_err(|error| error.to_string())? {
                    Ok((journal, status, tokens, signing_key, token_changes)) => {
                        let ownership = JournalOwnership::of_member(lease, member);
                        let journals = OpenedJournals {
                            journals: vec![Box::new(journal)],
                            map: hub::ShardMap::new(SHARDS),
                            status: Some(status),
                            ownership,
                        };
                        return Ok(Some(ActiveNode { journals, tokens, signing_key, token_changes }));
                    }
                    Err(error) => {
                        print_stderr(&format!("warning: this node cannot start: {error}"));
                        member.report_stopped(shard);
                    }
                }
            }
            Some(ClusterEvent::Stop(shard, _)) => member.report_stopped(shard),
            Some(ClusterEvent::NameTaken) => {
                return Err(format!(
                    "another node of the cluster is named {name:?}; give this one another name with --cluster-node"
                ));
            }
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

/// Opens the database and the table of the cluster. Tries again while the database cannot be reached.
async fn open_database(config: &Config) -> Result<(PostgresDatabase, ClusterTable), String> {
    let Some(address) = &config.database else { return Err("--cluster needs --journal".to_owned()) };
    let mut last_error = String::new();
    loop {
        let settings = database_settings(address.expose(), config)?;
        let name = settings.to_string();
        let open = move || {
            let database = PostgresDatabase::open(settings)?;
            let table = ClusterTable::open(&database, SHARDS)?;
            Ok::<_, JournalError>((database, table))
        };
        match tokio::task::spawn_blocking(open).await.map_err(|error| error.to_string())? {
            Ok(opened) => return Ok(opened),
            Err(error @ JournalError::Io(_)) => {
                let error = format!("journal {name}: {error}");
                if error != last_error {
                    print_stderr(&format!("warning: {error}"));
                    last_error = error;
                }
            }
            Err(error) => return Err(format!("journal {name}: {error}")),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

type ActiveNodeParts = (PostgresJournal, String, Tokens, SigningKey, TokenChanges);

/// Opens the journal that this node has acquired, and reads what the nodes share.
fn start(
    lease: journal::ShardLease,
    name: &str,
    data: &std::path::Path,
    database: &PostgresDatabase,
) -> Result<ActiveNodeParts, String> {
    let status = format!(
        "journal {}: node {name}, shard {}, epoch {}",
        database.settings(),
        lease.shard(),
        lease.epoch()
    );
    let mut texts = SharedTexts::new(database);
    let signing_key = shared_key(&mut texts)?;
    let (tokens, version) = shared_tokens(&mut texts, data)?;
    let journal = PostgresJournal::open_acquired(lease).map_err(|error| error.to_string())?;
    Ok((journal, status, tokens, signing_key, TokenChanges::watch(texts, version)?))
}

/// Returns the key that signs the manifest and the receipts. The first node creates it.
fn shared_key(texts: &mut SharedTexts) -> Result<SigningKey, String> {
    loop {
        if let Some(text) = texts.read(KEY_TEXT, None).map_err(|error| error.to_string())? {
            let secret = base64url::decode(&text.content).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            let key = secret.as_ref().and_then(SigningKey::from_secret);
            return key.ok_or_else(|| format!("the text {KEY_TEXT} in the database is not a key"));
        }
        let mut secret = [0; 32];
        SystemRandom.fill(&mut secret);
        if SigningKey::from_secret(&secret).is_some() {
            let text = base64url::encode(&secret);
            texts.replace(KEY_TEXT, &text, None).map_err(|error| error.to_string())?;
        }
    }
}

/// Returns the tokens and their version. The first node creates an admin token and writes it to its data folder.
fn shared_tokens(texts: &mut SharedTexts, data: &std::path::Path) -> Result<(Tokens, i64), String> {
    loop {
        if let Some(text) = texts.read(TOKENS_TEXT, None).map_err(|error| error.to_string())? {
            return Ok((parse_tokens(&text.content)?, text.version));
        }
        super::create_data_dir(data)?;
        let (tokens, token) = first_token::create_shared()?;
        let was_stored = texts.replace(TOKENS_TEXT, &tokens.to_text(), None);
        if was_stored.map_err(|error| error.to_string())? {
            first_token::write_shared(data, &token)?;
        }
    }
}

/// Parses the tokens of a cluster.
pub(crate) fn parse_tokens(text: &str) -> Result<Tokens, String> {
    Tokens::parse(text, std::path::Path::new("tokens in the database")).map_err(|error| error.to_string())
}

/// The changes to the cluster's tokens.
pub(super) struct TokenChanges(UnboundedReceiver<Result<Tokens, String>>);

impl TokenChanges {
    /// Watches the tokens on a thread of its own, until this value is dropped.
    fn watch(texts: SharedTexts, version: i64) -> Result<Self, String> {
        let (sender, receiver) = unbounded_channel();
        std::thread::Builder::new()
            .name("cluster-tokens".to_owned())
            .spawn(move || watch_tokens(texts, version, &sender))
            .map_err(|error| describe_io_error(&error))?;
        Ok(Self(receiver))
    }

    /// Waits for the next change, or for the error that prevents reading it. Every error is returned, unless it repeats the last one.
    pub(super) async fn next(&mut self) -> Result<Tokens, String> {
        match self.0.recv().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

fn watch_tokens(mut texts: SharedTexts, mut version: i64, sender: &UnboundedSender<Result<Tokens, String>>) {
    let mut last_error = None;
    while !sender.is_closed() {
        std::thread::sleep(TOKEN_INTERVAL);
        let read = texts.read(TOKENS_TEXT, Some(version)).map_err(|error| error.to_string());
        let change = match read {
            // Reading works again.
            Ok(None) if last_error.is_some() => {
                texts.read(TOKENS_TEXT, None).map_err(|error| error.to_string())
            }
            other => other,
        };
        let change = change.and_then(|text| {
            text.map(|text| {
                version = text.version;
                parse_tokens(&text.content)
            })
            .transpose()
        });
        match change {
            Ok(None) => {}
            Ok(Some(tokens)) => {
                last_error = None;
                let _ = sender.send(Ok(tokens));
            }
            Err(error) if last_error.as_ref() == Some(&error) => {}
            Err(error) => {
                last_error = Some(error.clone());
                let _ = sender.send(Err(error));
            }
        }
    }
}

/// Answers while another node owns the journal.
struct Standby;

impl HttpService for Standby {
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
        Err("Another node of the cluster is active.".to_owned())
    }
}

fn unavailable() -> HttpResponse {
    HttpResponse::problem(StatusCode::ServiceUnavailable, "Another node of the cluster is active.")
        .header("Retry-After", "1")
}
