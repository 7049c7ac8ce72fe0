//! `sayso asp serve`: an agent's ASP node. It uses the journal, server, tokens, TLS and log of `sayso serve`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use asp::{AgentCard, AgentUri};
use client::{TrustRoots, Url};
use node::{
    ConsentPolicy, Identity, Node, NodeConfig, NodeService, PeerTransport, Person, PersonConfig, Policy,
};
use sd_notify::NotifyState;
use tokio::signal::unix::SignalKind;
use wire::HttpServer;

use super::config::{Config, ConfigFlags, LoadedConfig};
use super::control::{self, PausableJournal};
use super::reload::{Reloadable, Reloader};
use super::{
    OpenedJournals, SHUTDOWN_TIMEOUT, bind_tcp, check, descriptors, load_auth_policy, load_tls,
    notify_service_manager, parse_trusted_proxies, shard_journals, storage_name,
};
use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{build_runtime, complete_url, parse_listen_address_arg, wait_for_signal};
use crate::log_args::{self, LogArgs};
use crate::output::{describe_io_error, print_stderr};

#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Arguments {
    /// Folder with the agent's keys and card, as `sayso asp keygen` creates it.
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
    #[arg(long, value_name = "ADDR", value_parser = parse_listen_address_arg, help = "Address to listen on; port 0 picks a free port [default: 127.0.0.1:8788]")]
    listen: Option<SocketAddr>,
    /// Data folder: journal and tokens [default: sayso-asp-data].
    #[arg(long, value_name = "DIR", conflicts_with = "memory")]
    data: Option<PathBuf>,
    /// Configuration file: the limits on connections and requests, and the settings of the flags, with the keys of `sayso
    /// serve`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Keep everything in memory; all sessions are lost when the node stops.
    #[arg(long)]
    memory: bool,
    /// Token file for the agent's own programs; by default it is in the data folder.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Accept the agent's own programs without a token. Loopback only. Other nodes always need proof.
    #[arg(long)]
    open: bool,
    /// Host name and port that other nodes may use for this one, in addition to its address. Can be repeated.
    #[arg(long, value_name = "HOST:PORT")]
    host: Vec<String>,
    /// TLS certificate chain, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the TLS certificate, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of the node terminates TLS.
    #[arg(long)]
    behind_proxy: bool,
    /// PEM file with certificates of other nodes and of the hub to trust, in addition to those of the system.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Hub through which a person is asked before a commitment is sent or accepted.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// File with the token of an agent of that hub.
    #[arg(long, value_name = "FILE", requires = "hub")]
    hub_token: Option<PathBuf>,
    /// File with the pinned cards of other agents: a path or a URL per line.
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// Pin the card of an unknown agent on first contact, if it verifies.
    #[arg(long)]
    trust_on_first_use: bool,
    /// Policy file: trust, consent, limits, revoked cards and deposits.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Also store the cards of other agents, and answer searches for them.
    #[arg(long)]
    registry: bool,
    /// Deliver messages to other nodes over a WebSocket for each session, instead of a request for each message.
    #[arg(long)]
    websocket: bool,
    /// Offer MessagePack to other nodes, and accept such an offer: messages between nodes become shorter.
    #[arg(long)]
    msgpack: bool,
    /// Start although the journal has lost acknowledged entries.
    #[arg(long)]
    accept_loss: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    serve(arguments)?;
    Ok(ExitStatus::Success)
}

