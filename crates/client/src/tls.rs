//! The trusted TLS certificates.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// The certificate authorities that are trusted for TLS. By default, these are the ones of the system.
#[derive(Clone, Default)]
pub struct TrustRoots(Option<Arc<ClientConfig>>);

/// Why trust roots cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustRootsError {
    /// The certificates are not valid PEM.
    #[error("the file of trusted certificates is not valid PEM")]
    NotPem(#[source] PemError),
    /// There is no certificate.
    #[error("the file of trusted certificates contains no certificate")]
    Empty,
    /// A certificate cannot be used.
    #[error("a trusted certificate cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl TrustRoots {
    /// Trusts only these PEM certificates.
    pub fn only_pem(pem: &[u8]) -> Result<Self, TrustRootsError> {
        Ok(Self(Some(build_trust_config(parse_pem(pem)?)?)))
    }

    /// Trusts these PEM certificates in addition to those of the system.
    pub fn system_and_pem(pem: &[u8]) -> Result<Self, TrustRootsError> {
        let mut roots = parse_pem(pem)?;
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Ok(Self(Some(build_trust_config(roots)?)))
    }

    /// Returns the TLS configuration. The system's certificates are loaded once, on first use.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        static SYSTEM: OnceLock<Result<Arc<ClientConfig>, rustls::Error>> = OnceLock::new();
        if let Some(config) = &self.0 {
            return Ok(config.clone());
        }
        let load = || {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(rustls::Error::General("the system has no trusted certificates".to_owned()));
            }
            build_client_config(roots)
        };
        SYSTEM.get_or_init(load).clone()
    }
}

/// The certificate of this client and its private key, for servers that demand one.
#[derive(Clone)]
pub struct ClientIdentity(Arc<SingleCertAndKey>);

/// Why a client's certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientIdentityError {
    /// The certificate is not valid PEM, or there is none.
    #[error("the file of the client certificate contains no certificate in the PEM format")]
    NoCertificate,
    /// The key is not valid PEM, or there is none.
    #[error("the file of the client key contains no private key in the PEM format")]
    NoKey,
    /// The key does not belong to the certificate, or its kind is not supported.
    #[error("the client certificate and its key cannot be used: {0}")]
    Unusable(#[source] rustls::Error),
}

impl ClientIdentity {
    /// Reads a certificate chain and its private key from PEM texts.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ClientIdentityError> {
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| ClientIdentityError::NoCertificate)?;
        if chain.is_empty() {
            return Err(ClientIdentityError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| ClientIdentityError::NoKey)?;
        let certified = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(ClientIdentityError::Unusable)?;
        Ok(Self(Arc::new(SingleCertAndKey::from(certified))))
    }

    pub(crate) fn resolver(&self) -> Arc<SingleCertAndKey> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity")
    }
}

impl fmt::Debug for TrustRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TrustRoots(custom)" } else { "TrustRoots(system)" })
    }
}

fn parse_pem(pem: &[u8]) -> Result<RootCertStore, TrustRootsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(TrustRootsError::NotPem)?).map_err(TrustRootsError::Unusable)?;
    }
    if roots.is_empty() { Err(TrustRootsError::Empty) } else { Ok(roots) }
}

fn build_trust_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, TrustRootsError> {
    build_client_config(roots).map_err(TrustRootsError::Unusable)
}

fn build_client_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
