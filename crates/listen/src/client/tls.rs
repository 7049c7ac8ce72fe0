//! TLS, by the certificates that the system trusts and those that the person names.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, InvalidMessage, RootCertStore};

/// Whether this is how a server answers that does not speak TLS.
pub(super) fn is_plain(error: &io::Error) -> bool {
    let said = error.get_ref().and_then(|inside| inside.downcast_ref());
    matches!(said, Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)))
}

/// What is wrong with a certificate, where that is what a handshake broke on.
pub(super) fn of_certificate(error: &io::Error) -> Option<super::Why> {
    let said = error.get_ref().and_then(|inside| inside.downcast_ref());
    let Some(Error::InvalidCertificate(wrong)) = said else { return None };
    Some(match wrong {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => super::Why::CertificateTime,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            super::Why::CertificateName
        }
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            super::Why::CertificateOfSigner
        }
        _ => super::Why::CertificateUntrusted,
    })
}

/// What is trusted.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Trusts what the system does, and these certificates, in PEM.
    pub(super) fn new(more: &[u8]) -> Result<Self, &'static str> {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::pem_slice_iter(more).collect::<Result<Vec<_>, _>>();
        let own = own.map_err(|_| "the certificates to trust are not PEM")?;
        if !more.is_empty() && own.is_empty() {
            return Err("there is no certificate in what should be trusted");
        }
        for certificate in own {
            roots.add(certificate).map_err(|_| "a certificate to trust cannot be used")?;
        }
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| "TLS cannot be spoken")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// The handshake, with the host of an authority.
    pub(super) async fn connect(
        &self,
        authority: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => authority.split(':').next().unwrap_or(authority),
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|_| super::Why::NoHost.error())?;
        self.0.connect(name, stream).await
    }
}