fn serve(arguments: &Arguments) -> Result<(), String> {
    let config = server_config(arguments)?;
    if let Some(problem) = check::exposure_problems(&config).into_iter().next() {
        return Err(problem);
    }
    let identity = Identity::load(&arguments.identity).map_err(|error| error.to_string())?;
    let trust_roots = load_trust_roots(arguments.ca.as_deref())?;
    let files = PolicyFiles::new(arguments, &identity, &trust_roots);
    let policy = files.load_policy()?;
    let person = load_person(arguments, &trust_roots)?;
    let trusted_proxies = parse_trusted_proxies(&config)?;
    let tls = load_tls(&config)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let permitted_connections = descriptors::raise_limit();
    let runtime = build_runtime(config.threads)?;
    let listener = runtime.block_on(bind_tcp(config.listen))?;
    let pinned = runtime.block_on(files.load_peers())?;
    let (auth_policy, tokens, _temporary_token_file) = load_auth_policy(&config)?;
    let telemetry = arguments.log.start_log()?;
    let OpenedJournals { mut journals, status: journal_status, .. } = shard_journals::open(&config)?;
    if let Some(status) = journal_status {
        print_stderr(&status);
    }
    // A node has one shard.
    let journal = journals.pop().ok_or("there is no journal")?;
    let journal = telemetry.instrument_journal(journal);
    let limits = policy.limits.clone();
    let node_config = NodeConfig {
        identity,
        pinned,
        trusts_on_first_use: arguments.trust_on_first_use,
        is_registry: arguments.registry,
        policy,
        limits,
        trust_roots,
        peer_transport: if arguments.websocket { PeerTransport::WebSocket } else { PeerTransport::Http },
        uses_message_pack: arguments.msgpack,
        clients_use_tls: tls.is_some() || config.behind_proxy,
    };
    let result = runtime.block_on(async {
        let node = Node::open(node_config, journal, person).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| describe_io_error(&error))?;
        let mut hosts = config.host.clone();
        hosts.push(address.to_string());
        if address.ip().is_loopback() {
            hosts.push(format!("localhost:{}", address.port()));
        }
        let server_limits = wire::ServerLimits {
            connections: config.wire.connections.min(permitted_connections),
            ..config.wire
        };
        let server =
            HttpServer::new(NodeService(node.clone()), auth_policy, server_limits, hosts, telemetry.clone())
                .with_tls(tls.clone())
                .with_proxy(config.behind_proxy)
                .with_trusted_proxies(trusted_proxies);
        let server = Arc::new(server);
        let reloadable = ReloadableNode { server: server.clone(), node: node.clone(), files };
        let control_socket = if config.memory { None } else { control::bind(&config.data) };
        let control_connections = async {
            match &control_socket {
                Some(socket) => control::serve(socket, &*node, config.backup_timeout).await,
                None => std::future::pending().await,
            }
        };
        let mut reloader = Reloader::new();
        reloader.tokens = tokens;
        reloader.tls = tls.zip(super::tls_files(&config));
        let stop_signal = wait_for_signal([SignalKind::terminate(), SignalKind::interrupt()]);
        print_stderr(&format!("agent {}", node.card().agent_id()));
        print_stderr(&format!("listening on {scheme}://{address}"));
        notify_service_manager(&[NotifyState::Ready]);
        log_args::log_started("asp", &storage_name(&config));
        let telemetry_ticks = async {
            let mut interval = tokio::time::interval(Duration::from_secs(1));
            loop {
                interval.tick().await;
                telemetry.tick();
            }
        };
        tokio::select! {
            () = server.clone().serve(listener) => {}
            () = node.run() => {}
            () = telemetry_ticks => {}
            () = stop_signal => {}
            () = reloader.run(&reloadable) => {}
            () = control_connections => {}
        }
        notify_service_manager(&[NotifyState::Stopping]);
        // The node closes its streams and ends long polls. Requests that are being handled are answered.
        node.stop();
        server.shut_down(SHUTDOWN_TIMEOUT).await;
        Ok(())
    });
    match result {
        Ok(()) => log_args::log_stopping(&telemetry),
        Err(_) => telemetry.close(),
    }
    runtime.shutdown_background();
    result
}

/// The files that a node reads again on SIGHUP.
struct PolicyFiles {
    policy: Option<PathBuf>,
    peers: Option<PathBuf>,
    consent: ConsentPolicy,
    own_agent: AgentUri,
    trust_roots: TrustRoots,
}

impl PolicyFiles {
    fn new(arguments: &Arguments, identity: &Identity, trust_roots: &TrustRoots) -> Self {
        Self {
            policy: arguments.policy.clone(),
            peers: arguments.peers.clone(),
            consent: if arguments.hub.is_some() { ConsentPolicy::ASK } else { ConsentPolicy::NEVER_ASK },
            own_agent: identity.card.agent_id().clone(),
            trust_roots: trust_roots.clone(),
        }
    }

    fn load_policy(&self) -> Result<Policy, String> {
        match &self.policy {
            Some(path) => Policy::load(path, self.consent).map_err(|error| error.to_string()),
            None => Ok(Policy::new(self.consent)),
        }
    }

