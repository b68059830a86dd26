//! The target server of a command, as the command line names it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use creole::client::{Address, Program};
use creole_config::ConfigSource;

use crate::args::{EnvironmentArgs, SessionArgs, TargetArgs};
use crate::failure::Failure;
use crate::http_target::{DEFAULT_FILE, HttpTarget, meant_url};
use crate::login;

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
    if let Some((word, url)) = word.and_then(|word| Some((word, meant_url(word)?))) {
        return Failure::Usage(format!("invalid URL `{word}`; did you mean `{url}`?"));
    }
    let message = match word {
        Some(word) => format!("invalid URL `{word}`, and no other server is given"),
        None => "no server is given".to_owned(),
    };
    Failure::Usage(format!(
        "{message}: write a URL such as `https://example.com/mcp`, {others} or `-- COMMAND ARGS` at the end"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
