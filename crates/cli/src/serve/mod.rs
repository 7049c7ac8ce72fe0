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
use journal::{Journal, Memory, Sqlite};
use seal::{Random, SystemRandom};
use tokio::signal::unix::SignalKind;
use wire::auth::{NewToken, Passes, Tokens};
use wire::{Bridge, Door, Server, Tls, UnixSocket};

use crate::file::Stop;
use crate::print::{in_words, print, tell};
use crate::watching::{self, Watching};
use crate::way::{runtime, wait_for_signal};
use crate::{Outcome, demo, file, page};
use config::{Config, Flags, Loaded};
use reload::Reload;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// The file of settings; sayso.toml in the data folder if not said and there. Also SAYSO_CONFIG.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints the configuration in force as TOML, with where each value came from, and ends.
    #[arg(long)]
    print_config: bool,
    /// Prints the table of all keys, as the documentation has it, and ends.
    #[arg(long, hide = true)]
    list_keys: bool,
    #[command(flatten)]
    watching: Watching,
}

/// Instead of a path: where those who listen look for it.
const USUAL: &str = "usual";

/// Listeners are told that it stops; who does not take it in that time goes untold.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    if arguments.list_keys {
        return Ok(print(&config::list()));
    }
    let loaded = Loaded::new(&arguments.flags, arguments.config.as_deref())?;
    if arguments.print_config {
        return Ok(print(&loaded.print()));
    }
    serve(&loaded.config, &arguments.watching)?;
    Ok(Outcome::Good)
}

