//! `sayso serve`: the hub.

mod config;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aaep::event::Producer;
use aaep::json::Writer;
use hub::{Core, Role, Scope};
use journal::{Journal, Memory, Sqlite};
use seal::{Random, SystemRandom};
use wire::auth::{NewToken, Tokens};
use wire::{Bridge, Door, Server, UnixSocket};

use crate::Outcome;
use crate::print::{in_words, print, tell};
use crate::watching::{self, Watching};
use config::{Config, Flags, Loaded};

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

/// Listeners are told that it stops; who does not take it in that time goes untold.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.list_keys {
        return print(&config::list());
    }
    let loaded = match Loaded::new(&arguments.flags, arguments.config.as_deref()) {
        Ok(loaded) => loaded,
        Err(why) => {
            tell(&format!("sayso: {why}"));
            return Outcome::Failed;
        }
    };
    if arguments.print_config {
        return print(&loaded.print());
    }
    match serve(&loaded.config, &arguments.watching) {
        Ok(()) => Outcome::Good,
        Err(why) => {
            tell(&format!("sayso: {why}"));
            Outcome::Failed
        }
    }
}

fn serve(config: &Config, watching: &Watching) -> Result<(), String> {
    if config.open && !config.listen.ip().is_loopback() {
        return Err("--open lets everybody in, so it is for loopback only".to_owned());
    }
    let door = door(config)?;
    let observe = watching.start()?;
    let journal = observe.journal(journal(config)?);
    let core = Core::new(
        journal,
        Producer::new("sayso-hub"),
        config.hub,
        |bytes: &mut [u8]| SystemRandom.fill(bytes),
        wire::clock(),
    )
    .map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.threads)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(config.listen)
            .await
            .map_err(|error| format!("cannot listen on {}: {error}", config.listen))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let bridge = Bridge::start_watched(core, config.fanout, wire::clock, observe.clone())
            .map_err(|error| error.to_string())?;
        let mut hosts = config.host.clone();
        hosts.push(address.to_string());
        if address.ip().is_loopback() {
            hosts
                .extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
        }
        let server = Arc::new(Server::new(bridge.clone(), door, config.wire, hosts, manifest(config)));
        let unix = unix(config)?;
        tell(&format!("listening on http://{address}"));
        watching::started(&observe, &wires(config).join(","), &kept(config));
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
        tokio::select! {
            () = server.clone().serve(listener) => {}
            () = neighbours => {}
            () = parent => {}
            () = beats => {}
            () = watch => {}
            () = stopped() => bridge.goodbye(FAREWELL).await,
        }
        Ok(())
    });
    watching::stopping(&observe);
    // A thread that waits for standard input would be waited for otherwise.
    runtime.shutdown_background();
    served
}

fn unix(config: &Config) -> Result<Option<UnixSocket>, String> {
    let Some(path) = &config.unix else { return Ok(None) };
    let socket = UnixSocket::bind(path)
        .map_err(|error| format!("cannot listen on {}: {}", path.display(), in_words(&error)))?;
    tell(&format!("listening on {}", path.display()));
    Ok(Some(socket))
}

/// The person or the system says that it is enough.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        _ => std::future::pending().await,
    }
}

fn journal(config: &Config) -> Result<Box<dyn Journal>, String> {
    if config.memory {
        return Ok(Box::new(Memory::default()));
    }
    make_folder(&config.data)?;
    let path = config.data.join("journal.sqlite");
    let sqlite =
        Sqlite::open(&path, &config.journal).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(sqlite))
}

fn make_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

/// Who is let in. The first start makes a token and says how to use it.
fn door(config: &Config) -> Result<Door, String> {
    if config.open {
        tell("warning: --open lets every program on this machine speak, hear and answer");
        return Ok(Door::Open);
    }
    let admin =
        || NewToken { name: "admin".to_owned(), role: Role::Admin, agent_id: None, scope: Scope::default() };
    if config.memory && config.tokens.is_none() {
        let mut tokens = Tokens::default();
        let (token, _) = tokens.add(&admin(), &mut SystemRandom).map_err(|error| error.to_string())?;
        tell(&format!("token, shown this once: {token}"));
        return Ok(Door::Tokens(tokens));
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
    Tokens::load(&path).map(Door::Tokens).map_err(|error| error.to_string())
}

fn manifest(config: &Config) -> String {
    let transports = transports(config);
    let mut writer = Writer::default();
    writer.open_object();
    writer.key("@context");
    writer.text("https://aaep-protocol.org/context/v1");
    writer.key("type");
    writer.text("aaep:producer.manifest");
    writer.key("agent_id");
    writer.text("sayso-hub");
    writer.key("agent_version");
    writer.text(env!("CARGO_PKG_VERSION"));
    for (name, list) in [
        ("aaep_versions_supported", r#"["1.0.0"]"#),
        ("conformance_levels_supported", "[1,2,3]"),
        ("transports_supported", &transports),
        ("event_types_emitted", r#"["aaep:agent.*"]"#),
        ("extensions_supported", r#"["urn:sayso:context:v1"]"#),
    ] {
        writer.key(name);
        writer.raw(list);
    }
    writer.close_object();
    writer.finish()
}

/// The wires that are open, as a manifest lists them.
fn transports(config: &Config) -> String {
    let names: Vec<_> = wires(config).iter().map(|name| format!("{name:?}")).collect();
    format!("[{}]", names.join(","))
}

/// Where what is kept is.
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
