//! The key of a cluster, with which its nodes authenticate to each other.
//!
//! All nodes know the same 32 secret bytes. An Ed25519 key pair is derived from them, and both sides of a connection present it
//! as a raw public key (RFC 7250) in TLS 1.3. A peer is accepted if it presents the same public key and proves with its signature that
//! it has the secret one. TLS also encrypts the connection, with keys that are different for each connection.

use std::fmt;
use std::sync::Arc;

use seal::Digest;
use thiserror::Error;
use tokio_rustls::rustls::client::AlwaysResolvesClientRawPublicKeys;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use tokio_rustls::rustls::server::AlwaysResolvesServerRawPublicKeys;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme, version,
};

/// The key of a cluster.
#[derive(Clone)]
pub struct ClusterKey {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey")
    }
}

/// The key of a cluster cannot be used.
#[derive(Debug, Error)]
#[error("the key of the cluster cannot be used: {0}")]
pub struct ClusterKeyError(#[from] Error);

/// What the derivation is for, so that the key has no other use.
const PURPOSE: &[u8] = b"sayso cluster key for internal connections, version 1";
/// The beginning of an Ed25519 private key in PKCS #8 (RFC 8410), before its 32 bytes.
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

impl ClusterKey {
    /// Number of bytes of the secret.
    pub const SECRET_BYTES: usize = 32;

    /// Derives the key from the secret of the cluster.
    pub fn from_secret(secret: &[u8; Self::SECRET_BYTES]) -> Result<Self, ClusterKeyError> {
        let seed = Digest::of_parts([PURPOSE, &[0], secret]);
        let der: Vec<u8> = PKCS8_PREFIX.iter().chain(seed.as_bytes()).copied().collect();
        let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der))?;
        let public_key =
            key.public_key().ok_or_else(|| Error::General("the key has no public part".to_owned()))?;
        let public_key = public_key.into_owned();
        let certificate = CertificateDer::from(public_key.as_ref().to_vec());
        let certified = Arc::new(CertifiedKey::new(vec![certificate], key));
        let provider = Arc::new(ring::default_provider());
        let verifier =
            Arc::new(SameKey { public_key, algorithms: provider.signature_verification_algorithms });
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(certified.clone())));
        // A resumed session would not prove again that the peer has the key.
        client.resumption = tokio_rustls::rustls::client::Resumption::disabled();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
        server.send_tls13_tickets = 0;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }
}

/// Accepts a peer that has the same key.
#[derive(Debug)]
struct SameKey {
    public_key: SubjectPublicKeyInfoDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl SameKey {
    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        if presented.as_ref() == self.public_key.as_ref() {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
        }
    }

    fn verify(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check(presented)?;
        verify_tls13_signature_with_raw_key(message, &self.public_key, signature, &self.algorithms)
    }
}

impl ServerCertVerifier for SameKey {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(presented).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, presented, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for SameKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(presented).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, presented, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
