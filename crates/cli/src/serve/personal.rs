//! The personal hub inside `sayso listen`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::config::LoadedConfig;
use super::{check, serve};
use crate::hub_args::default_socket_path;
use crate::log_args::LogArgs;
use crate::output::describe_io_error;

/// The channels between a hub and the listener in whose process it runs.
pub(super) struct HubOwner {
    /// Receives the address of the hub's page when the hub accepts connections.
    pub(super) ready: mpsc::Sender<SocketAddr>,
    /// Completes when the hub must stop.
    pub(super) stop: oneshot::Receiver<()>,
}

/// The hub of the current user.
pub(crate) enum PersonalHub {
    /// It runs in another process.
    Joined {
        /// Its Unix socket.
        socket: PathBuf,
    },
    /// It runs in this process.
    Started {
        /// Its Unix socket.
        socket: PathBuf,
        /// The address of its page.
        page: SocketAddr,
        stop: oneshot::Sender<()>,
        thread: JoinHandle<Result<(), String>>,
    },
}

impl PersonalHub {
    /// Joins the hub of the current user. Starts it if none runs.
    pub(crate) fn join_or_start() -> Result<Self, String> {
        let socket = default_socket_path()?;
        if is_served(&socket)? {
            return Ok(Self::Joined { socket });
        }
        match start(&socket) {
            // Another listener may have started it at the same time.
            Err(_) if is_served(&socket)? => Ok(Self::Joined { socket }),
            result => result,
        }
    }

    /// Returns the hub's Unix socket.
    pub(crate) fn socket(&self) -> &Path {
        match self {
            Self::Joined { socket } | Self::Started { socket, .. } => socket,
        }
    }

    /// Returns the address of the page, if the hub runs in this process.
    pub(crate) fn page(&self) -> Option<String> {
        match self {
            Self::Joined { .. } => None,
            Self::Started { page, .. } => Some(format!("http://{page}/")),
        }
    }

    /// Stops the hub if it runs in this process, and waits until it has informed its listeners and closed its journal.
    pub(crate) fn stop(self) {
        if let Self::Started { stop, thread, .. } = self {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

/// Fails if the personal hub does not run, and says how to start it.
pub(crate) fn check_running() -> Result<(), String> {
    if is_served(&default_socket_path()?)? {
        return Ok(());
    }
    Err("no hub: your personal hub does not run; start it with sayso listen, or use --hub URL".to_owned())
}

/// Returns whether a hub of the current user accepts connections on this socket.
fn is_served(socket: &Path) -> Result<bool, String> {
    let problem = |error: std::io::Error| format!("{}: {}", socket.display(), describe_io_error(&error));
    let Ok(stream) = std::os::unix::net::UnixStream::connect(socket) else { return Ok(false) };
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| problem(error.into()))?;
    if peer.uid.as_raw() == client::current_uid().map_err(problem)? {
        Ok(true)
    } else {
        Err(format!("{} belongs to another user", socket.display()))
    }
}

/// Starts the hub on a thread of its own, and waits until it accepts connections.
fn start(socket: &Path) -> Result<PersonalHub, String> {
    let loaded = LoadedConfig::load_personal()?;
    let problem = loaded.contradictions().into_iter().chain(check::exposure_problems(&loaded.config)).next();
    if let Some(problem) = problem {
        return Err(problem);
    }
    let (ready, is_ready) = mpsc::channel();
    let (stop, must_stop) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("personal hub".to_owned())
        .spawn(move || {
            let owner = HubOwner { ready, stop: must_stop };
            serve(&loaded.config, &LogArgs::errors_only(), Some(owner))
        })
        .map_err(|error| describe_io_error(&error))?;
    match is_ready.recv() {
        Ok(page) => Ok(PersonalHub::Started { socket: socket.to_owned(), page, stop, thread }),
        // The hub ended before it was ready.
        Err(_) => match thread.join() {
            Ok(Err(problem)) => Err(problem),
            _ => Err("the hub stopped while it was starting".to_owned()),
        },
    }
}
