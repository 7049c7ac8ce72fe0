//! `sayso serve`: the hub.

mod manifest;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aaep::event::Producer;
use hub::delivery::LaneLimits;
use hub::{Core, Role, Scope};
use journal::{Journal, Memory, Settings, Sqlite};
use seal::{Random, SystemRandom};
use wire::auth::{NewToken, Passes, Tokens};
use wire::{Bridge, Door, Limits, Server, Tls, UnixSocket};

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
    /// The certificate for TLS, with those above it: a file of PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key: a file of PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
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
    let tls = tls(arguments)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let door = door(arguments)?;
    let observe = arguments.watching.start()?;
    let journal = observe.journal(journal(arguments)?);
    let mut core = Core::new(
        journal,
        Producer::new(manifest::AGENT_ID),
        hub::Limits::default(),
        |bytes: &mut [u8]| SystemRandom.fill(bytes),
        wire::clock(),
    )
    .map_err(|error| error.to_string())?;
    let manifest = manifest::text(&wires(arguments));
    let signed = manifest::sign(&manifest, (!arguments.memory).then_some(arguments.data.as_path()))?;
    let passes = passes(arguments)?;
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
        core.publish_manifest(manifest_uri(arguments, scheme, address), signed.clone());
        let bridge = Bridge::start_watched(core, LaneLimits::default(), wire::clock, observe.clone())
            .map_err(|error| error.to_string())?;
        let mut hosts = arguments.host.clone();
        hosts.push(address.to_string());
        if address.ip().is_loopback() {
            hosts
                .extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
        }
        let server = Server::new(bridge.clone(), door, Limits::default(), hosts, manifest);
        let server = Arc::new(server.with_signed_manifest(signed).with_passes(passes).with_tls(tls));
        let unix = unix(arguments)?;
        tell(&format!("listening on {scheme}://{address}"));
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
        tokio::pin!(parent);
        tokio::select! {
            () = server.clone().serve(listener) => {}
            () = neighbours => {}
            () = &mut parent => {}
            () = beats => {}
            () = watch => {}
            () = stopped() => {
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
    watching::stopping(&observe);
    // A thread that waits for standard input would be waited for otherwise.
    runtime.shutdown_background();
    served
}

/// Without TLS, whoever is on the way to another machine can read along and speak in another's name.
fn tls(arguments: &Arguments) -> Result<Option<Tls>, String> {
    if let (Some(certificate), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        return Tls::load(certificate, key).map(Some).map_err(|error| error.to_string());
    }
    if !arguments.listen.ip().is_loopback() {
        tell("warning: without TLS, tokens and all that is said travel in the clear to other machines;");
        tell("warning: use --tls-cert and --tls-key, or listen on loopback behind somebody who has TLS");
    }
    Ok(None)
}

/// Browsers stay signed in over a restart, unless everything is in memory.
fn passes(arguments: &Arguments) -> Result<Passes, String> {
    if arguments.memory {
        return Ok(Passes::new(&mut SystemRandom));
    }
    Passes::kept(&arguments.data, &mut SystemRandom).map_err(|error| error.to_string())
}

/// Where the manifest is; nothing if nobody could reach the hub under the address that it listens on.
fn manifest_uri(arguments: &Arguments, scheme: &str, address: SocketAddr) -> Option<String> {
    let own = (!address.ip().is_unspecified()).then(|| address.to_string());
    let host = arguments.host.first().cloned().or(own)?;
    Some(format!("{scheme}://{host}/.well-known/aaep-manifest.json"))
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
    // As SQLite itself says it is, on the connection that will write.
    let settings = sqlite.settings().map_err(|error| error.to_string())?;
    let durable = settings.iter().filter(|(name, _)| ["journal_mode", "synchronous"].contains(name));
    let said: Vec<_> = durable.map(|(name, value)| format!("{name}={value}")).collect();
    tell(&format!("journal {}: {}", path.display(), said.join(" ")));
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
