//! TLS for client connections, with the choice of trusted certificates.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;

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
/// An encrypted connection.
pub use tokio_rustls::client::TlsStream as Encrypted;

/// The trusted root certificates.
#[derive(Clone, Copy)]
pub(crate) enum TrustedRoots<'a> {
    /// None: there is no TLS.
    Plain,
    /// The system's.
    System,
    /// Only these, in PEM form.
    These(&'a [u8]),
}

/// TLS for connections of other protocols than HTTP; clones share their settings.
#[derive(Clone, Debug)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// Trusts certificates of the system's authorities for the name of the host.
    ///
    /// # Errors
    /// When the system's certificates cannot be loaded.
    pub fn with_system_roots() -> Result<Self, String> {
        client_config(TrustedRoots::System).map(|config| Self(Arc::new(config)))
    }

    /// Trusts certificates of these authorities, in PEM form, for the name of the host.
    ///
    /// # Errors
    /// When there are none.
    pub fn with_roots(certificates: &[u8]) -> Result<Self, String> {
        match CertificateDer::pem_slice_iter(certificates).next() {
            Some(_) => client_config(TrustedRoots::These(certificates))
                .map(|config| Self(Arc::new(config))),
            None => Err("needs PEM certificates".to_owned()),
        }
    }

    /// Trusts every certificate: protects against passive eavesdroppers, but not against an active attacker in the
    /// path.
    ///
    /// # Errors
    /// When TLS is not available.
    pub fn without_verification() -> Result<Self, String> {
        let verifier = NoVerification(aws_lc_rs::default_provider());
        let dangerous =
            config_builder()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(Self(Arc::new(dangerous.with_no_client_auth())))
    }

    /// Encrypts a connection to the host of this name.
    ///
    /// # Errors
    /// When the host is not trusted, or the handshake fails.
    pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: S,
    ) -> io::Result<Encrypted<S>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await
    }
}

/// Accepts every certificate, but still requires proof that the server has its key.
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

/// The TLS settings for these roots.
pub(crate) fn client_config(trust: TrustedRoots<'_>) -> Result<ClientConfig, String> {
    match trust {
        TrustedRoots::System => system_roots_config(),
        TrustedRoots::These(certificates) => custom_roots_config(certificates),
        TrustedRoots::Plain => custom_roots_config(&[]),
    }
}

/// Cached: reading the system's certificates takes a while.
fn system_roots_config() -> Result<ClientConfig, String> {
    static ROOTS: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = ROOTS.get_or_init(|| {
        let builder = config_builder()?.with_native_roots();
        let builder =
            builder.map_err(|error| format!("needs the system's certificates: {error}"))?;
        Ok(Arc::new(builder.with_no_client_auth()))
    });
    config.as_ref().map(|config| ClientConfig::clone(config)).map_err(Clone::clone)
}

fn custom_roots_config(certificates: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(certificates) {
        let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
        added.ok_or("needs PEM certificates")?;
    }
    Ok(config_builder()?.with_root_certificates(roots).with_no_client_auth())
}

fn config_builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    // The provider is explicit, because rustls refuses to choose between two in one program.
    let provider = Arc::new(aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("needs TLS: {error}"))
}
