//! `sayso serve`: the hub.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aaep::event::Producer;
use aaep::json::Writer;
use hub::delivery::LaneLimits;
use hub::{Core, Role, Scope};
use journal::{Journal, Memory, Settings, Sqlite};
use seal::{Random, SystemRandom};
use wire::auth::{NewToken, Tokens};
use wire::{Bridge, Door, Limits, Server, UnixSocket};

use crate::Outcome;
use crate::print::{in_words, tell};
use crate::watching::{self, Watching};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 picks one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// The folder for what is kept.
    #[arg(long, value_name = "DIR", default_value = "sayso-data", conflicts_with = "memory")]
    data: PathBuf,
    /// Keeps everything in memory: what is said is gone when the hub stops.
    #[arg(long)]
    memory: bool,
    /// The file of tokens; in the data folder if not said.
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    tokens: Option<PathBuf>,
    /// Lets everybody in, without a token. On loopback only.
    #[arg(long)]
    open: bool,
    /// Another host under which it may be addressed, with its port; give it once for each.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Also takes listeners on a Unix socket; only programs of the same user are heard.
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Also takes one listener on standard input and output, as JSON-RPC; ends when the input does.
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    watching: Watching,
}

/// Listeners are told that it stops; who does not take it in that time goes untold.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match serve(arguments) {
        Ok(()) => Outcome::Good,
        Err(why) => {
            tell(&format!("sayso: {why}"));
            Outcome::Failed
        }
    }
}

fn serve(arguments: &Arguments) -> Result<(), String> {
    if arguments.open && !arguments.listen.ip().is_loopback() {
        return Err("--open lets everybody in, so it is for loopback only".to_owned());
    }
    let door = door(arguments)?;
    let observe = arguments.watching.start()?;
    let journal = observe.journal(journal(arguments)?);
    let core = Core::new(
        journal,
        Producer::new("sayso-hub"),
        hub::Limits::default(),
        |bytes: &mut [u8]| SystemRandom.fill(bytes),
        wire::clock(),
    )
    .map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(arguments.listen)
            .await
            .map_err(|error| format!("cannot listen on {}: {error}", arguments.listen))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let bridge = Bridge::start_watched(core, LaneLimits::default(), wire::clock, observe.clone())
            .map_err(|error| error.to_string())?;
        let mut hosts = arguments.host.clone();
        hosts.push(address.to_string());
        if address.ip().is_loopback() {
            hosts
                .extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
        }
        let server =
            Arc::new(Server::new(bridge.clone(), door, Limits::default(), hosts, manifest(arguments)));
        let unix = unix(arguments)?;
        tell(&format!("listening on http://{address}"));
        watching::started(&observe, &wires(arguments).join(","), &kept(arguments));
        let beats = async {
            let mut every = tokio::time::interval(Duration::from_secs(15));
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
            if arguments.stdio {
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

fn unix(arguments: &Arguments) -> Result<Option<UnixSocket>, String> {
    let Some(path) = &arguments.unix else { return Ok(None) };
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

fn journal(arguments: &Arguments) -> Result<Box<dyn Journal>, String> {
    if arguments.memory {
        return Ok(Box::new(Memory::default()));
    }
    make_folder(&arguments.data)?;
    let path = arguments.data.join("journal.sqlite");
    let sqlite =
        Sqlite::open(&path, &Settings::default()).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::new(sqlite))
}

fn make_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

/// Who is let in. The first start makes a token and says how to use it.
fn door(arguments: &Arguments) -> Result<Door, String> {
    if arguments.open {
        tell("warning: --open lets every program on this machine speak, hear and answer");
        return Ok(Door::Open);
    }
    let admin =
        || NewToken { name: "admin".to_owned(), role: Role::Admin, agent_id: None, scope: Scope::default() };
    if arguments.memory && arguments.tokens.is_none() {
        let mut tokens = Tokens::default();
        let (token, _) = tokens.add(&admin(), &mut SystemRandom).map_err(|error| error.to_string())?;
        tell(&format!("token, shown this once: {token}"));
        return Ok(Door::Tokens(tokens));
    }
    let path = if let Some(path) = &arguments.tokens {
        path.clone()
    } else {
        make_folder(&arguments.data)?;
        arguments.data.join("tokens")
    };
    if arguments.tokens.is_none() && !path.exists() {
        let token = Tokens::append(&path, &admin(), &mut SystemRandom).map_err(|error| error.to_string())?;
        tell(&format!("a token was made, shown this once: {token}"));
        tell(&format!(
            "make more with: sayso token new --tokens {} --role listener --name NAME",
            path.display()
        ));
    }
    Tokens::load(&path).map(Door::Tokens).map_err(|error| error.to_string())
}

fn manifest(arguments: &Arguments) -> String {
    let transports = transports(arguments);
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
fn transports(arguments: &Arguments) -> String {
    let names: Vec<_> = wires(arguments).iter().map(|name| format!("{name:?}")).collect();
    format!("[{}]", names.join(","))
}

/// Where what is kept is.
fn kept(arguments: &Arguments) -> String {
    if arguments.memory { "memory".to_owned() } else { arguments.data.display().to_string() }
}

/// The wires that are open, by their names in a manifest.
fn wires(arguments: &Arguments) -> Vec<&'static str> {
    let wires = [
        ("sse", true),
        ("websocket", true),
        ("unix-socket", arguments.unix.is_some()),
        ("stdio-jsonrpc", arguments.stdio),
    ];
    wires.into_iter().filter(|(_, open)| *open).map(|(name, _)| name).collect()
}
