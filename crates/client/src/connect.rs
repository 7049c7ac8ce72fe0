//! Connections to one server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{Error, Trust, Url};

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection to a server, with or without TLS.
pub type Connection = Box<dyn Stream>;

/// A client of one server.
#[derive(Clone, Debug)]
pub struct HttpClient {
    url: Url,
    trust: Trust,
    pub(crate) authorization: Option<HeaderValue>,
}

impl HttpClient {
    /// A client of the server at this address.
    pub fn new(url: Url) -> Self {
        Self { url, trust: Trust::default(), authorization: None }
    }

    /// Sends this bearer token with every request.
    pub fn with_token(mut self, token: &str) -> Result<Self, Error> {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::InvalidToken);
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| Error::InvalidToken)?;
        bearer.set_sensitive(true);
        self.authorization = Some(bearer);
        Ok(self)
    }

    /// Trusts these certificates under TLS.
    #[must_use]
    pub fn with_trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// The address of the server.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Connection, Error> {
        let stream = TcpStream::connect((self.url.host(), self.url.port())).await?;
        stream.set_nodelay(true)?;
        if !self.url.is_tls() {
            return Ok(Box::new(PlainStream { stream, first_read: true }));
        }
        let name = ServerName::try_from(self.url.host().to_owned()).map_err(|_| Error::InvalidHost)?;
        let connector = TlsConnector::from(self.trust.config().map_err(Error::Tls)?);
        Ok(Box::new(connector.connect(name, stream).await.map_err(Error::from_handshake)?))
    }
}

/// A connection without TLS, which notices a server that speaks TLS all the same.
struct PlainStream {
    stream: TcpStream,
    first_read: bool,
}

/// The first byte of every alert of TLS, which is how a server answers a request that is not encrypted.
const TLS_ALERT: u8 = 0x15;

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready()
            && std::mem::take(&mut self.first_read)
            && buffer.filled().get(before) == Some(&TLS_ALERT)
        {
            return Poll::Ready(Err(io::Error::other(Error::SpeaksTls)));
        }
        read
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

/// An error of a connection that is in use.
pub(crate) fn from_io(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(Error::Io)
}
