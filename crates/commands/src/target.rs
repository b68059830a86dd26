//! The target server of a command, as the command line names it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use creole::client::{Address, HttpAddress, Program};
use creole_config::ConfigSource;
use creole_config::plan::upstream::CaCertificates;

use crate::args::{EnvironmentArgs, SessionArgs, TargetArgs};
use crate::failure::Failure;
use crate::login;

/// The default configuration file.
pub(crate) const DEFAULT_FILE: &str = "creole.toml";

/// The target server of a command.
#[derive(Debug)]
pub(crate) enum ServerTarget<'a> {
    /// A remote server or a program.
    Address(Box<Address>),
    /// A configuration, served within this process.
    Config(ConfigTarget<'a>),
}

/// A configuration that is served within this process.
#[derive(Debug)]
pub(crate) struct ConfigTarget<'a> {
    /// Its name in messages.
    pub(crate) name: String,
    /// The file or the preset.
    pub(crate) source: ConfigSource<'a>,
    /// The selected server, if the configuration has several.
    pub(crate) server: Option<&'a str>,
}

impl<'a> ConfigTarget<'a> {
    /// A preset.
    pub(crate) fn preset(name: &'a str) -> Self {
        Self { name: name.to_owned(), source: ConfigSource::Preset(name), server: None }
    }

    /// A configuration file.
    pub(crate) fn file(path: &'a Path, server: Option<&'a str>) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self { name, source: ConfigSource::File(path), server }
    }
}

impl ServerTarget<'_> {
    /// The name of the server in messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Address(address) => address.name(),
            Self::Config(inside) => &inside.name,
        }
    }
}

/// The target of a verb, and the remaining words.
pub(crate) fn target_and_words<'a>(
    words: &'a [String],
    peer: &'a SessionArgs,
) -> Result<(ServerTarget<'a>, &'a [String]), Failure> {
    match &peer.config {
        Some(file) => {
            Ok((ServerTarget::Config(ConfigTarget::file(file, peer.server.as_deref())), words))
        }
        None => parse_target(words, &peer.target, "`--config FILE`, `--preset NAME`,"),
    }
}

/// The target of `creole status`: a configuration file may take the place of a URL, and `creole.toml` is the default.
pub(crate) fn status_target<'a>(
    words: &'a [String],
    peer: &'a SessionArgs,
) -> Result<ServerTarget<'a>, Failure> {
    let is_named = peer.config.is_some() || peer.target.preset.is_some();
    let file = match words {
        [word] if !word.contains("://") => Some(Path::new(word)),
        [] if !is_named && peer.target.command.is_empty() => Some(Path::new(DEFAULT_FILE)),
        _ => None,
    };
    match file {
        Some(_) if is_named => {
            Err(Failure::Usage(format!("unexpected argument `{}`", words.join(" "))))
        }
        Some(file) => Ok(ServerTarget::Config(ConfigTarget::file(file, peer.server.as_deref()))),
        None => target_and_words(words, peer).map(|(target, _)| target),
    }
}

/// The target, and the remaining words. `others` lists the other ways to name it.
pub(crate) fn parse_target<'a>(
    words: &'a [String],
    target: &'a TargetArgs,
    others: &str,
) -> Result<(ServerTarget<'a>, &'a [String]), Failure> {
    if let Some(name) = &target.preset {
        return Ok((ServerTarget::Config(ConfigTarget::preset(name)), words));
    }
    if !target.command.is_empty() {
        let address = program_address(&target.command, &target.environment)?;
        return Ok((ServerTarget::Address(Box::new(address)), words));
    }
    let (url, rest) = words.split_first().ok_or_else(|| missing_target(None, others))?;
    if !url.contains("://") {
        return Err(missing_target(Some(url), others));
    }
    Ok((ServerTarget::Address(Box::new(http_address(url, target)?)), rest))
}

fn missing_target(word: Option<&str>, others: &str) -> Failure {
    let message = match word {
        Some(word) if is_address(word) => {
            return Failure::Usage(format!(
                "invalid URL `{word}`; did you mean `{}://{word}`?",
                default_scheme(word)
            ));
        }
        Some(word) => format!("invalid URL `{word}`, and no other server is given"),
        None => "no server is given".to_owned(),
    };
    Failure::Usage(format!(
        "{message}: write a URL such as `https://example.com/mcp`, {others} or `-- COMMAND ARGS` at the end"
    ))
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

/// An environment variable: `NAME=VALUE`, or `NAME` to pass on the current value.
fn environment_entry(text: &str) -> Result<(OsString, OsString), Failure> {
    if let Some((name, value)) = text.split_once('=') {
        return Ok((name.into(), value.into()));
    }
    let value = std::env::var_os(text).ok_or_else(|| {
        Failure::Usage(format!(
            "the environment variable `{text}` is not set; set it, or write `{text}=VALUE`"
        ))
    })?;
    Ok((text.into(), value))
}

/// The address of a program with its arguments and its environment.
pub(crate) fn program_address(
    command: &[OsString],
    environment: &EnvironmentArgs,
) -> Result<Address, Failure> {
    let Some((command, args)) = command.split_first() else {
        return Err(Failure::Usage("write a URL, or `--` and a command".to_owned()));
    };
    let name = Path::new(command).file_name().unwrap_or(command).to_string_lossy().into_owned();
    let mut program = Program::new(name, command.clone()).args(args.to_vec());
    for text in &environment.entries {
        program.env.push(environment_entry(text)?);
    }
    Ok(Address::Child(program))
}

/// The address of a server at a URL, with the options of the command line. It uses the login of the user, unless the
/// command line has other credentials.
fn http_address(url: &str, args: &TargetArgs) -> Result<Address, Failure> {
    let server = HttpTarget::new(url, &args.headers, args.cacert.as_deref())?;
    if server.has_authorization {
        return Ok(Address::Http(server.address));
    }
    let credentials = login::session_credentials(&server, args.no_login)?;
    Ok(Address::Http(server.address.credentials(Arc::new(credentials))))
}

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
    let refused = |fault: creole::proto::fault::Fault| Failure::Usage(fault.detail);
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
fn ca_certificates(url: &str, file: &Path) -> Result<CaCertificates, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_its_host() {
        assert_eq!(host("https://example.com:8443/mcp?key=secret"), "example.com:8443");
        assert_eq!(host("http://[::1]:80"), "[::1]:80");
    }

    #[test]
    fn an_address_without_a_scheme_is_proposed_with_one() {
        let said = |word: &str| missing_target(Some(word), "`--preset NAME`").to_string();
        let local =
            "error: invalid URL `localhost:3901/mcp`; did you mean `http://localhost:3901/mcp`?";
        assert_eq!(said("localhost:3901/mcp"), local);
        assert!(said("example.com/mcp").ends_with("did you mean `https://example.com/mcp`?"));
        for word in ["tools", "./creole.toml", "add"] {
            assert!(said(word).contains("no other server is given"), "{word}");
        }
    }

    #[test]
    fn headers_take_secrets_from_the_environment() {
        let home = std::env::var("PATH").unwrap();
        assert_eq!(expand_variables("Bearer ${PATH}!").unwrap(), format!("Bearer {home}!"));
        assert_eq!(expand_variables("plain ${").unwrap(), "plain ${");
        assert!(expand_variables("${NO_SUCH_ENTRY_ANYWHERE}").is_err());
    }
}
