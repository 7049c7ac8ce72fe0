//! `sayso serve`: the hub.

mod agent_manifests;
pub(crate) mod asp_node;
mod check;
#[cfg(feature = "postgres")]
mod cluster_join;
#[cfg(feature = "postgres")]
mod cluster_shards;
mod cluster_start;
#[cfg(feature = "postgres")]
pub(crate) mod cluster_texts;
mod config;
pub(crate) mod control;
mod core_factory;
mod database_journal;
mod descriptors;
mod first_token;
pub(crate) mod manifest;
mod otlp;
pub(crate) mod personal;
mod reload;
mod shard_journals;
#[cfg(feature = "postgres")]
pub(crate) mod shared_settings;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::CommandFactory;
use hub::Shard;
use seal::SystemRandom;
use tokio::signal::unix::SignalKind;
use wire::auth::{BrowserSessions, Tokens};
use wire::{AuthPolicy, HubHandle, IpNet, Server, Tls, TlsFiles, UnixSocket};

use crate::file::CommandError;
use crate::hub_args::{DEFAULT_SOCKET_KEYWORD, build_runtime, default_socket_path, wait_for_signal};
use crate::log_args::{self, LogArgs};
use crate::output::{describe_io_error, print_stderr, print_stdout};
use crate::{ExitStatus, demo, file, page_assets};
use cluster_start::ClusterStart;
pub(crate) use config::parse_duration_ms;
use config::{Config, ConfigFlags, LIMITS_HEADING, LoadedConfig};
use core_factory::CoreFactory;
use database_journal::OwnershipEnd;
use first_token::TemporaryTokenFile;
use personal::HubOwner;
use reload::Reloader;
use sd_notify::NotifyState;
use shard_journals::OpenedJournals;
pub(crate) use shard_journals::{JOURNAL_FILE_NAME, reshard, shard_of_file_name};
#[cfg(feature = "postgres")]
pub(crate) use shard_journals::{MIGRATED_SUFFIX, MIGRATION_MARK_NAME, journal_file_name};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: ConfigFlags,
    /// Configuration file. Default: SAYSO_CONFIG, else sayso.toml in the data folder, if it exists.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the effective configuration as TOML, with the source of each value, and exit.
    #[arg(long)]
    print_config: bool,
    /// Check the configuration, report its problems, and exit: with 0 if there are none, otherwise with 2.
    #[arg(long)]
    check: bool,
    /// Print the flags of all limits, and exit.
    #[arg(long)]
    help_limits: bool,
    /// Print the table of all keys as in docs/configuration.md, and exit.
    #[arg(long, hide = true)]
    list_keys: bool,
    /// Start although the journal has lost acknowledged entries. Unspent consents become void, and open questions are
    /// answered with no.
    #[arg(long)]
    accept_loss: bool,
    #[command(flatten)]
    log: LogArgs,
}

/// How long to wait until listeners have been informed that the hub is shutting down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    if arguments.list_keys {
        return Ok(print_stdout(&config::key_table_markdown()));
    }
    if arguments.help_limits {
        return Ok(print_stdout(&limits_help()));
    }
    let mut loaded = LoadedConfig::load(&arguments.flags, arguments.config.as_deref())?;
    loaded.config.journal.accept_loss = arguments.accept_loss;
    if arguments.check {
        return Ok(check::run(&loaded));
    }
    if let Some(contradiction) = loaded.contradictions().into_iter().next() {
        return Err(contradiction.into());
    }
    if arguments.print_config {
        return Ok(print_stdout(&loaded.to_toml()));
    }
    serve(&loaded.config, &arguments.log, None)?;
    Ok(ExitStatus::Success)
}

