//! `sayso serve`: the hub.

mod config;
pub(crate) mod manifest;
mod reload;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aaep::event::Producer;
use hub::{Core, Role, Scope};
use journal::{Journal, MemoryJournal, SqliteJournal};
use seal::{Random, SystemRandom};
use tokio::signal::unix::SignalKind;
use wire::auth::{BrowserSessions, NewToken, Tokens};
use wire::{AuthPolicy, HubHandle, Server, Tls, UnixSocket};

use crate::file::CommandError;
use crate::hub_args::{build_runtime, wait_for_signal};
use crate::log_args::{self, LogArgs};
use crate::output::{describe_io_error, print_stderr, print_stdout};
use crate::{ExitStatus, demo, file, page_assets};
use config::{Config, ConfigFlags, LoadedConfig};
use reload::Reloader;

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
    /// Print the table of all keys as in docs/configuration.md, and exit.
    #[arg(long, hide = true)]
    list_keys: bool,
    #[command(flatten)]
    log: LogArgs,
}

/// The value of `--unix` that stands for the default socket path, where listeners look.
const DEFAULT_SOCKET_KEYWORD: &str = "usual";

/// Maximum time to tell listeners that the hub is shutting down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    if arguments.list_keys {
        return Ok(print_stdout(&config::key_table_markdown()));
    }
    let loaded = LoadedConfig::load(&arguments.flags, arguments.config.as_deref())?;
    if arguments.print_config {
        return Ok(print_stdout(&loaded.to_toml()));
    }
    serve(&loaded.config, &arguments.log)?;
    Ok(ExitStatus::Success)
}

fn serve(config: &Config, log_args: &LogArgs) -> Result<(), String> {
    if config.open && !config.listen.ip().is_loopback() {
        return Err(
            "--open accepts agents and listeners without a token, so it works on loopback only".to_owned()
        );
    }
    if config.compat && !config.listen.ip().is_loopback() {
        return Err("--compat accepts answers without a handshake, so it works on loopback only".to_owned());
    }
    let tls = load_tls(config)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let (auth_policy, tokens) = load_auth_policy(config)?;
    let telemetry = log_args.start_log()?;
    let journal = telemetry.instrument_journal(open_journal(config)?);
    let max_wait_ms = i64::try_from(config.wire.max_reply_wait.as_millis()).unwrap_or(i64::MAX);
    let mut core = Core::new(
        journal,
        Producer::new(manifest::AGENT_ID),
        hub::HubLimits { max_wait_ms, ..config.hub },
        |bytes: &mut [u8]| SystemRandom.fill(bytes),
        wire::unix_now(),
    )
    .map_err(|error| error.to_string())?;
    // The demo agent runs in this process, so its sessions from an earlier process no longer have an agent.
    core.orphan_sessions_of(demo::AGENT_ID, wire::unix_now());
    let manifest = manifest::manifest_json(&enabled_transports(config));
    let signed = manifest::sign(&manifest, (!config.memory).then_some(config.data.as_path()))?;
    let browser_sessions = open_browser_sessions(config)?;
    let runtime = build_runtime(config.threads)?;
    let result = runtime.block_on(async {
        let mut reloader = Reloader::new();
        reloader.tokens = tokens;
        reloader.tls = tls.clone().zip(config.tls_cert.clone().zip(config.tls_key.clone())).map(|(tls, (cert, key))| (tls, cert, key));
        let listener = tokio::net::TcpListener::bind(config.listen)
            .await
            .map_err(|error| listen_error(config.listen, &error))?;
        let address = listener.local_addr().map_err(|error| describe_io_error(&error))?;
        core.publish_manifest(manifest_uri(config, scheme, address), signed.clone());
        let hub = HubHandle::start_with_telemetry(core, config.fanout, wire::unix_now, telemetry.clone())
            .map_err(|error| describe_io_error(&error))?;
        let mut hosts = config.host.clone();
        hosts.push(address.to_string());
        if address.ip().is_loopback() {
            hosts
                .extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
        }
        let mut server = Server::new(hub.clone(), auth_policy, config.wire, hosts, manifest);
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
        server = server.with_assets(page_assets::assets(config.compat || config.demo_agent));
        let server = Arc::new(server.with_signed_manifest(signed).with_browser_sessions(browser_sessions).with_tls(tls));
        server.sync_tokens_to_hub().await;
        let stop_signal = wait_for_signal([SignalKind::terminate(), SignalKind::interrupt()]);
        let unix_socket = bind_unix_socket(config)?;
        print_stderr(&format!("listening on {scheme}://{address}"));
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
                Some(socket) => server.clone().serve_unix(socket).await,
                None => std::future::pending().await,
            }
        };
        let stdio_connection = async {
            if config.stdio {
                server.serve_stdio().await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let stop_requested = async {
            tokio::select! {
                () = stop_signal => {}
                () = reloader.run(&server) => {}
            }
        };
        tokio::pin!(stdio_connection);
        tokio::select! {
            () = server.clone().serve(listener) => {}
            () = unix_connections => {}
            () = &mut stdio_connection => {}
            () = heartbeats => {}
            () = telemetry_ticks => {}
            () = stop_requested => {
                // The stdio connection itself tells its listener about the shutdown. After that, it must not end this
                // `select!`, because the other listeners must also be told.
                let stdio_shutdown = async { stdio_connection.await; std::future::pending().await };
                tokio::select! {
                    () = hub.announce_shutdown(SHUTDOWN_TIMEOUT) => {}
                    () = stdio_shutdown => {}
                }
            }
        }
        Ok(())
    });
    match result {
        Ok(()) => log_args::log_stopping(&telemetry),
        // Startup failed, so there is no stop to log.
        Err(_) => telemetry.close(),
    }
    // Without this, shutdown would wait for the thread that reads standard input.
    runtime.shutdown_background();
    result
}

