//! Where a signal is exported to.

use std::path::Path;
use std::time::Duration;

use creole_telemetry::otlp::{OtlpCollector, Protocol, Signal};
use creole_tools::recipe::Secret;

use super::environment::OtelVariables;
use crate::plan::seconds;
use crate::plan::upstream::{CaCertificates, ca_certificates, endpoint_url, header};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::telemetry::OtlpProtocol;

/// How long a request may take by default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Headers that the exporter writes itself.
const OWN_HEADERS: [&str; 8] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "grpc-timeout",
    "host",
    "te",
    "transfer-encoding",
];

/// A collector of one signal.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorPlan {
    /// The URL of the signal, with its path.
    pub url: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// The certificates of the trusted authorities. Default: those of the system.
    pub certificates: Option<CaCertificates>,
    /// How long a request may take.
    pub timeout: Duration,
}

impl CollectorPlan {
    /// The file of the trusted certificates.
    pub(super) fn certificate_file(&self) -> Option<&Path> {
        self.certificates.as_ref().map(CaCertificates::file)
    }

    /// The collector as the exporter knows it.
    ///
    /// # Errors
    /// With the reason, when its URL or a header is not valid.
    pub fn collector(&self) -> Result<OtlpCollector, String> {
        let headers = self.headers.iter().map(|(name, value)| (&**name, &*value.0));
        let certificates = self.certificates.as_ref().map(|it| it.pem().into());
        OtlpCollector::new(&self.url, self.protocol, headers, certificates, self.timeout)
    }
}

/// What the table says about all signals.
pub(super) struct CollectorDefaults {
    endpoint: Option<String>,
    protocol: Option<Protocol>,
    headers: Option<Vec<(String, Secret)>>,
    certificates: Option<CaCertificates>,
    timeout: Option<Duration>,
}

impl CollectorDefaults {
    pub(super) fn new(
        endpoint: Option<Spanned<String>>,
        protocol: Option<OtlpProtocol>,
        headers: Option<Spanned<Entries<Spanned<String>>>>,
        ca_file: Option<Spanned<String>>,
        timeout: Option<i64>,
        folder: &Path,
    ) -> Result<Self, ConfigProblem> {
        let endpoint = endpoint.map(endpoint_url).transpose()?;
        let headers = headers.map(|headers| {
            let entries = headers.value.0.into_iter();
            entries.map(|entry| header(entry, &OWN_HEADERS)).collect::<Result<Vec<_>, _>>()
        });
        let url = endpoint.as_deref().unwrap_or_default();
        let certificates = ca_file.map(|file| ca_certificates::resolve(file, url, folder));
        Ok(Self {
            protocol: protocol.map(|protocol| match protocol {
                OtlpProtocol::HttpProtobuf => Protocol::HttpProtobuf,
                OtlpProtocol::Grpc => Protocol::Grpc,
            }),
            headers: headers.transpose()?,
            certificates: certificates.transpose()?,
            timeout: timeout.map(seconds),
            endpoint,
        })
    }

    /// The collector of a signal: as the table says, else as the environment says.
    pub(super) fn collector(
        &self,
        signal: Signal,
        variables: &OtelVariables<'_>,
    ) -> Option<CollectorPlan> {
        let protocol = self.protocol.or_else(|| variables.protocol(signal)).unwrap_or_default();
        let url = match &self.endpoint {
            Some(endpoint) => signal_url(endpoint, protocol, signal),
            None => variable_url(protocol, signal, variables)?,
        };
        let certificates = self.certificates.clone();
        let timeout =
            || variables.exporter(signal, "TIMEOUT").and_then(|(_, name)| variables.millis(&name));
        Some(CollectorPlan {
            headers: self.headers.clone().unwrap_or_else(|| variable_headers(signal, variables)),
            certificates: certificates.or_else(|| variable_certificates(signal, &url, variables)),
            timeout: self.timeout.or_else(timeout).unwrap_or(TIMEOUT),
            protocol,
            url,
        })
    }
}

/// The URL of a signal below an endpoint.
fn signal_url(endpoint: &str, protocol: Protocol, signal: Signal) -> String {
    let path = match protocol {
        Protocol::HttpProtobuf => signal.http_path(),
        Protocol::Grpc => signal.grpc_path(),
    };
    format!("{}{path}", endpoint.trim_end_matches('/'))
}

/// The URL of a signal in the environment. That of a single signal is complete with http/protobuf.
fn variable_url(
    protocol: Protocol,
    signal: Signal,
    variables: &OtelVariables<'_>,
) -> Option<String> {
    let (text, name) = variables.exporter(signal, "ENDPOINT")?;
    let is_complete =
        protocol == Protocol::HttpProtobuf && variables.signal(signal, "ENDPOINT").is_some();
    let value = Spanned { value: text.trim().to_owned(), span: 0..0 };
    match endpoint_url(value) {
        Ok(url) if is_complete => Some(url),
        Ok(url) => Some(signal_url(&url, protocol, signal)),
        Err(_) => {
            variables.warn(&name, "it is no URL that begins with `http://` or `https://`");
            None
        }
    }
}

fn variable_headers(signal: Signal, variables: &OtelVariables<'_>) -> Vec<(String, Secret)> {
    let Some((text, name)) = variables.exporter(signal, "HEADERS") else { return Vec::new() };
    let spanned = |value| Spanned { value, span: 0..0 };
    let pairs = variables.pairs(&name, &text).into_iter();
    let headers = pairs.map(|(key, value)| header((spanned(key), spanned(value)), &OWN_HEADERS));
    headers.collect::<Result<_, _>>().unwrap_or_else(|_| {
        variables.warn(&name, "a header is not valid, or the exporter sets it itself");
        Vec::new()
    })
}

fn variable_certificates(
    signal: Signal,
    url: &str,
    variables: &OtelVariables<'_>,
) -> Option<CaCertificates> {
    let (file, name) = variables.exporter(signal, "CERTIFICATE")?;
    if !url.starts_with("https://") {
        return None;
    }
    match CaCertificates::read(file.into()) {
        Ok(certificates) => Some(certificates),
        Err(reason) => {
            variables.warn(&name, &format!("its file {reason}"));
            None
        }
    }
}