/// Runs the hub until it is stopped. A hub inside a listener does not print what it does and does not handle signals; its
/// owner does both.
fn serve(config: &Config, log_args: &LogArgs, owner: Option<HubOwner>) -> Result<(), String> {
    let is_owned = owner.is_some();
    let print_status = |text: &str| {
        if !is_owned {
            print_stderr(text);
        }
    };
    if let Some(problem) = check::exposure_problems(config).into_iter().next() {
        return Err(problem);
    }
    let trusted_proxies = parse_trusted_proxies(config)?;
    let agent_manifests = agent_manifests::load(config)?;
    let tls = load_tls(config)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let permitted_connections = descriptors::raise_limit();
    let runtime = build_runtime(config.threads)?;
    // The addresses are bound before anything is written to the data folder, so that a second hub, started by mistake, changes
    // nothing there.
    let (listener, internal_listener, grpc_listener, otlp_listener, unix_socket) =
        runtime.block_on(async {
            let bind_optional = async |address: Option<SocketAddr>| match address {
                Some(address) => bind_tcp(address).await.map(Some),
                None => Ok(None),
            };
            let grpc_listener = bind_optional(config.grpc_listen).await?;
            let otlp_listener = bind_optional(config.otlp_listen).await?;
            Ok::<_, String>((
                bind_tcp(config.listen).await?,
                bind_optional(internal_address(config)).await?,
                grpc_listener,
                otlp_listener,
                bind_unix_socket(config)?,
            ))
        })?;
    let keeps_data_folder = !config.memory && !config.cluster;
    let warnings = [
        descriptors::describe_shortage(config),
        keeps_data_folder.then(|| check::data_folder_problem(&config.data)).flatten(),
    ];
    for warning in warnings.into_iter().flatten() {
        print_status(&format!("warning: {warning}"));
    }
    // A signal that arrives just after a node has joined must not be lost.
    let early_signals = config.cluster.then(|| {
        let _guard = runtime.enter();
        wait_for_signal([SignalKind::terminate(), SignalKind::interrupt()])
    });
    let listener = listener.into_std().map_err(|error| describe_io_error(&error))?;
    let internal_listener = internal_listener.map(tokio::net::TcpListener::into_std).transpose();
    let internal_listener = internal_listener.map_err(|error| describe_io_error(&error))?;
    let Some(ClusterStart {
        tokens: shared_tokens,
        signing_key: shared_key,
        mut token_changes,
        part: mut cluster_part,
    }) = cluster_start::join(config, &listener, internal_listener, tls.clone())?
    else {
        return Ok(());
    };
    let (auth_policy, tokens, _temporary_token_file) = match shared_tokens {
        Some(tokens) if !config.open => (AuthPolicy::Tokens(tokens), None, None),
        _ => load_auth_policy(config)?,
    };
    let telemetry = log_args.start_log()?;
    let OpenedJournals { journals, map, status, ownership } = match cluster_part.shards() {
        Some((shards, status)) => OpenedJournals::of_cluster(shards, status),
        None => shard_journals::open(config)?,
    };
    if let Some(status) = status {
        print_status(&status);
    }
    let address = listener.local_addr().map_err(|error| describe_io_error(&error))?;
    let manifest = manifest::manifest_json(&enabled_transports(config));
    let signing_key = match shared_key {
        Some(key) => key,
        None => manifest::open_key((!config.memory).then_some(config.data.as_path()), print_status)?,
    };
    let signed = manifest::sign(&manifest, &signing_key)?;
    let factory = Arc::new(CoreFactory {
        shards: Shard::all_of(map),
        telemetry: telemetry.clone(),
        limits: shard_limits(config, map.count()),
        language: config.language.clone(),
        origin: own_origin(config, address),
        signed_manifest: signed.clone(),
        manifests: agent_manifests,
    });
    let cores = (0..).zip(journals).map(|(shard, journal)| factory.create(shard, journal));
    let cores = cores.collect::<Result<Vec<_>, _>>()?;
    let browser_sessions = open_browser_sessions(config)?;
    let result = runtime.block_on(async {
        let mut reloader = Reloader::new();
        reloader.tokens = tokens;
        reloader.tls = tls.clone().zip(tls_files(config));
        let listener =
            tokio::net::TcpListener::from_std(listener).map_err(|error| describe_io_error(&error))?;
        let hub = match cluster_part.start_hub(config, &factory)? {
            Some(hub) => hub,
            None => HubHandle::start_shards(cores, config.fanout, wire::unix_now, telemetry.clone())
                .map_err(|error| describe_io_error(&error))?,
        };
        let hub = hub.with_receipt_key(signing_key);
        let hosts = allowed_hosts(config, address);
        let limits = wire::ServerLimits {
            connections: config.wire.connections.min(permitted_connections),
            ..config.wire
        };
        let only_user = if config.personal { Some(current_uid()?) } else { None };
        let otlp_receiver = match otlp_listener {
            Some(listener) => {
                let policy = otlp::copy_policy(&auth_policy);
                let receiver =
                    otlp::OtlpReceiver::new(listener, &hub, config, policy, &limits, tls.clone(), only_user)?;
                Some(receiver)
            }
            None => None,
        };
        let otlp_server = otlp_receiver.as_ref().map(otlp::OtlpReceiver::server);
        let mut server =
            Server::new(hub.clone(), auth_policy, limits, hosts, manifest).with_proxy(config.behind_proxy);
        if config.compat {
            print_stderr("warning: --compat lets clients listen and answer without a handshake, as AAEP's published packages do;");
            print_stderr("warning: use it only to try those packages on this machine");
        }
        if config.compat || config.demo_agent {
            let demo_agent = demo::start(&hub, config.demo)?;
            if config.compat {
                let agent = demo_agent.clone();
                server = server.with_compat(Box::new(move |text, user| {
                    let agent = agent.clone();
                    Box::pin(async move { agent.start_session(text, user, None).await })
                }));
            }
            server = demo_agent.register(server);
        }
        server = page_assets::register(server, config.compat || config.demo_agent);
        let server = server.with_only_user(only_user);
        let server = cluster_part.register(server);
        let server = Arc::new(server.with_signed_manifest(signed).with_browser_sessions(browser_sessions).with_trusted_proxies(trusted_proxies).with_tls(tls));
        server.sync_tokens_to_hub().await;
        let (ready_sender, owner_stop) = owner.map(|owner| (owner.ready, owner.stop)).unzip();
        // Signals are caught from here on, before the hub reports that it is ready.
        let signals = early_signals.or_else(|| owner_stop.is_none().then(|| wait_for_signal([SignalKind::terminate(), SignalKind::interrupt()])));
        let stop_signal = async {
            match (owner_stop, signals) {
                // The owner may also just disappear, which drops the sender.
                (Some(stop), _) => drop(stop.await),
                (None, Some(signals)) => signals.await,
                (None, None) => std::future::pending().await,
            }
        };
        // A backup of a database is made with the tools of the database.
        let has_file = !config.memory && config.database.is_none();
        let control_socket = if has_file { control::bind(&config.data) } else { None };
        if let Some((_, path)) = &unix_socket {
            print_status(&format!("listening on {}", path.display()));
        }
        if let Some(listener) = &grpc_listener {
            let address = listener.local_addr().map_err(|error| describe_io_error(&error))?;
            let scheme = if config.tls_cert.is_some() { "grpcs" } else { "grpc" };
            print_status(&format!("listening on {scheme}://{address}"));
        }
        print_status(&format!("listening on {scheme}://{address}"));
        notify_service_manager(&[NotifyState::Ready]);
        if let Some(ready) = ready_sender {
            let _ = ready.send(address);
        }
        log_args::log_started(&enabled_transports(config).join(","), &storage_name(config));
        let heartbeats = async {
            let mut interval = tokio::time::interval(config.heartbeat);
            loop {
                interval.tick().await;
                hub.send_heartbeats();
            }
        };
        let telemetry_ticks = async {
            let mut interval = tokio::time::interval(Duration::from_secs(1));
            loop {
                interval.tick().await;
                telemetry.tick();
            }
        };
        let unix_connections = async {
            match unix_socket {
                Some((socket, _)) => server.clone().serve_unix(socket).await,
                None => std::future::pending().await,
            }
        };
        let grpc_connections = async {
            match grpc_listener {
                #[cfg(feature = "grpc")]
                Some(listener) => server.clone().serve_grpc(listener).await,
                _ => std::future::pending().await,
            }
        };
        let stdio_connection = async {
            if config.stdio {
                server.serve_stdio().await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let control_connections = async {
            match control_socket {
                Some(socket) => control::serve(&socket, &hub, config.backup_timeout).await,
                None => std::future::pending().await,
            }
        };
        let otlp_connections = async {
            match otlp_receiver {
                Some(receiver) => receiver.run().await,
                None => std::future::pending().await,
            }
        };
        let reloadable = otlp::HubAndReceiver { hub: &server, receiver: otlp_server.clone() };
        // The shards are given away as after a signal. Otherwise, nothing more can be written.
        let (end_sender, lost) = tokio::sync::oneshot::channel();
        let stop_requested = async {
            let given_away = async {
                let end = tokio::select! {
                    end = ownership.ended() => end,
                    end = cluster_part.run() => end,
                };
                match end {
                    OwnershipEnd::GivenAway => print_status("an operator has asked this node to stop"),
                    OwnershipEnd::Lost(error) => {
                        let _ = end_sender.send(error);
                        std::future::pending::<()>().await;
                    }
                }
            };
            tokio::select! {
                () = stop_signal => {}
                () = given_away => {}
            }
            notify_service_manager(&[NotifyState::Stopping]);
            // A load balancer notices that the node is not ready before the node stops accepting connections.
            let stop_signals = [SignalKind::terminate(), SignalKind::interrupt()];
            let second_signal = config.cluster.then(|| wait_for_signal(stop_signals));
            let end_delay = async {
                match second_signal {
                    Some(signal) => signal.await,
                    None => std::future::pending().await,
                }
            };
            cluster_part.drain(config.drain_delay, end_delay).await;
        };
        let lost = async {
            match lost.await {
                Ok(error) => error,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::pin!(stdio_connection);
        let mut result = Ok(());
        let is_requested = tokio::select! {
            error = lost => {
                result = Err(error);
                false
            }
            () = server.clone().serve(listener) => false,
            () = unix_connections => false,
            () = grpc_connections => false,
            () = otlp_connections => false,
            () = control_connections => false,
            () = &mut stdio_connection => false,
            () = heartbeats => false,
            () = telemetry_ticks => false,
            () = reloader.run(&reloadable) => true,
            () = token_changes.follow(&reloadable) => true,
            () = stop_requested => true,
        };
        if is_requested {
            if let Some(server) = &otlp_server {
                server.service.end_all().await;
            }
            // The stdio connection itself tells its listener about the shutdown. After that, the other listeners must
            // still be informed.
            let stdio_shutdown = async { stdio_connection.await; std::future::pending().await };
            tokio::select! {
                () = hub.announce_shutdown(SHUTDOWN_TIMEOUT) => {}
                () = stdio_shutdown => {}
            }
        }
        cluster_part.leave().await;
        result
    });
    // The hub's thread may still run, but it can no longer write.
    ownership.release();
    match result {
        Ok(()) => log_args::log_stopping(&telemetry),
        // Startup failed, so there is no stop to log.
        Err(_) => telemetry.close(),
    }
    // Without this, shutdown would wait for the thread that reads standard input.
    runtime.shutdown_background();
    result
}

/// Returns the allowed values of the `Host` header.
fn allowed_hosts(config: &Config, address: SocketAddr) -> Vec<String> {
    let mut hosts = config.host.clone();
    hosts.push(address.to_string());
    // Another user can serve `[::1]` if the hub serves 127.0.0.1, and `localhost` can be either, so a personal hub has one
    // name only.
    if address.ip().is_loopback() && !config.personal {
        hosts.push(format!("localhost:{}", address.port()));
    }
    hosts
}

/// Returns the limits of one shard. The limit on the size of the journals holds for all shards together.
fn shard_limits(config: &Config, shards: u16) -> hub::HubLimits {
    let max_wait_ms = i64::try_from(config.wire.max_reply_wait.as_millis()).unwrap_or(i64::MAX);
    let max_bytes = config.hub.retention.max_bytes.map(|max| max / u64::from(shards));
    hub::HubLimits {
        max_wait_ms,
        retention: journal::Retention { max_bytes, ..config.hub.retention },
        ..config.hub
    }
}

/// Tells the service manager about a change of state, if it started the hub with `NOTIFY_SOCKET` (`Type=notify` in a
/// systemd unit).
fn notify_service_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        print_stderr(&format!("warning: cannot notify the service manager: {}", describe_io_error(&error)));
    }
}

/// Returns the help of all limits.
fn limits_help() -> String {
    let mut command = crate::Arguments::command();
    let Some(serve) = command.find_subcommand_mut("serve") else { return String::new() };
    let mut serve = std::mem::take(serve)
        .mut_args(|arg| {
            let is_limit = arg.get_help_heading() == Some(LIMITS_HEADING);
            arg.hide(!is_limit)
        })
        .disable_help_flag(true)
        .help_template("{all-args}\n");
    serve.render_help().to_string()
}

/// Returns the files for TLS, if it is configured.
fn tls_files(config: &Config) -> Option<TlsFiles> {
    let (certificate, key) = config.tls_cert.clone().zip(config.tls_key.clone())?;
    Some(TlsFiles { certificate, key, client_authorities: config.tls_client_ca.clone() })
}

/// Loads the TLS certificate and its key.
fn load_tls(config: &Config) -> Result<Option<Tls>, String> {
    tls_files(config).map(|files| Tls::load(&files)).transpose().map_err(|error| error.to_string())
}

/// Parses the networks of the trusted proxies. A single address counts as a network.
fn parse_trusted_proxies(config: &Config) -> Result<Vec<IpNet>, String> {
    let parse = |text: &String| {
        let address =
            || text.parse::<std::net::IpAddr>().ok().map(|address| IpNet::from(address.to_canonical()));
        text.parse().ok().or_else(address).ok_or_else(|| {
            format!("http.trusted_proxies: {text:?} is not an address or a network such as 10.0.0.0/8")
        })
    };
    config.trusted_proxies.iter().map(parse).collect()
}

/// Loads the key for browser sessions, so that browsers stay signed in after a restart. With `--memory` and in a cluster the
/// key is temporary, because the sign-outs of another node are not known.
fn open_browser_sessions(config: &Config) -> Result<BrowserSessions, String> {
    if config.memory || config.cluster {
        return Ok(BrowserSessions::new(&mut SystemRandom));
    }
    BrowserSessions::load_or_create(&config.data, &mut SystemRandom).map_err(|error| error.to_string())
}

/// Returns the hub's origin, or `None` if the hub listens on all interfaces and no host name is configured.
fn own_origin(config: &Config, address: SocketAddr) -> Option<String> {
    let scheme = if config.tls_cert.is_some() || config.behind_proxy { "https" } else { "http" };
    let own_address = (!address.ip().is_unspecified()).then(|| address.to_string());
    let host = config.host.first().cloned().or(own_address)?;
    Some(format!("{scheme}://{host}"))
}

/// Returns where the node of a cluster listens for the other nodes, or `None` without a cluster.
fn internal_address(config: &Config) -> Option<SocketAddr> {
    let default = SocketAddr::new(config.listen.ip(), 0);
    config.cluster.then(|| config.cluster_listen.unwrap_or(default))
}

fn current_uid() -> Result<u32, String> {
    client::current_uid().map_err(|error| describe_io_error(&error))
}

async fn bind_tcp(address: SocketAddr) -> Result<tokio::net::TcpListener, String> {
    tokio::net::TcpListener::bind(address).await.map_err(|error| listen_error(address, &error))
}

/// Binds the Unix socket. Returns it with its path.
fn bind_unix_socket(config: &Config) -> Result<Option<(UnixSocket, PathBuf)>, String> {
    let Some(path) = &config.unix else { return Ok(None) };
    let path = if path.as_os_str() == DEFAULT_SOCKET_KEYWORD { default_socket_path()? } else { path.clone() };
    let socket = UnixSocket::bind_locked(&path)
        .map_err(|error| format!("cannot listen on {}: {}", path.display(), describe_io_error(&error)))?;
    Ok(Some((socket, path)))
}

fn create_data_dir(path: &Path) -> Result<(), String> {
    file::create_private_dir(path)
        .map_err(|error| format!("cannot create {}: {}", path.display(), describe_io_error(&error)))
}

fn listen_error(address: SocketAddr, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        ErrorKind::AddrInUse => {
            "; is a hub already running there? use --listen to choose another address; port 0 picks a free port"
        }
        ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
        _ => "",
    };
    format!("cannot listen on {address}: {}{hint}", describe_io_error(error))
}

/// Loads the authentication policy, and returns it with the path of the token file. The first start creates an admin token
/// in a file, which is temporary if the hub is in memory.
fn load_auth_policy(
    config: &Config,
) -> Result<(AuthPolicy, Option<PathBuf>, Option<TemporaryTokenFile>), String> {
    if config.personal {
        return Ok((AuthPolicy::Open, None, None));
    }
    if config.open {
        print_stderr("warning: --open lets every program on this machine act as an agent or a listener");
        return Ok((AuthPolicy::Open, None, None));
    }
    if config.memory && config.tokens.is_none() {
        let (tokens, file) = first_token::create_temporary()?;
        return Ok((AuthPolicy::Tokens(tokens), None, Some(file)));
    }
    let path = if let Some(path) = &config.tokens {
        path.clone()
    } else {
        create_data_dir(&config.data)?;
        config.data.join("tokens")
    };
    if config.tokens.is_none() && !path.exists() {
        first_token::create(&config.data, &path)?;
    }
    let tokens = Tokens::load(&path).map_err(|error| error.to_string())?;
    Ok((AuthPolicy::Tokens(tokens), Some(path), None))
}

fn storage_name(config: &Config) -> String {
    match &config.database {
        _ if config.memory => "memory".to_owned(),
        Some(address) => address.to_string(),
        None => config.data.display().to_string(),
    }
}

/// Returns the enabled transports, by their names in a manifest.
fn enabled_transports(config: &Config) -> Vec<&'static str> {
    let transports = [
        ("sse", true),
        ("websocket", true),
        ("unix-socket", config.unix.is_some()),
        ("stdio-jsonrpc", config.stdio),
        ("grpc", config.grpc_listen.is_some()),
    ];
    transports.into_iter().filter(|(_, is_enabled)| *is_enabled).map(|(name, _)| name).collect()
}
