//! A connection to a hub in another process.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Hub, HubSettings, hub_settings_setters, spawn_dispatcher};
use crate::dispatcher::{CommandQueue, dispatcher_gone};
use crate::error::Error;
use crate::transport::websocket::{HubEndpoint, WebSocketTransport};

/// A builder for a connection to a `sayso serve`.
///
/// ```
/// # testing::run_example!({
/// # let serving = sayso::Hub::embedded().listen("127.0.0.1:0").open()?;
/// # let url = format!("http://{}", serving.address().unwrap());
/// // A URL like `http://127.0.0.1:8787`, where `sayso serve` listens.
/// let hub = sayso::Hub::connect(url).open().await?;
/// # hub.close().await;
/// # });
/// ```
#[must_use = "nothing is connected until `open` is called"]
pub struct RemoteHubBuilder {
    url: String,
    token: Option<String>,
    ca_file: Option<PathBuf>,
    connect_timeout: Duration,
    settings: HubSettings,
}

impl RemoteHubBuilder {
    pub(super) fn new(url: String) -> Self {
        let timeout = Duration::from_secs(30);
        Self { url, token: None, ca_file: None, connect_timeout: timeout, settings: HubSettings::default() }
    }

    setters! {
        /// Sets the token that `sayso token new --role agent` created.
        token(token: impl Into<String>) => token = Some(token.into());

        /// For an `https://` hub, trusts only the certificates in this PEM file. The default is the system's trust store.
        ca_file(file: impl Into<PathBuf>) => ca_file = Some(file.into());

        /// Sets how long to keep trying to reach a hub that does not answer, both on connecting and after a lost connection. The
        /// default is 30 seconds.
        connect_timeout(timeout: Duration) => connect_timeout = timeout;
    }

    /// Connects to the hub.
    pub async fn open(self) -> Result<Hub, Error> {
        let endpoint = HubEndpoint::new(
            &self.url,
            self.token.as_deref(),
            self.ca_file.as_deref(),
            self.connect_timeout,
        )?;
        let (commands, receiver) = CommandQueue::channel();
        let (sender, connected) = oneshot::channel();
        spawn_dispatcher(&commands, receiver, move || async move {
            match WebSocketTransport::connect(endpoint).await {
                Ok(transport) => {
                    let _ = sender.send(Ok(()));
                    Some(transport)
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                    None
                }
            }
        })?;
        connected.await.unwrap_or_else(|_| Err(dispatcher_gone()))?;
        Ok(Hub::new(commands, self.settings, None))
    }
}

hub_settings_setters!(RemoteHubBuilder);

debug_tuple!(RemoteHubBuilder, url);
