//! TLS 1.2 and 1.3 with rustls, for HTTP/1.1 and, with the feature `grpc`, HTTP/2.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use seal::private_file::{self, KeyFileError};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::message_transport::lingering_close;

/// The TLS configuration of a server. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

/// The files of a TLS configuration, all in the PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities that must have signed the certificate of every client. `None` if clients need no certificate.
    pub client_authorities: Option<PathBuf>,
}

/// Why a TLS configuration could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read {}: {}", .0.display(), seal::describe_io_error(.1))]
    Io(PathBuf, #[source] std::io::Error),
    /// The file of the private key cannot be read, or others can read it.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// The file is not PEM.
    #[error("{} is not a PEM file", .0.display())]
    NotPem(PathBuf, #[source] pem::Error),
    /// The file contains no certificate.
    #[error("{} contains no certificate", .0.display())]
    NoCertificate(PathBuf),
    /// The file contains no private key.
    #[error("{} contains no private key", .0.display())]
    NoKey(PathBuf),
    /// The key does not belong to the certificate.
    #[error("{} is not the private key of the certificate {}", .1.display(), .0.display())]
    Mismatch(PathBuf, PathBuf),
    /// The certificate authorities for clients cannot be used.
    #[error("{} cannot be used: {}", .0.display(), .1)]
    ClientAuthorities(PathBuf, String),
    /// rustls rejects the certificate or the key.
    #[error("{} and {} cannot be used: {}", .0.display(), .1.display(), .2)]
    Unusable(PathBuf, PathBuf, #[source] rustls::Error),
}

/// Maximum size of the file of a private key, in bytes.
const MAX_KEY_FILE_BYTES: u64 = 1024 * 1024;

impl Tls {
    /// Loads the files. Fails if anyone but its owner can read the key.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { certificate, key, client_authorities } = files;
        let chain = read_certificates(certificate)?;
        let key_text = private_file::read(key, MAX_KEY_FILE_BYTES)?;
        let private_key =
            PrivateKeyDer::from_pem_slice(key_text.as_bytes()).map_err(|error| match error {
                pem::Error::NoItemsFound => TlsError::NoKey(key.clone()),
                error => TlsError::NotPem(key.clone(), error),
            })?;
        let unusable = |error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError::Mismatch(certificate.clone(), key.clone()),
            error => TlsError::Unusable(certificate.clone(), key.clone(), error),
        };
        let client_verifier = match client_authorities {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(file) => client_verifier(file)?,
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_client_cert_verifier(client_verifier)
            .with_single_cert(chain, private_key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(RwLock::new(Arc::new(config)))))
    }

    /// Replaces the configuration for new connections. Existing connections keep the old one.
    pub fn replace(&self, new: &Self) {
        let config = new.config();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn config(&self) -> Arc<ServerConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Performs the handshake. Returns `None` if it fails or exceeds the time limit.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        time_limit: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        accept(self.config(), stream, time_limit).await
    }

    /// Like [`Self::accept`], for HTTP/2.
    #[cfg(feature = "grpc")]
    pub(crate) async fn accept_http2(
        &self,
        stream: TcpStream,
        time_limit: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        let mut config = (*self.config()).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        accept(Arc::new(config), stream, time_limit).await
    }
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = std::fs::read(file).map_err(|error| TlsError::Io(file.to_owned(), error))?;
    let certificates = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::NotPem(file.to_owned(), error))?;
    if certificates.is_empty() { Err(TlsError::NoCertificate(file.to_owned())) } else { Ok(certificates) }
}

/// Creates the check of the clients' certificates. A client without one is refused.
fn client_verifier(file: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let unusable = |error: &dyn fmt::Display| TlsError::ClientAuthorities(file.to_owned(), error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(file)? {
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unusable(&error))
}

async fn accept(
    config: Arc<ServerConfig>,
    stream: TcpStream,
    time_limit: Duration,
) -> Option<TlsStream<TcpStream>> {
    {
        let accept = TlsAcceptor::from(config).accept(stream).into_fallible();
        match timeout(time_limit, accept).await.ok()? {
            Ok(stream) => Some(stream),
            Err((_, stream)) => {
                // The alert tells the client what went wrong, so it must be delivered before the close.
                lingering_close(stream).await;
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
