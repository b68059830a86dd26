//! Checks `public_url`. It is an identifier that is compared byte by byte, so it has one possible spelling.

use std::net::IpAddr;

use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;

/// The maximum length in bytes.
const MAX_LENGTH: usize = 300;

/// The URL as it was written.
pub(super) fn resolve(value: &Spanned<String>) -> Result<String, ConfigProblem> {
    let url = value.value.as_str();
    let refused = |reason: &str, help: &str| {
        let problem = ConfigProblem::new(format!("`public_url` {reason}: `{url}`"));
        Err(problem.help(help).at(value.span.clone()))
    };
    let authority = authority(url);
    if authority.is_empty() || url.len() > MAX_LENGTH {
        return Err(problem(value));
    }
    if authority.contains('@') {
        return refused("names a user", "remove everything up to the `@`");
    }
    if let Some(at) = authority.find(['/', '?', '#']) {
        let (rest, help) = (&authority[at..], "write only the scheme, the host and the port");
        return match rest {
            "/" => refused("ends with a slash", "remove the slash"),
            _ if rest.starts_with('/') => refused("has a path", help),
            _ if rest.starts_with('?') => refused("has a query", help),
            _ => refused("has a fragment", help),
        };
    }
    if authority.chars().any(|each| each.is_ascii_uppercase()) {
        return refused("has capital letters", "write the host in lower case, as clients do");
    }
    if url.starts_with("http://") && !is_loopback(authority) {
        let help = "use `https`; only a server on this machine may use `http`";
        return refused("is not encrypted", help);
    }
    Ok(url.to_owned())
}

/// What follows the scheme; empty if there is no known scheme.
pub(super) fn authority(url: &str) -> &str {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.unwrap_or_default()
}

/// The problem of a text that is no such URL at all.
pub(super) fn problem(value: &Spanned<String>) -> ConfigProblem {
    ConfigProblem::new(format!("`public_url` is not a URL of a server: `{}`", value.value))
        .help("write the scheme and the host, such as `https://mcp.example.com`")
        .at(value.span.clone())
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<String, String> {
        let value = Spanned { value: url.to_owned(), span: 0..1 };
        resolve(&value).map_err(|problem| problem.into_error("creole.toml", "x").message)
    }

    #[test]
    fn a_url_has_one_spelling() {
        for url in [
            "https://mcp.example.com",
            "https://mcp.example.com:8443",
            "http://localhost:8080",
            "http://127.0.0.1:1",
            "http://[::1]:8080",
        ] {
            assert_eq!(read(url).as_deref(), Ok(url));
        }
        for (url, reason) in [
            ("mcp.example.com", "is not a URL of a server"),
            ("https://", "is not a URL of a server"),
            ("HTTPS://mcp.example.com", "is not a URL of a server"),
            ("https://mcp.example.com/", "ends with a slash"),
            ("https://mcp.example.com/mcp", "has a path"),
            ("https://mcp.example.com?x", "has a query"),
            ("https://mcp.example.com#x", "has a fragment"),
            ("https://ada@mcp.example.com", "names a user"),
            ("https://MCP.example.com", "has capital letters"),
            ("http://mcp.example.com", "is not encrypted"),
            ("http://localhost.example.com", "is not encrypted"),
        ] {
            assert_eq!(read(url), Err(format!("`public_url` {reason}: `{url}`")));
        }
    }
}
