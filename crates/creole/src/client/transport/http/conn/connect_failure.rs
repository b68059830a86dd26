//! Why a peer is unreachable, described without secrets.

use std::error::Error;
use std::fmt;

/// The error of a proxy.
#[derive(Debug)]
pub(crate) struct ProxyFailure(pub(crate) String);

impl fmt::Display for ProxyFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for ProxyFailure {}

/// Describes why a connection to a peer failed.
pub fn describe_connect_failure(error: &std::io::Error) -> String {
    describe_failure(error, true).0
}

/// Describes why a peer is unreachable, and returns the reason code.
pub(crate) fn describe_failure(
    error: &(dyn Error + 'static),
    is_connect: bool,
) -> (String, &'static str) {
    match root_cause(error) {
        RootCause::Proxy(reason) => (format!("cannot be reached: {reason}"), "proxy"),
        RootCause::Tls(reason) => (reason, "tls"),
        RootCause::Io(kind) if is_connect => (describe_io_error(kind).to_owned(), "connect"),
        _ if is_connect => ("cannot be found or reached".to_owned(), "connect"),
        RootCause::Io(std::io::ErrorKind::TimedOut) => {
            ("no longer responds".to_owned(), "connection_lost")
        }
        _ => ("closed the connection before it responded".to_owned(), "connection_lost"),
    }
}

enum RootCause {
    Proxy(String),
    Tls(String),
    Io(std::io::ErrorKind),
    Other,
}

fn root_cause(error: &(dyn Error + 'static)) -> RootCause {
    let (mut found, mut next) = (RootCause::Other, Some(error));
    while let Some(error) = next {
        if let Some(proxy) = error.downcast_ref::<ProxyFailure>() {
            return RootCause::Proxy(proxy.to_string());
        }
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return RootCause::Tls(describe_tls_error(tls));
        }
        next = error.source();
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            found = RootCause::Io(io.kind());
            // TLS errors are inside stream errors, which do not name them as their source.
            if let Some(inner) = io.get_ref() {
                next = Some(inner);
            }
        }
    }
    found
}

/// The TLS error, and how to fix it.
fn describe_tls_error(error: &rustls::Error) -> String {
    use rustls::{CertificateError, Error};

    let reason = error.to_string();
    match error {
        Error::InvalidMessage(_) => "does not support TLS; try `http://`".to_owned(),
        // Another authority may have the name of the issuer.
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer
            | CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        ) => "cannot be trusted: the issuer of its certificate is unknown; add its certificate \
                authority with `--cacert FILE`, `ca_file` or SSL_CERT_FILE"
            .to_owned(),
        Error::InvalidCertificate(_) if reason.contains("CaUsedAsEndEntity") => {
            "cannot be trusted: its certificate is a CA certificate and not a server \
                certificate; use a server certificate that the CA signed"
                .to_owned()
        }
        _ => format!("cannot be trusted: {reason}"),
    }
}

fn describe_io_error(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::ConnectionRefused => "refuses connections",
        std::io::ErrorKind::TimedOut => "did not accept the connection in time",
        _ => "cannot be found or reached",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_an_unknown_authority_says_what_to_do() {
        use rustls::CertificateError;

        let same_name = CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: vec![6, 8],
            public_key_algorithm_id: vec![6, 9],
        };
        for reason in [CertificateError::UnknownIssuer, CertificateError::BadSignature, same_name] {
            let error = std::io::Error::other(rustls::Error::InvalidCertificate(reason));
            let described = describe_connect_failure(&error);
            assert!(described.contains("is unknown; add its certificate authority"), "{described}");
        }
        let expired = rustls::Error::InvalidCertificate(CertificateError::Expired);
        let described = describe_connect_failure(&std::io::Error::other(expired));
        assert_eq!(described, "cannot be trusted: invalid peer certificate: Expired");
    }
}