    async fn load_peers(&self) -> Result<Vec<AgentCard>, String> {
        match &self.peers {
            Some(path) => read_peers(path, &self.own_agent, &self.trust_roots).await,
            None => Ok(Vec::new()),
        }
    }
}

/// A node whose tokens, policy and pinned cards can be replaced.
struct ReloadableNode {
    server: Arc<HttpServer<NodeService>>,
    node: Arc<Node>,
    files: PolicyFiles,
}

impl Reloadable for ReloadableNode {
    async fn reload_others(&self) -> Option<Result<&'static str, String>> {
        if self.files.policy.is_none() && self.files.peers.is_none() {
            return None;
        }
        let reload = async {
            // If one file is unusable, both stay as they were.
            let (policy, pinned) = (self.files.load_policy()?, self.files.load_peers().await?);
            self.node.reload(policy, pinned).await.map_err(|error| error.to_string())
        };
        Some(reload.await.map(|()| "policy and pinned cards"))
    }

    async fn replace_tokens(&self, tokens: wire::auth::Tokens) -> wire::TokenChanges {
        self.server.replace_tokens(tokens)
    }

    fn telemetry(&self) -> &wire::telemetry::Telemetry {
        self.server.telemetry()
    }
}

impl PausableJournal for Node {
    async fn set_paused(&self, is_paused: bool) -> Result<(), String> {
        self.pause_checkpoints(is_paused).await.map_err(|error| error.to_string())
    }
}

fn server_config(arguments: &Arguments) -> Result<Config, String> {
    let mut flags = ConfigFlags::default();
    flags.set("listen", arguments.listen.map(|address| address.to_string()));
    flags.set("data", arguments.data.as_ref());
    flags.set("tokens", arguments.tokens.as_ref());
    flags.set("tls_cert", arguments.tls_cert.as_ref());
    flags.set("tls_key", arguments.tls_key.as_ref());
    flags.set_all("host", arguments.host.iter().map(Into::into).collect());
    for (name, is_set) in
        [("memory", arguments.memory), ("open", arguments.open), ("behind_proxy", arguments.behind_proxy)]
    {
        flags.set(name, is_set.then_some("true"));
    }
    let mut config = LoadedConfig::load_node(&flags, arguments.config.as_deref())?.config;
    config.journal.accept_loss = arguments.accept_loss;
    Ok(config)
}

fn load_trust_roots(path: Option<&Path>) -> Result<TrustRoots, String> {
    let Some(path) = path else { return Ok(TrustRoots::default()) };
    let pem =
        std::fs::read(path).map_err(|error| format!("{}: {}", path.display(), describe_io_error(&error)))?;
    TrustRoots::system_and_pem(&pem).map_err(|error| format!("{}: {error}", path.display()))
}

fn load_person(arguments: &Arguments, trust_roots: &TrustRoots) -> Result<Option<Person>, String> {
    let Some(url) = &arguments.hub else { return Ok(None) };
    let hub = Url::parse_http(&complete_url(url)?).map_err(|error| format!("--hub: {error}"))?;
    let token = match &arguments.hub_token {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {}", path.display(), describe_io_error(&error)))?;
            Some(text.trim().to_owned())
        }
        None => std::env::var("SAYSO_TOKEN").ok().filter(|token| !token.is_empty()),
    };
    let config = PersonConfig { hub, token, trust_roots: trust_roots.clone() };
    Ok(Some(Person::new(config)?))
}

/// Reads the pinned cards: a path or a URL per line. Empty lines and lines that start with # are ignored.
async fn read_peers(
    path: &Path,
    own_agent: &AgentUri,
    trust_roots: &TrustRoots,
) -> Result<Vec<AgentCard>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: {}", path.display(), describe_io_error(&error)))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut cards = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let card = if line.contains("://") {
            node::fetch_card(line, trust_roots.clone()).await
        } else {
            node::read_card(&folder.join(line)).map_err(|error| error.to_string())
        };
        let card = card.map_err(|reason| format!("{}:{}: {reason}", path.display(), index + 1))?;
        if card.agent_id() != own_agent {
            cards.push(card);
        }
    }
    Ok(cards)
}
