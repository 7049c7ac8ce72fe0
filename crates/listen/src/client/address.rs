//! Where a hub is.

use std::sync::Arc;

use client::{HttpClient, Trust, TrustError, Url, UrlError};
use tokio::sync::Notify;

/// The address of a hub, and the token by which it lets in.
///
/// ```
/// use listen::client::Address;
/// assert!(Address::parse("http://127.0.0.1:8787", None).is_ok());
/// assert!(Address::parse("ftp://127.0.0.1", None).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Address {
    /// For a Unix socket, a client that is never used.
    pub(super) client: HttpClient,
    pub(super) messages: &'static str,
    pub(super) wire: Wire,
    /// Whoever waits to come back need not wait any longer.
    sooner: Arc<Notify>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// HTTP, and a stream of server-sent events. It can be come back to.
    Sse,
    /// A message a frame (§B.2).
    WebSocket,
    /// A message a line, on a socket of this machine (§B.4).
    Unix(std::path::PathBuf),
}

/// Why there is no such address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The URL is not one of a hub.
    #[error("{url} is no hub's address: {source}")]
    Url {
        /// What was given, made harmless.
        url: String,
        /// What is wrong with it.
        source: UrlError,
    },
    /// There is no path to a Unix socket.
    #[error("write unix: and the path of the hub's socket")]
    UnixPath,
    /// The token cannot be sent.
    #[error(transparent)]
    Token(#[from] client::Error),
    /// The certificates cannot be trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// There is nothing to check certificates for.
    #[error("certificates are for https:// only")]
    TrustWithoutTls,
}

impl Address {
    /// Takes `http://HOST:PORT` or `https://HOST:PORT`, and a bearer token where one is needed.
    pub fn parse(url: &str, token: Option<&str>) -> Result<Self, AddressError> {
        match Url::parse_http(url) {
            Ok(url) => Self::new(url, token),
            Err(source) => Err(AddressError::Url { url: crate::plain(url, true), source }),
        }
    }

    fn new(url: Url, token: Option<&str>) -> Result<Self, AddressError> {
        let wire = if url.is_websocket() { Wire::WebSocket } else { Wire::Sse };
        let mut client = HttpClient::new(url);
        if let Some(token) = token {
            client = client.with_token(token)?;
        }
        Ok(Self { client, messages: "/aaep/v1/replies", wire, sooner: Arc::default() })
    }

    /// There is a reason to try a lost connection now, and not only after the pause: whoever follows this hub by a clone of
    /// the address does.
    pub fn try_now(&self) {
        self.sooner.notify_one();
    }

    /// Waits for such a reason.
    pub(crate) async fn sooner(&self) {
        self.sooner.notified().await;
    }

    /// The same, and also `ws://HOST:PORT`, `wss://HOST:PORT` and `unix:PATH`, for those who only listen: nothing can be sent
    /// there but by who is connected.
    ///
    /// ```
    /// use listen::client::Address;
    /// assert!(Address::parse_any("unix:/run/user/1000/aaep/sayso-hub.sock", None).is_ok());
    /// assert!(Address::parse_any("ws://127.0.0.1:8787", None).is_ok());
    /// ```
    pub fn parse_any(url: &str, token: Option<&str>) -> Result<Self, AddressError> {
        if let Some(path) = url.strip_prefix("unix:") {
            if path.is_empty() || path.contains('\0') {
                return Err(AddressError::UnixPath);
            }
            let address = Self::parse("http://localhost", None)?;
            return Ok(Self { wire: Wire::Unix(path.into()), ..address });
        }
        match Url::parse(url) {
            // The route may be written out.
            Ok(url) if url.is_websocket() => {
                let path = url.path();
                let base = path.strip_suffix("/aaep/v1/ws").unwrap_or(path).to_owned();
                Self::new(url.with_path(&base), token)
            }
            _ => Self::parse(url, token),
        }
    }

    /// Whether a lost connection can be taken up where it was.
    pub fn can_resume(&self) -> bool {
        self.wire == Wire::Sse
    }

    /// Trusts these certificates too, in PEM.
    pub fn trusting(mut self, certificates: &[u8]) -> Result<Self, AddressError> {
        if !self.client.url().is_tls() {
            return Err(AddressError::TrustWithoutTls);
        }
        self.client = self.client.with_trust(Trust::system_and(certificates)?);
        Ok(self)
    }

    /// Whether others on the way can hear and change what is said.
    pub fn is_in_the_clear(&self) -> bool {
        !self.client.url().is_tls() && !self.client.url().is_loopback()
    }

    /// The same, of a producer that is no hub: it speaks the dialect of AAEP's own packages.
    #[must_use]
    pub fn without_hub(self) -> Self {
        Self { messages: "/messages", ..self }
    }

    /// The address as a person would write it.
    pub fn url(&self) -> String {
        match &self.wire {
            Wire::Unix(path) => format!("unix:{}", crate::plain(&path.to_string_lossy(), true)),
            Wire::Sse | Wire::WebSocket => self.client.url().to_string(),
        }
    }
}
