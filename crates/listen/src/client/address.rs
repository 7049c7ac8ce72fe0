//! The address of a hub.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use client::{ClientIdentity, ClientIdentityError, HttpClient, TrustRoots, TrustRootsError, Url, UrlError};
use tokio::sync::Notify;

use super::message_transport::ProducerCommand;
use super::outgoing::OutgoingSlot;

/// The address of a hub, with the token for it.
///
/// ```
/// use listen::client::Address;
/// assert!(Address::parse("http://127.0.0.1:8787", None).is_ok());
/// assert!(Address::parse("wss://hub.example", Some("token")).is_ok());
/// assert!(Address::parse("unix:/run/user/1000/aaep/sayso-hub.sock", None).is_ok());
/// assert!(Address::parse("ftp://127.0.0.1", None).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Address {
    /// The HTTP client. It is unused for a Unix socket and for a program.
    pub(super) client: HttpClient,
    pub(super) messages_path: &'static str,
    pub(super) transport: HubTransport,
    /// Whether this is the person's own hub.
    is_personal: bool,
    /// Wakes a pending reconnect.
    retry_signal: Arc<Notify>,
    /// The open connection, on transports that carry both directions.
    pub(super) outgoing: OutgoingSlot,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HubTransport {
    /// HTTP with a stream of server-sent events. Its subscriptions can be resumed.
    Sse,
    /// One message per frame (§B.2).
    WebSocket,
    /// One message per line, on a socket of this machine (§B.4).
    Unix(PathBuf),
    /// A stream of messages in both directions over HTTP/2 (§B.5).
    #[cfg(feature = "grpc")]
    Grpc,
    /// JSON-RPC on the standard input and output of a producer that the listener starts (§B.6).
    Program(Arc<ProducerCommand>),
}

impl HubTransport {
    /// Returns the transport's name in a manifest.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::Unix(_) => "unix-socket",
            #[cfg(feature = "grpc")]
            Self::Grpc => "grpc",
            Self::Program(_) => "stdio-jsonrpc",
        }
    }
}

/// Why an address is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The URL has no scheme, or an unsupported one.
    #[error(
        "{0} is not a hub address: write http://HOST:PORT, https://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT or unix:PATH"
    )]
    Scheme(String),
    /// The URL is not a hub address.
    #[error("{url} is not a hub address: {source}")]
    Url {
        /// The URL as given, sanitized.
        url: String,
        /// What is wrong with it.
        source: UrlError,
    },
    /// This program was built without gRPC.
    #[error("this sayso was built without gRPC; build it with --features grpc")]
    GrpcUnsupported,
    /// The path of the Unix socket is missing or invalid.
    #[error("unix: must be followed by the path of the hub's socket")]
    UnixPath,
    /// The token cannot be sent in a header.
    #[error(transparent)]
    Token(#[from] client::ClientError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustRootsError),
    /// The certificate of this client cannot be used.
    #[error(transparent)]
    Identity(#[from] ClientIdentityError),
    /// Certificates were given for an address without TLS.
    #[error("certificates can only be used with https://, wss:// or grpcs://")]
    TrustWithoutTls,
}

impl Address {
    /// Parses the address of a hub: `http://HOST:PORT` or `https://HOST:PORT`, `ws://HOST:PORT` or `wss://HOST:PORT`, or
    /// `unix:PATH`. A bearer token is sent if one is given, but not to a Unix socket, where the user is known.
    pub fn parse(url: &str, token: Option<&str>) -> Result<Self, AddressError> {
        if let Some(path) = url.strip_prefix("unix:") {
            if path.is_empty() || path.contains('\0') {
                return Err(AddressError::UnixPath);
            }
            return Self::local(HubTransport::Unix(path.into()));
        }
        let mut parsed = match Url::parse(url) {
            Ok(parsed) => parsed,
            Err(UrlError::InvalidScheme) => return Err(AddressError::Scheme(crate::sanitize(url, true))),
            Err(source) => return Err(AddressError::Url { url: crate::sanitize(url, true), source }),
        };
        let mut transport = HubTransport::Sse;
        if parsed.is_websocket() {
            // The address may include the route.
            let path = parsed.path();
            let base = path.strip_suffix("/aaep/v1/ws").unwrap_or(path).to_owned();
            parsed = parsed.with_path(&base);
            transport = HubTransport::WebSocket;
        }
        if parsed.is_grpc() {
            #[cfg(feature = "grpc")]
            {
                transport = HubTransport::Grpc;
            }
            #[cfg(not(feature = "grpc"))]
            return Err(AddressError::GrpcUnsupported);
        }
        let mut client = HttpClient::new(parsed);
        if let Some(token) = token {
            client = client.with_token(token)?;
        }
        Ok(Self::new(client, transport))
    }

    /// Creates the address of the person's own hub, which is reached through its Unix socket. The connection carries HTTP, so
    /// subscriptions can be resumed.
    pub fn personal_hub(socket: &Path) -> Result<Self, AddressError> {
        let url = Url::unix(socket).map_err(|_| AddressError::UnixPath)?;
        Ok(Self { is_personal: true, ..Self::new(HttpClient::new(url), HubTransport::Sse) })
    }

    /// Creates the address of a producer that the listener starts as a child process and listens to on its standard output.
    pub fn program(program: OsString, arguments: Vec<OsString>) -> Result<Self, AddressError> {
        Self::local(HubTransport::Program(Arc::new(ProducerCommand { program, arguments })))
    }

    /// Creates the address of a producer on this machine that is not reached over a network.
    fn local(transport: HubTransport) -> Result<Self, AddressError> {
        let unused = Url::parse("http://localhost")
            .map_err(|source| AddressError::Url { url: "localhost".to_owned(), source })?;
        Ok(Self::new(HttpClient::new(unused), transport))
    }

    fn new(client: HttpClient, transport: HubTransport) -> Self {
        Self {
            client,
            messages_path: "/aaep/v1/replies",
            transport,
            is_personal: false,
            retry_signal: Arc::default(),
            outgoing: OutgoingSlot::default(),
        }
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

    /// Whether a lost connection can be resumed with the same subscription, and the hub confirms each message that it received. On
    /// the other transports, a subscription ends with its connection, and nobody knows whether the last messages arrived.
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

    /// Presents this certificate to a hub that demands one. Both texts are PEM.
    pub fn with_identity(mut self, chain: &[u8], key: &[u8]) -> Result<Self, AddressError> {
        if !self.client.url().is_tls() {
            return Err(AddressError::TrustWithoutTls);
        }
        self.client = self.client.with_identity(ClientIdentity::from_pem(chain, key)?);
        Ok(self)
    }

    /// Returns the same address without its token.
    #[must_use]
    pub fn without_token(self) -> Self {
        Self { client: self.client.without_token(), ..self }
    }

    /// Returns the name of the transport, as manifests write it.
    pub fn transport_name(&self) -> &'static str {
        self.transport.name()
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

    /// Whether this is the person's own hub, created by [`Self::personal_hub`].
    pub fn is_personal(&self) -> bool {
        self.is_personal
    }

    /// Returns the address as a person would write it.
    pub fn url(&self) -> String {
        match &self.transport {
            HubTransport::Unix(path) => format!("unix:{}", crate::sanitize(&path.to_string_lossy(), true)),
            HubTransport::Program(command) => {
                let words = std::iter::once(&command.program).chain(&command.arguments);
                let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
                crate::sanitize(&words.join(" "), true)
            }
            _ => self.client.url().to_string(),
        }
    }
}
