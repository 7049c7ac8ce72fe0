//! The way to a server: an address, and a connection to it, with or without TLS.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, rustls};

/// Where a server is: what `http://HOST:PORT/PATH` or `https://…` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) tls: bool,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// The host and the port as they were written.
    pub(crate) authority: String,
    /// Without a slash at its end; empty if there is none.
    pub(crate) path: String,
}

impl Target {
    /// Reads a URL. Who is who in it, queries and fragments are refused: nothing here needs them.
    pub(crate) fn parse(url: &str) -> Result<Self, &'static str> {
        const WRITE: &str = "write http://HOST:PORT/PATH or https://HOST/PATH";
        let (scheme, rest) = url.split_once("://").ok_or(WRITE)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(WRITE),
        };
        if rest.contains(['?', '#', '@']) || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a query, a name before @ or a space is not taken");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, after) = match authority.strip_prefix('[') {
            Some(inside) => inside.split_once(']').ok_or(WRITE)?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match after.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| "the port is no number")?,
            None if after.is_empty() => {
                if tls {
                    443
                } else {
                    80
                }
            }
            None => return Err(WRITE),
        };
        if host.is_empty() {
            return Err("there is no host");
        }
        Ok(Self {
            tls,
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    /// Connects. Whom to trust under TLS is the system's to say.
    #[cfg(feature = "openai")]
    pub(crate) async fn dial(&self) -> io::Result<Dialled> {
        self.dial_trusting(None).await
    }

    /// Connects. Under TLS those are trusted, if nothing is said those whom the system trusts.
    pub(crate) async fn dial_trusting(&self, trust: Option<&Arc<ClientConfig>>) -> io::Result<Dialled> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        if !self.tls {
            return Ok(Dialled::Plain(stream));
        }
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let trust = trust.map_or_else(trusted, |trust| Ok(Arc::clone(trust)))?;
        let stream = TlsConnector::from(trust).connect(name, stream).await?;
        Ok(Dialled::Tls(Box::new(stream)))
    }
}

/// Whether this is how a server answers that does not speak TLS.
#[cfg(feature = "client")]
pub(crate) fn is_plain(error: &io::Error) -> bool {
    let said = error.get_ref().and_then(|inside| inside.downcast_ref());
    matches!(said, Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)))
}

/// The certificates that the system trusts, read once.
fn trusted() -> io::Result<Arc<ClientConfig>> {
    static TRUSTED: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = TRUSTED.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("the system trusts no certificate at all".to_owned());
        }
        trusting(roots)
    });
    config.clone().map_err(io::Error::other)
}

/// Trusts the certificates of a file in PEM, and no others.
#[cfg(feature = "client")]
pub(crate) fn trusted_by(file: &std::path::Path) -> Result<Arc<ClientConfig>, String> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| said(&error))? {
        roots.add(certificate.map_err(|error| said(&error))?).map_err(|error| said(&error))?;
    }
    if roots.is_empty() {
        return Err(said(&"there is no certificate in it"));
    }
    trusting(roots)
}

fn trusting(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error: rustls::Error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// A connection.
pub(crate) enum Dialled {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Dialled {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Dialled {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

    use super::Target;

    #[test]
    fn an_address_is_taken_apart() {
        let parts = |url: &str| {
            let target = Target::parse(url).unwrap();
            (target.tls, target.host, target.port, target.authority, target.path)
        };
        let expected = |tls, host: &str, port, authority: &str, path: &str| {
            (tls, host.to_owned(), port, authority.to_owned(), path.to_owned())
        };
        assert_eq!(
            parts("https://api.example/v1/"),
            expected(true, "api.example", 443, "api.example", "/v1")
        );
        assert_eq!(parts("http://[::1]:9/a/b"), expected(false, "::1", 9, "[::1]:9", "/a/b"));
        assert_eq!(parts("HTTP://localhost"), expected(false, "localhost", 80, "localhost", ""));
        for bad in [
            "localhost",
            "ftp://a",
            "http://",
            "http://a:b",
            "http://me@a",
            "http://a?b",
            "http://a b",
            "http://[::1",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }
}
