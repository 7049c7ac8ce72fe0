//! TLS by rustls: a certificate and its key, TLS 1.2 and 1.3, HTTP/1.1 inside.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::listener::hang_up;

/// What a server needs to speak TLS. All clones are one.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

/// Why there is no TLS.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read {}: {}", .0.display(), seal::in_words(.1))]
    Io(PathBuf, #[source] std::io::Error),
    /// The file is not PEM.
    #[error("{}: must be PEM", .0.display())]
    NotPem(PathBuf, #[source] pem::Error),
    /// There is no certificate in the file.
    #[error("{}: there is no certificate in it", .0.display())]
    NoCertificate(PathBuf),
    /// There is no private key in the file.
    #[error("{}: there is no private key in it", .0.display())]
    NoKey(PathBuf),
    /// The key is not the certificate's.
    #[error("{}: not the key of the certificate {}", .1.display(), .0.display())]
    Mismatch(PathBuf, PathBuf),
    /// Something in them cannot be used.
    #[error("{} and {} cannot be used: {}", .0.display(), .1.display(), .2)]
    Unusable(PathBuf, PathBuf, #[source] rustls::Error),
}

impl Tls {
    /// Reads a certificate, with those above it, and its key, each a file of PEM.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| TlsError::Io(path.to_owned(), error));
        let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|why| TlsError::NotPem(certificate.to_owned(), why))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate(certificate.to_owned()));
        }
        let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|why| match why {
            pem::Error::NoItemsFound => TlsError::NoKey(key.to_owned()),
            why => TlsError::NotPem(key.to_owned(), why),
        })?;
        let unusable = |why| match why {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch(certificate.to_owned(), key.to_owned()),
            why => TlsError::Unusable(certificate.to_owned(), key.to_owned(), why),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(RwLock::new(Arc::new(config)))))
    }

    /// From now on whoever connects is shown the other's certificate; who has connected before goes on.
    pub fn replace(&self, with: &Self) {
        let config = with.config();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn config(&self) -> Arc<ServerConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The handshake, if it comes to an end in time.
    pub(crate) async fn accept(&self, stream: TcpStream, patience: Duration) -> Option<TlsStream<TcpStream>> {
        let accept = TlsAcceptor::from(self.config()).accept(stream).into_fallible();
        match timeout(patience, accept).await.ok()? {
            Ok(stream) => Some(stream),
            Err((_, stream)) => {
                // The alert says what went wrong, and must not be lost.
                hang_up(stream).await;
                None
            }
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TLS")
    }
}
