//! How connections to others are encrypted, and whose certificates are believed.

use std::io;
use std::sync::{Arc, OnceLock};

use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
/// A connection that is encrypted.
pub use tokio_rustls::client::TlsStream as Encrypted;

/// Whose certificates are trusted.
#[derive(Clone, Copy)]
pub(crate) enum TrustedRoots<'a> {
    /// Nobody's: there is no TLS.
    Plain,
    /// Those of the system.
    System,
    /// These alone, in the PEM form.
    These(&'a [u8]),
}

/// How connections of other protocols than HTTP are encrypted; clones are the same.
#[derive(Clone, Debug)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// With whoever shows a certificate of the system's authorities for the name that is called.
    ///
    /// # Errors
    /// When the system's certificates cannot be had.
    pub fn with_system_roots() -> Result<Self, String> {
        client_config(TrustedRoots::System).map(|config| Self(Arc::new(config)))
    }

    /// With whoever shows a certificate of these authorities, in the PEM form, for the name that is called.
    ///
    /// # Errors
    /// When there are none.
    pub fn with_roots(certificates: &[u8]) -> Result<Self, String> {
        match CertificateDer::pem_slice_iter(certificates).next() {
            Some(_) => client_config(TrustedRoots::These(certificates))
                .map(|config| Self(Arc::new(config))),
            None => Err("needs certificates in the PEM form".to_owned()),
        }
    }

    /// With whoever answers: nobody who only listens on the way can read along, but whoever stands in the way can.
    ///
    /// # Errors
    /// When there is no encryption at all.
    pub fn without_verification() -> Result<Self, String> {
        let verifier = NoVerification(aws_lc_rs::default_provider());
        let dangerous =
            config_builder()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(Self(Arc::new(dangerous.with_no_client_auth())))
    }

    /// Encrypts a connection to the host of this name.
    ///
    /// # Errors
    /// When the host cannot be trusted, or does not answer as it should.
    pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: S,
    ) -> io::Result<Encrypted<S>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await
    }
}

/// Believes every certificate, but not that somebody has its key without showing it.
#[derive(Debug)]
struct NoVerification(CryptoProvider);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// How connections are encrypted.
pub(crate) fn client_config(trust: TrustedRoots<'_>) -> Result<ClientConfig, String> {
    match trust {
        TrustedRoots::System => system_roots_config(),
        TrustedRoots::These(certificates) => custom_roots_config(certificates),
        TrustedRoots::Plain => custom_roots_config(&[]),
    }
}

/// Reading the certificates of the system takes a while, so that is done once.
fn system_roots_config() -> Result<ClientConfig, String> {
    static ROOTS: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = ROOTS.get_or_init(|| {
        let builder = config_builder()?.with_native_roots();
        let builder =
            builder.map_err(|error| format!("needs certificates of the system: {error}"))?;
        Ok(Arc::new(builder.with_no_client_auth()))
    });
    config.as_ref().map(|config| ClientConfig::clone(config)).map_err(Clone::clone)
}

fn custom_roots_config(certificates: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(certificates) {
        let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
        added.ok_or("needs certificates in the PEM form")?;
    }
    Ok(config_builder()?.with_root_certificates(roots).with_no_client_auth())
}

fn config_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    // The provider is named, because two in one program would make rustls refuse to choose.
    let provider = Arc::new(aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("needs TLS: {error}"))
}
