//! The gate for the Agent Client Protocol (ACP): a proxy on standard input and output between an editor and an agent.
//!
//! - `lines`: every line passes byte for byte, whatever its size. The gate only looks at it.
//! - `message`: what the gate reads in a line.
//! - `proxy`: the two ends. It alone writes lines of its own: a listener's answer to the agent, and the dismissal of the
//!   editor's dialog.
//! - `permission_table`: who answered first.
//! - `narrator`, `session_driver`: the sessions at the hub.
//! - `bound_call`, `wording`: what a person is asked, and what an answer covers.
//!
//! Nothing between editor and agent waits for the hub. If the hub is missing or fails, the editor's dialog remains, and no request
//! is ever answered in its place.

mod bound_call;
mod lines;
mod message;
mod narrator;
mod permission_table;
mod proxy;
mod queue;
mod session_driver;
mod wording;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::time::timeout;

use crate::child_process::{CaughtSignals, ChildProcess, StartError};
use narrator::Narration;
use proxy::Proxy;
use session_driver::AcpSessionEnd;

/// How long the gate reads the rest of the agent's output after the agent has exited. Processes that it left behind may hold the
/// pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The size of the read buffers, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// The options of the gate.
#[derive(Clone, Debug)]
pub struct AcpOptions {
    /// The address of the hub.
    pub hub_url: String,
    /// The token, if the hub needs one.
    pub token: Option<String>,
    /// A PEM file with the only certificates to trust.
    pub ca_file: Option<PathBuf>,
    /// Whether the agent's thoughts are narrated.
    pub narrates_thoughts: bool,
    /// The agent's program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The command that runs [`crate::child_process::watch`], to which the group's id is appended.
    pub guard_command: Vec<OsString>,
}

/// Runs the gate between the standard streams of this process and the agent. Returns the exit code of the agent.
pub async fn run(options: AcpOptions) -> Result<u8, StartError> {
    // From here on no signal ends the gate without its agent.
    let signals = CaughtSignals::catch();
    let (mut child, stdin, stdout) =
        ChildProcess::start(&options.program, &options.arguments, &options.guard_command)?;
    let failed = |source| StartError { program: options.program.clone(), source };
    let stdin = tokio::process::ChildStdin::from_std(stdin).map_err(failed)?;
    let stdout = tokio::process::ChildStdout::from_std(stdout).map_err(failed)?;
    let signals = signals.forward_until_end(child.group());
    let options = Arc::new(options);
    let (narrator, narrator_task, proxy) = narrator::spawn(options, || Arc::new(Proxy::new(stdin)));
    let editor_lines = {
        let (proxy, narrator) = (proxy.clone(), narrator.clone());
        let editor = BufReader::with_capacity(BUFFER_BYTES, tokio::io::stdin());
        tokio::spawn(async move { proxy.pass_editor_lines(editor, &narrator).await })
    };
    let mut agent_lines = {
        let (proxy, narrator) = (proxy.clone(), narrator.clone());
        let agent = BufReader::with_capacity(BUFFER_BYTES, stdout);
        tokio::spawn(async move { proxy.pass_agent_lines(agent, &narrator).await })
    };
    let (mut is_editor_gone, mut status) = (false, None);
    tokio::select! {
        exited = child.wait() => status = Some(exited),
        // The agent closed its output, or the editor no longer reads it.
        _ = &mut agent_lines => {}
        _ = editor_lines => is_editor_gone = true,
        () = signals => is_editor_gone = true,
    }
    proxy.leave_all_to_editor();
    proxy.close_agent_input().await;
    let code = child.stop(status).await;
    if !agent_lines.is_finished() {
        let _ = timeout(DRAIN_TIMEOUT, &mut agent_lines).await;
    }
    let end = if is_editor_gone { AcpSessionEnd::Editor } else { AcpSessionEnd::AgentExited(code) };
    narrator.send(Narration::Shutdown(end));
    let _ = timeout(narrator::FLUSH_TIMEOUT * 2, narrator_task).await;
    Ok(code)
}
