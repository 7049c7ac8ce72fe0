//! The address of a hub.

use std::sync::Arc;

use client::{HttpClient, TrustRoots, TrustRootsError, Url, UrlError};
use tokio::sync::Notify;

/// The address of a hub, with the token for it.
///
/// ```
/// use listen::client::Address;
/// assert!(Address::parse("http://127.0.0.1:8787", None).is_ok());
/// assert!(Address::parse("ftp://127.0.0.1", None).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Address {
    /// The HTTP client. It is unused for a Unix socket.
    pub(super) client: HttpClient,
    pub(super) messages_path: &'static str,
    pub(super) transport: HubTransport,
    /// Wakes a pending reconnect.
    retry_signal: Arc<Notify>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HubTransport {
    /// HTTP with a stream of server-sent events. Its subscriptions can be resumed.
    Sse,
    /// One message per frame (§B.2).
    WebSocket,
    /// One message per line, on a socket of this machine (§B.4).
    Unix(std::path::PathBuf),
}

/// Why an address is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The URL is not a hub address.
    #[error("{url} is not a hub address: {source}")]
    Url {
        /// The URL as given, sanitized.
        url: String,
        /// What is wrong with it.
        source: UrlError,
    },
    /// The path of the Unix socket is missing or invalid.
    #[error("unix: must be followed by the path of the hub's socket")]
    UnixPath,
    /// The token cannot be sent in a header.
    #[error(transparent)]
    Token(#[from] client::ClientError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustRootsError),
    /// Certificates were given for an address without TLS.
    #[error("certificates can only be used with https://")]
    TrustWithoutTls,
}

impl Address {
    /// Parses `http://HOST:PORT` or `https://HOST:PORT`, with a bearer token if one is needed.
    pub fn parse(url: &str, token: Option<&str>) -> Result<Self, AddressError> {
        match Url::parse_http(url) {
            Ok(url) => Self::new(url, token),
            Err(source) => Err(AddressError::Url { url: crate::sanitize(url, true), source }),
        }
    }

    fn new(url: Url, token: Option<&str>) -> Result<Self, AddressError> {
        let transport = if url.is_websocket() { HubTransport::WebSocket } else { HubTransport::Sse };
        let mut client = HttpClient::new(url);
        if let Some(token) = token {
            client = client.with_token(token)?;
        }
        Ok(Self { client, messages_path: "/aaep/v1/replies", transport, retry_signal: Arc::default() })
    }

    /// Makes a lost connection retry now instead of after its backoff. This affects the [`follow`](super::follow()) call that uses
    /// a clone of this address.
    pub fn retry_now(&self) {
        self.retry_signal.notify_one();
    }

    /// Waits for a call of `retry_now`.
    pub(crate) async fn wait_for_retry(&self) {
        self.retry_signal.notified().await;
    }

    /// Parses the addresses that [`parse`](Self::parse) accepts, and also `ws://HOST:PORT`, `wss://HOST:PORT` and `unix:PATH`. These
    /// transports are for receive-only listeners: messages to the hub can be sent only on the open connection itself.
    ///
    /// ```
    /// use listen::client::Address;
    /// assert!(Address::parse_any_transport("unix:/run/user/1000/aaep/sayso-hub.sock", None).is_ok());
    /// assert!(Address::parse_any_transport("ws://127.0.0.1:8787", None).is_ok());
    /// ```
    pub fn parse_any_transport(url: &str, token: Option<&str>) -> Result<Self, AddressError> {
        if let Some(path) = url.strip_prefix("unix:") {
            if path.is_empty() || path.contains('\0') {
                return Err(AddressError::UnixPath);
            }
            let address = Self::parse("http://localhost", None)?;
            return Ok(Self { transport: HubTransport::Unix(path.into()), ..address });
        }
        match Url::parse(url) {
            // The address may include the route.
            Ok(url) if url.is_websocket() => {
                let path = url.path();
                let base = path.strip_suffix("/aaep/v1/ws").unwrap_or(path).to_owned();
                Self::new(url.with_path(&base), token)
            }
            _ => Self::parse(url, token),
        }
    }

    /// Whether a lost connection can be resumed.
    pub fn can_resume(&self) -> bool {
        self.transport == HubTransport::Sse
    }

    /// Trusts these PEM certificates, in addition to those that the system trusts.
    pub fn with_certificates(mut self, certificates: &[u8]) -> Result<Self, AddressError> {
        if !self.client.url().is_tls() {
            return Err(AddressError::TrustWithoutTls);
        }
        self.client = self.client.with_trust_roots(TrustRoots::system_and_pem(certificates)?);
        Ok(self)
    }

    /// Whether the connection crosses a network without TLS, so that others can read and change the messages.
    pub fn is_unencrypted(&self) -> bool {
        !self.client.url().is_tls() && !self.client.url().is_loopback()
    }

    /// Returns the same address for a producer without a hub, which uses the routes of AAEP's own packages.
    #[must_use]
    pub fn without_hub(self) -> Self {
        Self { messages_path: "/messages", ..self }
    }

    /// Returns the address as a person would write it.
    pub fn url(&self) -> String {
        match &self.transport {
            HubTransport::Unix(path) => format!("unix:{}", crate::sanitize(&path.to_string_lossy(), true)),
            HubTransport::Sse | HubTransport::WebSocket => self.client.url().to_string(),
        }
    }
}
