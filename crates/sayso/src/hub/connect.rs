//! A hub elsewhere.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Hub, Settings, speak};
use crate::desk::{Orders, gone};
use crate::error::Error;
use crate::line::client::{Address, Client};
use crate::redact::Redact;

/// The way to a `sayso serve`, before it is gone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let serving = sayso::Hub::embedded().listen("127.0.0.1:0").open()?;
/// # let url = format!("http://{}", serving.address().unwrap());
/// // Like `http://127.0.0.1:8787`, where `sayso serve` listens.
/// let hub = sayso::Hub::connect(url).open().await?;
/// # hub.close().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "it is connected when it is opened"]
pub struct Connect {
    url: String,
    token: Option<String>,
    trust: Option<PathBuf>,
    patience: Duration,
    settings: Settings,
}

impl Connect {
    pub(super) fn new(url: String) -> Self {
        let patience = Duration::from_secs(30);
        Self { url, token: None, trust: None, patience, settings: Settings::default() }
    }

    /// The token that `sayso token new --role agent` made.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Trusts an `https://` hub by the certificates of this file in PEM, and by no others; if nothing is said, by those that the
    /// system trusts.
    pub fn trust(mut self, file: impl Into<PathBuf>) -> Self {
        self.trust = Some(file.into());
        self
    }

    /// For how long it is tried to reach a hub that does not answer, now and after a lost connection; 30 seconds if nothing
    /// is said.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// What people call the agent; they hear it, instead of the agent's id.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// The language of all that is said, as a tag; `en` if nothing is said.
    pub fn language(mut self, tag: impl Into<String>) -> Self {
        self.settings.language = tag.into();
        self
    }

    /// Takes secrets out by this instead of [`Secrets`](crate::Secrets).
    pub fn redact(mut self, redact: impl Redact + 'static) -> Self {
        self.settings.redact = Arc::new(redact);
        self
    }

    /// Connects.
    pub async fn open(self) -> Result<Hub, Error> {
        let address = Address::new(&self.url, self.token.as_deref(), self.trust.as_deref(), self.patience)?;
        let (orders, inbox) = Orders::channel();
        let (tell, connected) = oneshot::channel();
        speak(&orders, inbox, move || async move {
            match Client::connect(address).await {
                Ok(line) => {
                    let _ = tell.send(Ok(()));
                    Some(line)
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    None
                }
            }
        })?;
        connected.await.unwrap_or_else(|_| Err(gone()))?;
        Ok(Hub::new(orders, self.settings, None))
    }
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connect").field(&self.url).finish()
    }
}