fn serve(config: &Config, watching: &Watching) -> Result<(), String> {
    if config.open && !config.listen.ip().is_loopback() {
        return Err("--open lets everybody in, so it is for loopback only".to_owned());
    }
    if config.compat && !config.listen.ip().is_loopback() {
        return Err("--compat takes answers without a handshake, so it is for loopback only".to_owned());
    }
    let tls = tls(config)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let (door, tokens) = door(config)?;
    let observe = watching.start()?;
    let journal = observe.journal(journal(config)?);
    let longest_wait = i64::try_from(config.wire.longest_wait.as_millis()).unwrap_or(i64::MAX);
    let mut core = Core::new(
        journal,
        Producer::new(manifest::AGENT_ID),
        hub::Limits { longest_wait, ..config.hub },
        |bytes: &mut [u8]| SystemRandom.fill(bytes),
        wire::clock(),
    )
    .map_err(|error| error.to_string())?;
    // The demo's assistant lives in this process; what an earlier one left has nobody.
    core.orphan(demo::AGENT, wire::clock());
    let manifest = manifest::text(&wires(config));
    let signed = manifest::sign(&manifest, (!config.memory).then_some(config.data.as_path()))?;
    let passes = passes(config)?;
    let runtime = runtime(config.threads)?;
    let served = runtime.block_on(async {
        let mut reload = Reload::new();
        reload.tokens = tokens;
        reload.tls = tls.clone().zip(config.tls_cert.clone().zip(config.tls_key.clone())).map(|(tls, (cert, key))| (tls, cert, key));
        let listener = tokio::net::TcpListener::bind(config.listen)
            .await
            .map_err(|error| cannot_listen(config.listen, &error))?;
        let address = listener.local_addr().map_err(|error| in_words(&error))?;
        core.publish_manifest(manifest_uri(config, scheme, address), signed.clone());
        let bridge = Bridge::start_watched(core, config.fanout, wire::clock, observe.clone())
            .map_err(|error| in_words(&error))?;
        let mut hosts = config.host.clone();
        hosts.push(address.to_string());
        if address.ip().is_loopback() {
            hosts
                .extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
        }
        let mut server = Server::new(bridge.clone(), door, config.wire, hosts, manifest);
        if config.compat {
            tell("warning: --compat lets clients hear and answer that never asked to, as AAEP's own packages do;");
            tell("warning: it is for trying those out on this machine, and for nothing else");
        }
        if config.compat || config.demo_agent {
            let assistant = demo::start(&bridge, config.demo)?;
            if config.compat {
                let asked = assistant.clone();
                server = server.with_compat(Box::new(move |text, user| {
                    let asked = asked.clone();
                    Box::pin(async move { asked.ask(text, user, None).await })
                }));
            }
            server = assistant.on(server);
        }
        server = server.with_assets(page::assets(config.compat || config.demo_agent));
        let server = Arc::new(server.with_signed_manifest(signed).with_passes(passes).with_tls(tls));
        server.open_door().await;
        let stopped = wait_for_signal([SignalKind::terminate(), SignalKind::interrupt()]);
        let unix = unix(config)?;
        tell(&format!("listening on {scheme}://{address}"));
        watching::started(&wires(config).join(","), &kept(config));
        let beats = async {
            let mut every = tokio::time::interval(config.heartbeat);
            loop {
                every.tick().await;
                bridge.heartbeat();
            }
        };
        let watch = async {
            let mut every = tokio::time::interval(Duration::from_secs(1));
            loop {
                every.tick().await;
                observe.tick();
            }
        };
        let neighbours = async {
            match unix {
                Some(socket) => server.clone().serve_unix(socket).await,
                None => std::future::pending().await,
            }
        };
        let parent = async {
            if config.stdio {
                server.serve_stdio().await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let enough = async {
            tokio::select! {
                () = stopped => {}
                () = reload.run(&server) => {}
            }
        };
        tokio::pin!(parent);
        tokio::select! {
            () = server.clone().serve(listener) => {}
            () = neighbours => {}
            () = &mut parent => {}
            () = beats => {}
            () = watch => {}
            () = enough => {
                // The parent is told by its own future; that it is gone, or has heard enough, is no reason to hurry.
                let told = async { parent.await; std::future::pending().await };
                tokio::select! {
                    () = bridge.goodbye(FAREWELL) => {}
                    () = told => {}
                }
            }
        }
        Ok(())
    });
    match served {
        Ok(()) => watching::stopping(&observe),
        // What never began does not end.
        Err(_) => observe.close(),
    }
    // A thread that waits for standard input would be waited for otherwise.
    runtime.shutdown_background();
    served
}

/// Without TLS, whoever is on the way to another machine can read along and speak in another's name.
fn tls(config: &Config) -> Result<Option<Tls>, String> {
    if let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) {
        return Tls::load(certificate, key).map(Some).map_err(|error| error.to_string());
    }
    if !config.listen.ip().is_loopback() {
        tell("warning: without TLS, tokens and all that is said travel in the clear to other machines;");
        tell("warning: use --tls-cert and --tls-key, or listen on loopback behind somebody who has TLS");
    }
    Ok(None)
}

/// Browsers stay signed in over a restart, unless everything is in memory.
fn passes(config: &Config) -> Result<Passes, String> {
    if config.memory {
        return Ok(Passes::new(&mut SystemRandom));
    }
    Passes::kept(&config.data, &mut SystemRandom).map_err(|error| error.to_string())
}

/// Where the manifest is; nothing if nobody could reach the hub under the address that it listens on.
fn manifest_uri(config: &Config, scheme: &str, address: SocketAddr) -> Option<String> {
    let own = (!address.ip().is_unspecified()).then(|| address.to_string());
    let host = config.host.first().cloned().or(own)?;
    Some(format!("{scheme}://{host}/.well-known/aaep-manifest.json"))
}

fn unix(config: &Config) -> Result<Option<UnixSocket>, String> {
    let Some(path) = &config.unix else { return Ok(None) };
    let path = &if path.as_os_str() == USUAL {
        let usual = UnixSocket::usual_path(manifest::AGENT_ID);
        usual.map_err(|error| format!("no place for a Unix socket: {}", in_words(&error)))?
    } else {
        path.clone()
    };
    let socket = UnixSocket::bind(path)
        .map_err(|error| format!("cannot listen on {}: {}", path.display(), in_words(&error)))?;
    tell(&format!("listening on {}", path.display()));
    Ok(Some(socket))
}

fn journal(config: &Config) -> Result<Box<dyn Journal>, String> {
    if config.memory {
        return Ok(Box::new(Memory::default()));
    }
    make_folder(&config.data)?;
    let path = config.data.join("journal.sqlite");
    let sqlite =
        Sqlite::open(&path, &config.journal).map_err(|error| format!("{}: {error}", path.display()))?;
    // As SQLite itself says it is, on the connection that will write.
    let settings = sqlite.settings().map_err(|error| error.to_string())?;
    let durable = settings.iter().filter(|(name, _)| ["journal_mode", "synchronous"].contains(name));
    let said: Vec<_> = durable.map(|(name, value)| format!("{name}={value}")).collect();
    tell(&format!("journal {}: {}", path.display(), said.join(" ")));
    Ok(Box::new(sqlite))
}

fn make_folder(path: &Path) -> Result<(), String> {
    file::make_folder(path).map_err(|error| format!("cannot make {}: {}", path.display(), in_words(&error)))
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> String {
    let more = match error.kind() {
        ErrorKind::AddrInUse => "; is a hub running there? --listen names another, port 0 any that is free",
        ErrorKind::PermissionDenied => "; ports below 1024 are not for everybody",
        _ => "",
    };
    format!("cannot listen on {address}: {}{more}", in_words(error))
}

/// Who is let in, and the file that says so. The first start makes a token and says how to use it.
fn door(config: &Config) -> Result<(Door, Option<PathBuf>), String> {
    if config.open {
        tell("warning: --open lets every program on this machine speak, hear and answer");
        return Ok((Door::Open, None));
    }
    let admin =
        || NewToken { name: "admin".to_owned(), role: Role::Admin, agent_id: None, scope: Scope::default() };
    if config.memory && config.tokens.is_none() {
        let mut tokens = Tokens::default();
        let (token, _) = tokens.add(&admin(), &mut SystemRandom).map_err(|error| error.to_string())?;
        tell(&format!("token, shown this once: {token}"));
        return Ok((Door::Tokens(tokens), None));
    }
    let path = if let Some(path) = &config.tokens {
        path.clone()
    } else {
        make_folder(&config.data)?;
        config.data.join("tokens")
    };
    if config.tokens.is_none() && !path.exists() {
        let token = Tokens::append(&path, &admin(), &mut SystemRandom).map_err(|error| error.to_string())?;
        tell(&format!("a token was made, shown this once: {token}"));
        tell(&format!(
            "make more with: sayso token new --tokens {} --role listener --name NAME",
            path.display()
        ));
    }
    let tokens = Tokens::load(&path).map_err(|error| error.to_string())?;
    Ok((Door::Tokens(tokens), Some(path)))
}

fn kept(config: &Config) -> String {
    if config.memory { "memory".to_owned() } else { config.data.display().to_string() }
}

/// The wires that are open, by their names in a manifest.
fn wires(config: &Config) -> Vec<&'static str> {
    let wires = [
        ("sse", true),
        ("websocket", true),
        ("unix-socket", config.unix.is_some()),
        ("stdio-jsonrpc", config.stdio),
    ];
    wires.into_iter().filter(|(_, open)| *open).map(|(name, _)| name).collect()
}
