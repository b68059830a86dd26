//! A server at a URL, with its headers and trusted certificates.

use std::path::Path;
use std::sync::Arc;

use creole::client::HttpAddress;
use creole::proto::fault::Fault;
use creole_config::plan::upstream::CaCertificates;

use crate::failure::Failure;

/// The default configuration file.
pub(crate) const DEFAULT_FILE: &str = "creole.toml";

/// A server at a URL.
#[derive(Debug)]
pub(crate) struct HttpTarget {
    /// The URL as it was written.
    pub(crate) url: String,
    /// The name of the server in messages.
    pub(crate) name: String,
    pub(crate) address: HttpAddress,
    /// The trusted certificates in PEM form, instead of the system's.
    pub(crate) certificates: Option<Arc<[u8]>>,
    /// Whether a header has credentials.
    pub(crate) has_authorization: bool,
}

impl HttpTarget {
    /// The server at a URL, with headers and a file of trusted certificates.
    pub(crate) fn new(
        url: &str,
        headers: &[String],
        cacert: Option<&Path>,
    ) -> Result<Self, Failure> {
        let authorities = cacert.map(|file| ca_certificates(url, file)).transpose()?;
        let certificates = authorities.as_ref().map(|found| Arc::from(found.pem()));
        let (address, has_authorization) =
            address_with_headers(url, headers, authorities.as_ref())?;
        let (url, name) = (url.to_owned(), host(url));
        Ok(Self { url, name, address, certificates, has_authorization })
    }
}

/// The address, and whether a header has credentials.
fn address_with_headers(
    url: &str,
    headers: &[String],
    authorities: Option<&CaCertificates>,
) -> Result<(HttpAddress, bool), Failure> {
    let trusted = authorities.map(CaCertificates::pem);
    let mut has_authorization = false;
    let refused = |fault: Fault| Failure::Usage(fault.detail);
    let mut target = HttpAddress::with_certificates(host(url), url, trusted).map_err(refused)?;
    for header in headers {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            Failure::Usage(format!("invalid header `{header}`; write `Name: value`"))
        })?;
        let value = expand_variables(value.trim())?;
        has_authorization |= name.trim().eq_ignore_ascii_case("authorization");
        target = target.header(name.trim(), &value).map_err(refused)?;
    }
    Ok((target, has_authorization))
}

/// The certificates of `--cacert`.
pub(crate) fn ca_certificates(url: &str, file: &Path) -> Result<CaCertificates, Failure> {
    if !url.starts_with("https://") {
        let description = "`--cacert` is only valid for https:// URLs";
        return Err(Failure::Usage(description.to_owned()));
    }
    CaCertificates::read(file.to_owned())
        .map_err(|reason| Failure::Usage(format!("`{}` {reason}", file.display())))
}

/// The name of a server in messages: its host, since the rest of a URL may be a secret.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest).to_owned()
}

/// The text with `${NAME}` replaced by environment variables: secrets do not belong on command lines.
fn expand_variables(text: &str) -> Result<String, Failure> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, tail)) = after.split_once('}') else { break };
        let value = std::env::var(name).map_err(|_| {
            Failure::Usage(format!(
                "the environment variable `{name}`, which a header needs, is not set"
            ))
        })?;
        filled.push_str(before);
        filled.push_str(&value);
        rest = tail;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The URL that a word may be meant as: a host with a port or a path, without a scheme.
pub(crate) fn meant_url(word: &str) -> Option<String> {
    is_address(word).then(|| format!("{}://{word}", default_scheme(word)))
}

/// Whether a word is a host with a port or a path, without a scheme.
fn is_address(word: &str) -> bool {
    let (host, _) = word.split_once('/').unwrap_or((word, ""));
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let has_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    let has_path = word.contains('/') && host.contains('.') && !host.starts_with('.');
    has_port || has_path || host == "localhost"
}

/// The default scheme: servers on this machine are reached without TLS.
fn default_scheme(word: &str) -> &'static str {
    let is_here =
        ["localhost", "127.", "[::1]", "0.0.0.0"].iter().any(|text| word.starts_with(text));
    if is_here { "http" } else { "https" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_its_host() {
        assert_eq!(host("https://example.com:8443/mcp?key=secret"), "example.com:8443");
        assert_eq!(host("http://[::1]:80"), "[::1]:80");
    }

    #[test]
    fn headers_take_secrets_from_the_environment() {
        let home = std::env::var("PATH").unwrap();
        assert_eq!(expand_variables("Bearer ${PATH}!").unwrap(), format!("Bearer {home}!"));
        assert_eq!(expand_variables("plain ${").unwrap(), "plain ${");
        assert!(expand_variables("${NO_SUCH_ENTRY_ANYWHERE}").is_err());
    }
}
