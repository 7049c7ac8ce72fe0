//! Reloading on SIGHUP: the token file, the TLS certificate with its key, and further files of a server. If a file is unreadable or invalid, the old
//! values stay in force. If the cause is temporary, such as a lack of file descriptors, the hub tries again.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::auth::Tokens;
use wire::telemetry::{Telemetry, log_record};
use wire::{Tls, TlsFiles, TokenChanges};

/// Reloads the files of a server, from the configured paths.
pub(super) struct Reloader {
    signals: Option<Signal>,
    /// Which of stdin, stdout and stderr were terminals at the start.
    initial_terminals: [bool; 3],
    pub(super) tokens: Option<PathBuf>,
    /// The certificate in use, and its files.
    pub(super) tls: Option<(Tls, TlsFiles)>,
    tokens_status: ReloadStatus,
    tls_status: ReloadStatus,
    other_status: ReloadStatus,
}

/// A server whose tokens can be replaced.
pub(super) trait Reloadable {
    /// Reads the server's further files again. Returns what was read, for the log, or the reason why nothing has changed.
    /// `None` means that there are no such files.
    async fn reload_others(&self) -> Option<Result<&'static str, String>> {
        None
    }

    /// Replaces all tokens.
    async fn replace_tokens(&self, tokens: Tokens) -> TokenChanges;

    /// Returns the telemetry that records reloads.
    fn telemetry(&self) -> &Telemetry;
}

/// Time between two attempts to read a file after a temporary error.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

impl Reloader {
    /// Registers for SIGHUP. Signals are caught from this call on. Must be called within a runtime.
    pub(super) fn new() -> Self {
        Self {
            signals: signal(SignalKind::hangup()).ok(),
            initial_terminals: standard_streams_are_terminals(),
            tokens: None,
            tls: None,
            tokens_status: ReloadStatus::Current,
            tls_status: ReloadStatus::Current,
            other_status: ReloadStatus::Current,
        }
    }

    /// Reloads at every SIGHUP. Returns if a SIGHUP was sent because the terminal was closed. The caller must then stop the hub.
    pub(super) async fn run(mut self, server: &impl Reloadable) {
        let Some(mut signals) = self.signals.take() else { return std::future::pending().await };
        loop {
            let must_retry = [self.tokens_status, self.tls_status].contains(&ReloadStatus::Retrying);
            let is_retry = tokio::select! {
                signal = signals.recv() => {
                    if signal.is_none() {
                        return std::future::pending().await;
                    }
                    false
                }
                () = tokio::time::sleep(RETRY_INTERVAL), if must_retry => true,
            };
            if is_retry {
                self.reload(server, is_retry).await;
                continue;
            }
            if self
                .initial_terminals
                .iter()
                .zip(standard_streams_are_terminals())
                .any(|(before, now)| *before && !now)
            {
                return;
            }
            let since = NotifyState::monotonic_usec_now();
            super::notify_service_manager(
                &[NotifyState::Reloading].into_iter().chain(since).collect::<Vec<_>>(),
            );
            self.reload(server, is_retry).await;
            super::notify_service_manager(&[NotifyState::Ready]);
        }
    }

    /// Reloads everything, or only what must be retried.
    async fn reload(&mut self, server: &impl Reloadable, is_retry: bool) {
        let others = if is_retry { None } else { server.reload_others().await };
        if self.tokens.is_none() && self.tls.is_none() && others.is_none() {
            log_record::reloaded_nothing("nothing", "this hub has no token file and no certificate");
        }
        if !is_retry || self.tokens_status == ReloadStatus::Retrying {
            self.tokens_status = self.reload_tokens(server, is_retry).await;
        }
        if !is_retry || self.tls_status == ReloadStatus::Retrying {
            self.tls_status = self.reload_tls(is_retry).await;
        }
        match others {
            Some(Ok(what)) => {
                log_record::reloaded(what);
                self.other_status = ReloadStatus::Current;
            }
            Some(Err(reason)) => {
                let error = ReloadError { reason, is_transient: false };
                self.other_status = error.report("policy", is_retry);
            }
            None => {}
        }
        let statuses = [self.tokens_status, self.tls_status, self.other_status];
        let has_failed = statuses != [ReloadStatus::Current; 3];
        server.telemetry().record_reload(has_failed);
    }

    async fn reload_tokens(&self, server: &impl Reloadable, is_retry: bool) -> ReloadStatus {
        let Some(path) = self.tokens.clone() else { return ReloadStatus::Current };
        match read_blocking(move || Tokens::load(&path)).await {
            Ok(tokens) => {
                let changed = server.replace_tokens(tokens).await;
                let log_result = if changed.total == 0 {
                    log_record::reloaded_no_tokens
                } else {
                    log_record::reloaded_tokens
                };
                log_result("tokens", changed.total, changed.added, changed.removed);
                ReloadStatus::Current
            }
            Err(error) => error.report("tokens", is_retry),
        }
    }

    async fn reload_tls(&self, is_retry: bool) -> ReloadStatus {
        let Some((in_use, files)) = &self.tls else { return ReloadStatus::Current };
        let files = files.clone();
        match read_blocking(move || Tls::load(&files)).await {
            Ok(tls) => {
                in_use.replace(&tls);
                log_record::reloaded("certificate");
                ReloadStatus::Current
            }
            Err(error) => error.report("certificate", is_retry),
        }
    }
}

/// Whether the hub uses the current version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadStatus {
    Current,
    /// The file is invalid. The next SIGHUP reads it again.
    Failed,
    /// A temporary error occurred. The hub reads the file again until this succeeds.
    Retrying,
}

/// Why a file was not reloaded.
struct ReloadError {
    reason: String,
    /// Whether the cause is temporary, such as a lack of file descriptors. The file itself may be valid.
    is_transient: bool,
}

impl ReloadError {
    /// Logs the error. If a retry fails because of a temporary error, this is not logged again.
    fn report(&self, what: &'static str, is_retry: bool) -> ReloadStatus {
        let (consequence, status) = if self.is_transient {
            ("the previous version stays in force; the hub tries again every second", ReloadStatus::Retrying)
        } else {
            ("the previous version stays in force", ReloadStatus::Failed)
        };
        if !is_retry || status != ReloadStatus::Retrying {
            log_record::reload_failed(what, &self.reason, consequence);
        }
        status
    }
}

/// Reads on a thread where blocking is allowed.
async fn read_blocking<T: Send + 'static, E: std::error::Error + Send + 'static>(
    read: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, ReloadError> {
    let result = tokio::task::spawn_blocking(read).await;
    let result = result.map_err(|error| ReloadError { reason: error.to_string(), is_transient: true })?;
    result.map_err(|error| ReloadError { is_transient: is_transient(&error), reason: error.to_string() })
}

/// Returns whether the cause of an error is temporary: a lack of file descriptors or memory, or an I/O error.
fn is_transient(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let system_error = causes.find_map(|cause| cause.downcast_ref::<std::io::Error>()?.raw_os_error());
    let transient = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::IO];
    system_error.is_some_and(|code| transient.contains(&Errno::from_raw_os_error(code)))
}

/// Returns which of stdin, stdout and stderr are terminals. A stream that was a terminal and no longer is one has lost its
/// terminal.
fn standard_streams_are_terminals() -> [bool; 3] {
    [std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal()]
}
