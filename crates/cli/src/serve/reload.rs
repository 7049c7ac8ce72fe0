//! Reloading on SIGHUP: the token file, and the TLS certificate with its key. If a file is unreadable or invalid, the old
//! values stay in force.

use std::io::IsTerminal;
use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::auth::Tokens;
use wire::telemetry::log_record;
use wire::{Server, Tls};

/// What to reload, and from where.
pub(super) struct Reloader {
    signals: Option<Signal>,
    /// Which of stdin, stdout and stderr were terminals at the start.
    initial_terminals: [bool; 3],
    pub(super) tokens: Option<PathBuf>,
    /// The certificate in use, and the files of the certificate and its key.
    pub(super) tls: Option<(Tls, PathBuf, PathBuf)>,
}

impl Reloader {
    /// Registers for SIGHUP. Signals are caught from this call on. Must be called within a runtime.
    pub(super) fn new() -> Self {
        Self {
            signals: signal(SignalKind::hangup()).ok(),
            initial_terminals: standard_streams_are_terminals(),
            tokens: None,
            tls: None,
        }
    }

    /// Reloads at every SIGHUP. Returns if a SIGHUP was sent because the terminal was closed. The caller must then stop the hub.
    pub(super) async fn run(mut self, server: &Server) {
        let Some(mut signals) = self.signals.take() else { return std::future::pending().await };
        while signals.recv().await.is_some() {
            if self
                .initial_terminals
                .iter()
                .zip(standard_streams_are_terminals())
                .any(|(before, now)| *before && !now)
            {
                return;
            }
            self.reload_all(server).await;
        }
        std::future::pending::<()>().await;
    }

    async fn reload_all(&self, server: &Server) {
        if self.tokens.is_none() && self.tls.is_none() {
            log_record::reloaded_nothing("nothing", "this hub has no token file and no certificate");
        }
        if let Some(path) = self.tokens.clone() {
            match read_blocking(move || Tokens::load(&path)).await {
                Ok(tokens) => {
                    let changed = server.replace_tokens(tokens).await;
                    let log_result = if changed.total == 0 {
                        log_record::reloaded_no_tokens
                    } else {
                        log_record::reloaded_tokens
                    };
                    log_result("tokens", changed.total, changed.added, changed.removed);
                }
                Err(why) => report_failure("tokens", &why),
            }
        }
        if let Some((in_use, certificate, key)) = &self.tls {
            let (certificate, key) = (certificate.clone(), key.clone());
            match read_blocking(move || Tls::load(&certificate, &key)).await {
                Ok(tls) => {
                    in_use.replace(&tls);
                    log_record::reloaded("certificate");
                }
                Err(why) => report_failure("certificate", &why),
            }
        }
    }
}

/// Reads on a thread where blocking is allowed.
async fn read_blocking<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
    read: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    let result = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    result.map_err(|error| error.to_string())
}

fn report_failure(what: &'static str, why: &str) {
    log_record::reload_failed(what, why, "the previous version stays in force");
}

/// Returns which of stdin, stdout and stderr are terminals. A stream that was a terminal and no longer is one has lost its
/// terminal.
fn standard_streams_are_terminals() -> [bool; 3] {
    [std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal()]
}
