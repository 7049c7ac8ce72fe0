//! The certificates that are trusted under TLS.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// The certificates that are trusted under TLS; those of the system if nothing else is said.
#[derive(Clone, Default)]
pub struct Trust(Option<Arc<ClientConfig>>);

/// Why certificates cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// They are not PEM.
    #[error("the certificates to trust are not PEM")]
    NotPem(#[source] PemError),
    /// There is none.
    #[error("there is no certificate in what should be trusted")]
    Empty,
    /// One of them cannot be used.
    #[error("a certificate to trust cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl Trust {
    /// Trusts these certificates in PEM, and no others.
    pub fn only(pem: &[u8]) -> Result<Self, TrustError> {
        Ok(Self(Some(config(read(pem)?)?)))
    }

    /// Trusts these certificates in PEM besides those of the system.
    pub fn system_and(pem: &[u8]) -> Result<Self, TrustError> {
        let mut roots = read(pem)?;
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Ok(Self(Some(config(roots)?)))
    }

    /// What TLS is configured with. The system's certificates are read once, when they are first needed.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        static SYSTEM: OnceLock<Result<Arc<ClientConfig>, rustls::Error>> = OnceLock::new();
        if let Some(config) = &self.0 {
            return Ok(config.clone());
        }
        let read = || {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(rustls::Error::General("the system trusts no certificate at all".to_owned()));
            }
            build(roots)
        };
        SYSTEM.get_or_init(read).clone()
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Trust(own)" } else { "Trust(system)" })
    }
}

fn read(pem: &[u8]) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(TrustError::NotPem)?).map_err(TrustError::Unusable)?;
    }
    if roots.is_empty() { Err(TrustError::Empty) } else { Ok(roots) }
}

fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, TrustError> {
    build(roots).map_err(TrustError::Unusable)
}

fn build(roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
