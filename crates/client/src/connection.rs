//! Connections to one server.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{ClientError, ClientIdentity, TrustRoots, Url, current_uid};

/// A bidirectional byte stream.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// A connection to a server, with or without TLS.
pub type ClientConnection = Box<dyn ByteStream>;

/// A client for one server.
#[derive(Clone, Debug)]
pub struct HttpClient {
    url: Url,
    trust_roots: TrustRoots,
    identity: Option<ClientIdentity>,
    pub(crate) authorization: Option<HeaderValue>,
}

impl HttpClient {
    /// Creates a client for the server at this address.
    pub fn new(url: Url) -> Self {
        Self { url, trust_roots: TrustRoots::default(), identity: None, authorization: None }
    }

    /// Sends this bearer token with every request.
    pub fn with_token(mut self, token: &str) -> Result<Self, ClientError> {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ClientError::InvalidToken);
        }
        let mut bearer =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| ClientError::InvalidToken)?;
        bearer.set_sensitive(true);
        self.authorization = Some(bearer);
        Ok(self)
    }

    /// Sends no token.
    #[must_use]
    pub fn without_token(self) -> Self {
        Self { authorization: None, ..self }
    }

    /// Uses these trust roots for TLS.
    #[must_use]
    pub fn with_trust_roots(self, trust_roots: TrustRoots) -> Self {
        Self { trust_roots, ..self }
    }

    /// Presents this certificate to a server that demands one.
    #[must_use]
    pub fn with_identity(self, identity: ClientIdentity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Returns the address of the server.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the value of the `Authorization` header, if there is a token.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<ClientConnection, ClientError> {
        self.connect_with(&[]).await
    }

    /// Opens a connection for HTTP/2.
    pub async fn connect_http2(&self) -> Result<ClientConnection, ClientError> {
        self.connect_with(&[b"h2"]).await
    }

    /// Opens a connection. With TLS, offers these protocols (ALPN).
    async fn connect_with(&self, protocols: &[&[u8]]) -> Result<ClientConnection, ClientError> {
        if let Some(socket) = self.url.socket() {
            return Ok(Box::new(connect_unix(socket).await?));
        }
        let stream = TcpStream::connect((self.url.host(), self.url.port())).await?;
        stream.set_nodelay(true)?;
        if !self.url.is_tls() {
            return Ok(Box::new(PlainStream { stream, is_first_read: true }));
        }
        let name = ServerName::try_from(self.url.host().to_owned()).map_err(|_| ClientError::InvalidHost)?;
        let mut config = self.trust_roots.config().map_err(ClientError::Tls)?;
        if !protocols.is_empty() {
            Arc::make_mut(&mut config).alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        }
        if let Some(identity) = &self.identity {
            Arc::make_mut(&mut config).client_auth_cert_resolver = identity.resolver();
        }
        let connector = TlsConnector::from(config);
        Ok(Box::new(connector.connect(name, stream).await.map_err(ClientError::from_handshake)?))
    }
}

/// Connects to a Unix socket of the current user. A socket of another user is refused, because that user could have put it
/// at a path in a shared folder, and could answer in the person's name.
async fn connect_unix(socket: &Path) -> Result<UnixStream, ClientError> {
    let stream = UnixStream::connect(socket).await?;
    if stream.peer_cred()?.uid() == current_uid()? { Ok(stream) } else { Err(ClientError::ForeignSocket) }
}

/// A connection without TLS. It detects whether the server expects TLS.
struct PlainStream {
    stream: TcpStream,
    is_first_read: bool,
}

/// The first byte of a TLS alert, with which a TLS server answers an unencrypted request.
const TLS_ALERT_BYTE: u8 = 0x15;

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if result.is_ready()
            && std::mem::take(&mut self.is_first_read)
            && buffer.filled().get(filled_before) == Some(&TLS_ALERT_BYTE)
        {
            return Poll::Ready(Err(io::Error::other(ClientError::UnexpectedTls)));
        }
        result
    }
}

impl AsyncWrite for PlainStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Converts an I/O error of an open connection to a client error.
pub(crate) fn from_io(error: io::Error) -> ClientError {
    error.downcast::<ClientError>().unwrap_or_else(ClientError::Io)
}