/// Loads the TLS certificate, or warns if other machines can connect without TLS.
fn load_tls(config: &Config) -> Result<Option<Tls>, String> {
    if let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) {
        return Tls::load(certificate, key).map(Some).map_err(|error| error.to_string());
    }
    if !config.listen.ip().is_loopback() {
        print_stderr("warning: without TLS, tokens and messages cross the network unencrypted;");
        print_stderr("warning: use --tls-cert and --tls-key, or listen on loopback behind a proxy with TLS");
    }
    Ok(None)
}

/// Loads the key for browser sessions, so that browsers stay signed in after a restart. With `--memory` the key is temporary.
fn open_browser_sessions(config: &Config) -> Result<BrowserSessions, String> {
    if config.memory {
        return Ok(BrowserSessions::new(&mut SystemRandom));
    }
    BrowserSessions::load_or_create(&config.data, &mut SystemRandom).map_err(|error| error.to_string())
}

/// Returns the URL of the manifest, or `None` if the hub's own address is unknown (it listens on all interfaces).
fn manifest_uri(config: &Config, scheme: &str, address: SocketAddr) -> Option<String> {
    let own_address = (!address.ip().is_unspecified()).then(|| address.to_string());
    let host = config.host.first().cloned().or(own_address)?;
    Some(format!("{scheme}://{host}/.well-known/aaep-manifest.json"))
}

fn bind_unix_socket(config: &Config) -> Result<Option<UnixSocket>, String> {
    let Some(path) = &config.unix else { return Ok(None) };
    let path = &if path.as_os_str() == DEFAULT_SOCKET_KEYWORD {
        let default_path = UnixSocket::default_path(manifest::AGENT_ID);
        default_path
            .map_err(|error| format!("no default path for a Unix socket: {}", describe_io_error(&error)))?
    } else {
        path.clone()
    };
    let socket = UnixSocket::bind(path)
        .map_err(|error| format!("cannot listen on {}: {}", path.display(), describe_io_error(&error)))?;
    print_stderr(&format!("listening on {}", path.display()));
    Ok(Some(socket))
}

fn open_journal(config: &Config) -> Result<Box<dyn Journal>, String> {
    if config.memory {
        return Ok(Box::new(MemoryJournal::default()));
    }
    create_data_dir(&config.data)?;
    let path = config.data.join("journal.sqlite");
    let sqlite = SqliteJournal::open(&path, &config.journal)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let settings = sqlite.effective_settings().map_err(|error| error.to_string())?;
    let durability_settings =
        settings.iter().filter(|(name, _)| ["journal_mode", "synchronous"].contains(name));
    let effective: Vec<_> = durability_settings.map(|(name, value)| format!("{name}={value}")).collect();
    print_stderr(&format!("journal {}: {}", path.display(), effective.join(" ")));
    Ok(Box::new(sqlite))
}

fn create_data_dir(path: &Path) -> Result<(), String> {
    file::create_private_dir(path)
        .map_err(|error| format!("cannot create {}: {}", path.display(), describe_io_error(&error)))
}

fn listen_error(address: SocketAddr, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        ErrorKind::AddrInUse => {
            "; is a hub already running there? --listen sets another address, and port 0 picks a free port"
        }
        ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
        _ => "",
    };
    format!("cannot listen on {address}: {}{hint}", describe_io_error(error))
}

/// Loads the authentication policy, and returns it with the path of the token file. The first start creates a token and
/// prints it.
fn load_auth_policy(config: &Config) -> Result<(AuthPolicy, Option<PathBuf>), String> {
    if config.open {
        print_stderr("warning: --open lets every program on this machine act as an agent or a listener");
        return Ok((AuthPolicy::Open, None));
    }
    let admin_token =
        || NewToken { name: "admin".to_owned(), role: Role::Admin, agent_id: None, scope: Scope::default() };
    if config.memory && config.tokens.is_none() {
        let mut tokens = Tokens::default();
        let (token, _) = tokens.add(&admin_token(), &mut SystemRandom).map_err(|error| error.to_string())?;
        print_stderr(&format!("token, shown this once: {token}"));
        return Ok((AuthPolicy::Tokens(tokens), None));
    }
    let path = if let Some(path) = &config.tokens {
        path.clone()
    } else {
        create_data_dir(&config.data)?;
        config.data.join("tokens")
    };
    if config.tokens.is_none() && !path.exists() {
        let token =
            Tokens::append(&path, &admin_token(), &mut SystemRandom).map_err(|error| error.to_string())?;
        print_stderr(&format!("created a token, shown this once: {token}"));
        print_stderr(&format!(
            "create more with: sayso token new --tokens {} --role listener --name NAME",
            path.display()
        ));
    }
    let tokens = Tokens::load(&path).map_err(|error| error.to_string())?;
    Ok((AuthPolicy::Tokens(tokens), Some(path)))
}

fn storage_name(config: &Config) -> String {
    if config.memory { "memory".to_owned() } else { config.data.display().to_string() }
}

/// Returns the enabled transports, by their names in a manifest.
fn enabled_transports(config: &Config) -> Vec<&'static str> {
    let transports = [
        ("sse", true),
        ("websocket", true),
        ("unix-socket", config.unix.is_some()),
        ("stdio-jsonrpc", config.stdio),
    ];
    transports.into_iter().filter(|(_, is_enabled)| *is_enabled).map(|(name, _)| name).collect()
}
