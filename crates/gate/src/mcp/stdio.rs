//! Runs the gate: starts the server, passes lines on, forwards signals and returns the server's exit code.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use client::{HttpClient, Url};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::gate_core::{Effect, GateCore};
use super::http::{HttpServer, HttpSink};
use super::hub_link::HubLink;
use super::limits::{MAX_HTTP_REQUESTS, MAX_LINE_BYTES};
use super::lines::{Line, read_line, read_next_part};
use super::narrator::Narrator;
use super::outbox::Outbox;
use super::pins::PinFile;
use super::shared::GateShared;
use super::tools::Tools;
use super::{GateOptions, ServerTarget};
use crate::child_process::{CaughtSignals, ChildProcess, StartError, TERM_GRACE, exit_code};

/// Size of the buffers for reading, in bytes.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// How long the gate waits for the rest of the server's output after the server has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the gate tries to tell the hub that it ends.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the gate checks whether a host that closed its end still reads.
const HOST_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Why the gate could not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum McpError {
    /// The server cannot be started.
    #[error("cannot start {}: {}", .0, seal::describe_io_error(.1))]
    Start(String, #[source] io::Error),
    /// Standard input or output cannot be used, or a thread cannot be started.
    #[error("{}", seal::describe_io_error(.0))]
    Io(#[from] io::Error),
}

/// Runs the gate until the server has ended. Returns the server's exit code.
pub fn run(options: GateOptions) -> Result<u8, McpError> {
    match options.target.clone() {
        ServerTarget::Command(program, arguments) => run_command(options, &program, &arguments),
        ServerTarget::Url(url, token) => run_url(options, url, token.as_deref()),
    }
}

/// The parts of the gate that both kinds of servers share.
struct Gate {
    shared: Arc<GateShared>,
    narrator: Narrator,
    effects: mpsc::UnboundedReceiver<Effect>,
    host_output: OwnedFd,
    host_end: oneshot::Receiver<()>,
}

impl Gate {
    /// Starts to read what the host sends.
    fn start(options: GateOptions, to_server: Outbox) -> Result<Self, McpError> {
        let GateOptions { name, trust, hub, elicit, .. } = options;
        let host_input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let host_output = io::stdout().as_fd().try_clone_to_owned()?;
        let pin_file = PinFile::find(&name);
        let pins = pin_file.as_ref().map_or_else(|| Some(std::collections::HashMap::new()), PinFile::read);
        let core = GateCore::new(name.clone(), Tools::new(trust, pins), elicit);
        let to_host = Outbox::new(Box::new(File::from(host_output.try_clone()?)));
        let (shared, effects) = GateShared::new(core, to_server, to_host);
        let narrator = Narrator::new(Arc::clone(&shared), HubLink::new(hub, name), pin_file);
        let (host_ended, host_end) = oneshot::channel();
        spawn_thread("host", {
            let shared = Arc::clone(&shared);
            move || {
                pump_host(&shared, host_input);
                let _ = host_ended.send(());
            }
        })?;
        Ok(Self { shared, narrator, effects, host_output, host_end })
    }
}

fn run_command(options: GateOptions, program: &OsString, arguments: &[OsString]) -> Result<u8, McpError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // From here on no signal ends the gate without its server.
    let signals = runtime.block_on(async { CaughtSignals::catch() });
    let start_error =
        |StartError { program, source }| McpError::Start(program.to_string_lossy().into_owned(), source);
    let (mut server, stdin, stdout) =
        ChildProcess::start(program, arguments, &options.guard_command).map_err(start_error)?;
    let group = server.group();
    let Gate { shared, narrator, effects, host_output, host_end } =
        Gate::start(options, Outbox::new(Box::new(stdin)))?;
    let (server_ended, server_end) = oneshot::channel();
    spawn_thread("server", {
        let shared = Arc::clone(&shared);
        move || {
            pump_server(&shared, stdout);
            let _ = server_ended.send(());
        }
    })?;

    let status = runtime.block_on(async {
        let (stop, stopped) = oneshot::channel::<()>();
        let narrating = tokio::spawn(narrator.run(effects, async {
            let _ = stopped.await;
        }));
        tokio::spawn(signals.forward(group));
        let status = wait_for_exit(&mut server, host_end, &host_output).await;
        // The server may have written its last answers just before it ended.
        if tokio::time::timeout(DRAIN_TIMEOUT, server_end).await.is_err() {
            // A process of the group keeps the pipe open.
            let _ = tokio::task::spawn_blocking(move || group.terminate()).await;
        }
        shared.run_in_background(GateCore::close).await;
        let _ = stop.send(());
        let _ = tokio::time::timeout(FAREWELL_TIMEOUT, narrating).await;
        status
    });
    group.terminate();
    server.dismiss_guard();
    // Threads may still wait for input; they end with the process.
    runtime.shutdown_background();
    Ok(status?)
}

/// Runs the gate for a server behind a URL, until the host closes its end. Returns 0, or 128 and the number of the signal that
/// ended the gate.
fn run_url(options: GateOptions, url: Url, token: Option<&str>) -> Result<u8, McpError> {
    let mut client = HttpClient::new(url);
    if let Some(token) = token {
        client = client.with_token(token).map_err(|error| McpError::Io(io::Error::other(error)))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = runtime.block_on(async { CaughtSignals::catch() });
    let (lines, receiver) = mpsc::channel(MAX_HTTP_REQUESTS);
    let Gate { shared, narrator, effects, host_output, host_end } =
        Gate::start(options, Outbox::new(Box::new(HttpSink(lines))))?;
    let code = runtime.block_on(async {
        let (stop, stopped) = oneshot::channel::<()>();
        let narrating = tokio::spawn(narrator.run(effects, async {
            let _ = stopped.await;
        }));
        let server = Arc::new(HttpServer::new(client, Arc::clone(&shared)));
        let mut serving = tokio::spawn(Arc::clone(&server).run(receiver));
        let ended = async {
            let _ = host_end.await;
            // A host that still reads may wait for the last answers.
            while !is_reader_gone(&host_output) {
                if tokio::time::timeout(HOST_CHECK_INTERVAL, &mut serving).await.is_ok() {
                    return;
                }
            }
        };
        let code = tokio::select! {
            () = ended => 0,
            signal = signals.next() => u8::try_from(128 + signal.as_raw()).unwrap_or(1),
        };
        shared.run_in_background(GateCore::close).await;
        let _ = stop.send(());
        let _ = tokio::time::timeout(FAREWELL_TIMEOUT, narrating).await;
        server.end_session().await;
        code
    });
    runtime.shutdown_background();
    Ok(code)
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(format!("mcp-{name}")).spawn(work).map(drop)
}

/// Passes on what the host sends, until its end.
fn pump_host(shared: &GateShared, input: File) {
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, input);
    loop {
        match read_line(&mut reader, MAX_LINE_BYTES) {
            Ok(Line::Complete(line)) => shared.handle_host_line(line),
            Ok(Line::TooLong(_)) => {
                while read_next_part(&mut reader, &mut |_| {}) {}
                shared.run(|_, effects| GateCore::handle_too_long_host_line(effects));
            }
            Ok(Line::End) | Err(_) => break,
        }
    }
    shared.run(GateCore::close);
    shared.to_server.close();
}

/// Passes on what the server sends, until its end.
fn pump_server(shared: &GateShared, output: impl io::Read) {
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, output);
    loop {
        match read_line(&mut reader, MAX_LINE_BYTES) {
            Ok(Line::Complete(line)) => shared.handle_server_line(line),
            Ok(Line::TooLong(start)) => {
                shared.run(|core, _| core.handle_unread_server_line());
                let mut start = Some(start);
                shared.to_host.stream(|send| match start.take() {
                    Some(start) => {
                        send(&start);
                        true
                    }
                    None => read_next_part(&mut reader, send),
                });
            }
            Ok(Line::End) | Err(_) => return,
        }
    }
}

/// Waits until the server has exited. If the host is gone and the server does not notice, it is terminated.
async fn wait_for_exit(
    server: &mut ChildProcess,
    host_end: oneshot::Receiver<()>,
    host_output: &OwnedFd,
) -> io::Result<u8> {
    tokio::select! {
        status = server.wait() => return status.map(exit_code),
        _ = host_end => {}
    }
    // A host that still reads may wait for the last answers, as long as the server needs.
    while !is_reader_gone(host_output) {
        if let Ok(status) = tokio::time::timeout(HOST_CHECK_INTERVAL, server.wait()).await {
            return status.map(exit_code);
        }
    }
    if let Ok(status) = tokio::time::timeout(TERM_GRACE, server.wait()).await {
        return status.map(exit_code);
    }
    let group = server.group();
    let _ = tokio::task::spawn_blocking(move || group.terminate()).await;
    server.wait().await.map(exit_code)
}

/// Whether nobody reads the gate's output any more.
fn is_reader_gone(output: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(output, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok()
        && fds.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::NVAL))
}
