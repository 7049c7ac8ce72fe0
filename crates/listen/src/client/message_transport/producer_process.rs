//! A producer that the listener starts itself, as a child process (§B.6.4).

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::line_reader::{Line, LineReader};
use super::{MessageConnection, MessageReader, MessageWriter, stdio};
use crate::client::{ConnectionError, ConnectionEvent, ConnectionLoss};
use crate::sanitize;

/// Maximum length of a line on a producer's standard error, in bytes.
const MAX_DIAGNOSTIC_BYTES: usize = 64 * 1024;
/// How long a producer may take to exit after its input was closed. After that, it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to read the standard error of a producer that has exited. Its own child processes may keep it open.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// The command line of a producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::client) struct ProducerCommand {
    pub(in crate::client) program: OsString,
    pub(in crate::client) arguments: Vec<OsString>,
}

/// A running producer. Dropping it kills the process.
#[derive(Debug)]
pub(in crate::client) struct ProducerProcess {
    child: Child,
    diagnostics: Option<JoinHandle<()>>,
}

impl ProducerProcess {
    /// Starts the producer. Its standard error is passed on as diagnostics and never read as AAEP (§B.6.5).
    pub(super) fn start(
        command: &ProducerCommand,
        events: &mpsc::Sender<ConnectionEvent>,
    ) -> Result<(Self, MessageConnection), ConnectionLoss> {
        let mut process = Command::new(&command.program);
        process.args(&command.arguments).kill_on_drop(true);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Its own process group, so that Ctrl-C reaches only the listener, which then ends the producer properly.
        #[cfg(unix)]
        process.process_group(0);
        let unreachable = |error: std::io::Error| ConnectionLoss::Unreachable(error.into());
        let mut child = process.spawn().map_err(unreachable)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ConnectionLoss::Unreachable(ConnectionError::ConnectionReset));
        };
        let stderr = child.stderr.take();
        let diagnostics = stderr.map(|stderr| tokio::spawn(report_diagnostics(stderr, events.clone())));
        let connection = MessageConnection {
            reader: MessageReader::Stdio(stdio::Reader::new(output)),
            writer: MessageWriter::Stdio(stdio::Writer::new(input)),
        };
        Ok((Self { child, diagnostics }, connection))
    }

    /// Waits until the producer has exited, after its input was closed. Returns `None` if it had to be killed.
    pub(in crate::client) async fn finish(mut self) -> Option<ExitStatus> {
        let status = timeout(EXIT_TIMEOUT, self.child.wait()).await.ok().and_then(Result::ok);
        if status.is_none() {
            let _ = self.child.kill().await;
        }
        if let Some(mut diagnostics) = self.diagnostics.take()
            && timeout(STDERR_TIMEOUT, &mut diagnostics).await.is_err()
        {
            diagnostics.abort();
        }
        status
    }
}

async fn report_diagnostics(stderr: ChildStderr, events: mpsc::Sender<ConnectionEvent>) {
    let mut lines = LineReader::new(stderr, MAX_DIAGNOSTIC_BYTES);
    loop {
        let text = match lines.next().await {
            Ok(Line::Text(line)) => sanitize(&line, true),
            Ok(Line::TooLong) => format!("(a line of more than {MAX_DIAGNOSTIC_BYTES} bytes)"),
            Ok(Line::End) | Err(_) => return,
        };
        if events.send(ConnectionEvent::Diagnostic(text)).await.is_err() {
            return;
        }
    }
}
