//! A connection to a hub in another process.

use std::ffi::OsString;
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
    client_certificate: Option<(PathBuf, PathBuf)>,
    connect_timeout: Duration,
    manifest: Option<String>,
    settings: HubSettings,
}

/// Where `sayso serve` listens by default.
const DEFAULT_URL: &str = "http://127.0.0.1:8787";

impl RemoteHubBuilder {
    pub(super) fn new(url: String) -> Self {
        let timeout = Duration::from_secs(30);
        Self {
            url,
            token: None,
            ca_file: None,
            client_certificate: None,
            connect_timeout: timeout,
            manifest: None,
            settings: HubSettings::default(),
        }
    }

    /// Reads the address and the token from variables. Without an address, uses the personal hub, if there is one; it needs
    /// no token. A value that is not UTF-8 is kept in part, so that it is refused
    /// and not ignored.
    pub(super) fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
        personal_hub: Option<String>,
    ) -> Self {
        let read = |name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        let url = match (read("SAYSO_URL"), personal_hub) {
            (None, Some(personal_hub)) => return Self::new(personal_hub),
            (url, _) => url.unwrap_or_else(|| DEFAULT_URL.to_owned()),
        };
        Self { token: read("SAYSO_TOKEN"), ..Self::new(url) }
    }

    setters! {
        /// Sets the token that `sayso token new --role agent` created.
        token(token: impl Into<String>) => token = Some(token.into());

        /// For an `https://` hub, trusts only the certificates in this PEM file. The default is the system's trust store.
        ca_file(file: impl Into<PathBuf>) => ca_file = Some(file.into());

        /// For a hub that demands a certificate from its clients, presents the one in this PEM file, with the private key in another.
        client_certificate(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) => client_certificate = Some((certificate.into(), key.into()));

        /// Publishes this manifest of the agent at the hub (§5.10): JSON, or the compact JWS that `sayso manifest sign` prints. Its
        /// `agent_id` must be the token's. The events of later sessions contain its address. If it is signed with a key that
        /// the hub's operator trusts, people hear its `agent_name` as a verified name.
        manifest(document: impl Into<String>) => manifest = Some(document.into());

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
            self.client_certificate.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path())),
            self.connect_timeout,
        )?;
        let (commands, receiver) = CommandQueue::channel();
        let (sender, connected) = oneshot::channel();
        spawn_dispatcher(&commands, receiver, move || async move {
            match WebSocketTransport::connect(endpoint, self.manifest).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_hub_and_the_token() {
        let (socket, hub, token) = ("unix:/run/hub.sock", "https://hub.example", Some("sayso_1"));
        for (url, token, personal_hub, expected_url, expected_token) in [
            (None, None, None, DEFAULT_URL, None),
            (Some(""), Some(""), None, DEFAULT_URL, None),
            (Some(""), token, Some(socket), socket, None),
            (Some(hub), token, None, hub, token),
            (Some(hub), token, Some(socket), hub, token),
        ] {
            let variable = |name: &str| match name {
                "SAYSO_URL" => url.map(Into::into),
                "SAYSO_TOKEN" => token.map(Into::into),
                _ => None,
            };
            let builder = RemoteHubBuilder::from_variables(variable, personal_hub.map(str::to_owned));
            assert_eq!((builder.url.as_str(), builder.token.as_deref()), (expected_url, expected_token));
        }
    }
}
