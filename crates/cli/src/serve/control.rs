//! The control socket in the data folder, through which `sayso backup` asks a hub or an ASP node to keep the journal file
//! unchanged.
//!
//! Only the user who runs the server can connect. The client and the server exchange lines:
//!
//! 1. The client sends `pause`. The server moves everything into the journal file and answers `paused`.
//! 2. The client copies the file, then sends `resume`. If the file has stayed unchanged, the server answers `resumed`.
//!
//! Any other answer is an error message. The pause also ends if the client disconnects or takes too long. Connections
//! are served one after another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hub::Principal;
use hub::command::{HubCommand, HubReply};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use wire::{HubHandle, UnixSocket};

use crate::output::{describe_io_error, print_stderr};

pub(crate) const PAUSE: &str = "pause";
pub(crate) const PAUSED: &str = "paused";
pub(crate) const RESUME: &str = "resume";
pub(crate) const RESUMED: &str = "resumed";

/// Maximum length of a line from a client.
const MAX_LINE_BYTES: u64 = 64;

/// Returns the path of the control socket.
pub(crate) fn socket_path(data: &Path) -> PathBuf {
    data.join("control.sock")
}

/// A server whose journal file can be kept unchanged while it is copied.
pub(super) trait PausableJournal {
    /// Begins or ends the pause.
    async fn set_paused(&self, is_paused: bool) -> Result<(), String>;
}

impl PausableJournal for HubHandle {
    async fn set_paused(&self, is_paused: bool) -> Result<(), String> {
        let command = if is_paused { HubCommand::PauseCheckpoints } else { HubCommand::ResumeCheckpoints };
        match self.ask(Principal::local(), command).await {
            HubReply::Done => Ok(()),
            HubReply::Unavailable(reason) => Err(reason.to_string()),
            _ => Err("the hub refused the command".to_owned()),
        }
    }
}

/// Creates the control socket. Without it the server works, but cannot be backed up while it runs.
pub(super) fn bind(data: &Path) -> Option<UnixSocket> {
    let path = socket_path(data);
    UnixSocket::bind(&path)
        .inspect_err(|error| {
            print_stderr(&format!(
                "warning: sayso backup will not work while this server runs: cannot listen on {}: {}",
                path.display(),
                describe_io_error(error)
            ));
        })
        .ok()
}

/// Serves the connections.
pub(super) async fn serve(socket: &UnixSocket, journal: &impl PausableJournal, time_limit: Duration) {
    loop {
        let Ok(stream) = socket.accept().await else { return std::future::pending().await };
        serve_backup(stream, journal, time_limit).await;
    }
}

/// Serves one client. Always ends the pause that it started.
async fn serve_backup(stream: UnixStream, journal: &impl PausableJournal, time_limit: Duration) {
    let mut stream = BufReader::new(stream);
    let deadline = tokio::time::Instant::now() + time_limit;
    if !expect_line(&mut stream, PAUSE, deadline).await {
        return;
    }
    let paused = journal.set_paused(true).await;
    let is_paused = paused.is_ok();
    send(&mut stream, paused.map(|()| PAUSED)).await;
    let is_complete = is_paused && expect_line(&mut stream, RESUME, deadline).await;
    let resumed = journal.set_paused(false).await;
    if is_complete {
        send(&mut stream, resumed.map(|()| RESUMED)).await;
    }
}

/// Returns whether the next line is `expected` and arrives in time.
async fn expect_line(
    stream: &mut BufReader<UnixStream>,
    expected: &str,
    deadline: tokio::time::Instant,
) -> bool {
    let mut line = String::new();
    let mut limited = stream.take(MAX_LINE_BYTES);
    let received = tokio::time::timeout_at(deadline, limited.read_line(&mut line)).await;
    matches!(received, Ok(Ok(_))) && line.strip_suffix('\n') == Some(expected)
}

async fn send(stream: &mut BufReader<UnixStream>, outcome: Result<&str, String>) {
    let line = match outcome {
        Ok(line) => format!("{line}\n"),
        Err(reason) => format!("{reason}\n"),
    };
    // If the client is gone, the pause ends anyway.
    let _ = stream.write_all(line.as_bytes()).await;
}
