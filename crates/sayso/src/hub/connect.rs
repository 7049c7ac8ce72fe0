//! A hub elsewhere.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Hub, Settings, settings, speak};
use crate::desk::{Orders, gone};
use crate::error::Error;
use crate::line::client::{Address, Client};

/// The way to a `sayso serve`, before it is gone.
///
/// ```
/// # testing::example!({
/// # let serving = sayso::Hub::embedded().listen("127.0.0.1:0").open()?;
/// # let url = format!("http://{}", serving.address().unwrap());
/// // Like `http://127.0.0.1:8787`, where `sayso serve` listens.
/// let hub = sayso::Hub::connect(url).open().await?;
/// # hub.close().await;
/// # });
/// ```
#[must_use = "it is connected when it is opened"]
pub struct RemoteHubBuilder {
    url: String,
    token: Option<String>,
    trust: Option<PathBuf>,
    patience: Duration,
    settings: Settings,
}

impl RemoteHubBuilder {
    pub(super) fn new(url: String) -> Self {
        let patience = Duration::from_secs(30);
        Self { url, token: None, trust: None, patience, settings: Settings::default() }
    }

    setters! {
        /// The token that `sayso token new --role agent` made.
        token(token: impl Into<String>) => token = Some(token.into());

        /// Trusts an `https://` hub by the certificates of this file in PEM, and by no others; if nothing is said, by those that the
        /// system trusts.
        trust(file: impl Into<PathBuf>) => trust = Some(file.into());

        /// For how long it is tried to reach a hub that does not answer, now and after a lost connection; 30 seconds if nothing
        /// is said.
        patience(patience: Duration) => patience = patience;
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

settings!(RemoteHubBuilder);

debug_tuple!(RemoteHubBuilder, url);
