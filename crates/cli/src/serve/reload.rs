//! What a hub reads again when it is told to (SIGHUP): the tokens, and the certificate with its key. What cannot be read, or is
//! wrong, leaves in force what was.

use std::io::IsTerminal;
use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::auth::Tokens;
use wire::observe::record;
use wire::{Server, Tls};

/// Where things are read again from.
pub(super) struct Reload {
    signals: Option<Signal>,
    terminals: [bool; 3],
    pub(super) tokens: Option<PathBuf>,
    /// What is shown to those who connect, and the files of the certificate and its key.
    pub(super) tls: Option<(Tls, PathBuf, PathBuf)>,
}

impl Reload {
    /// SIGHUP is heeded from this call on; it must be made within a runtime.
    pub(super) fn new() -> Self {
        Self { signals: signal(SignalKind::hangup()).ok(), terminals: terminals(), tokens: None, tls: None }
    }

    /// Reads again whenever it is told to. Ends when that was the terminal's last word, which is a wish to stop.
    pub(super) async fn run(mut self, server: &Server) {
        let Some(mut signals) = self.signals.take() else { return std::future::pending().await };
        while signals.recv().await.is_some() {
            if self.terminals.iter().zip(terminals()).any(|(before, now)| *before && !now) {
                return;
            }
            self.again(server).await;
        }
        std::future::pending::<()>().await;
    }

    async fn again(&self, server: &Server) {
        if self.tokens.is_none() && self.tls.is_none() {
            record::reloaded_nothing("nothing", "this hub has no file of tokens and no certificate");
        }
        if let Some(path) = self.tokens.clone() {
            match read(move || Tokens::load(&path)).await {
                Ok(tokens) => {
                    let changed = server.know(tokens).await;
                    let line =
                        if changed.known == 0 { record::reloaded_no_tokens } else { record::reloaded_tokens };
                    line("tokens", changed.known, changed.added, changed.removed);
                }
                Err(why) => failed("tokens", &why),
            }
        }
        if let Some((shown, certificate, key)) = &self.tls {
            let (certificate, key) = (certificate.clone(), key.clone());
            match read(move || Tls::load(&certificate, &key)).await {
                Ok(tls) => {
                    shown.replace(&tls);
                    record::reloaded("certificate");
                }
                Err(why) => failed("certificate", &why),
            }
        }
    }
}

/// Reads where nobody waits for it.
async fn read<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
    read: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    done.map_err(|error| error.to_string())
}

fn failed(what: &'static str, why: &str) {
    record::reload_failed(what, why, "what was read before stays in force");
}

/// Which of input, output and error are terminals. One that was and is no more has been closed.
fn terminals() -> [bool; 3] {
    [std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal()]
}
