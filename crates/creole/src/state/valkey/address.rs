//! The address of a Valkey or Redis server, as it is configured.

use std::net::IpAddr;
use std::path::PathBuf;

/// The port of a server where the address names none.
const DEFAULT_PORT: u16 = 6379;

/// A parsed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    pub(super) endpoint: Endpoint,
    pub(super) is_encrypted: bool,
    pub(super) user: Option<String>,
    pub(super) database: i64,
}

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Endpoint {
    /// Whether the server is on this machine, so that the connection crosses no network.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

/// Parses an address; the error says what is wrong and what to write.
pub(super) fn parse_address(text: &str) -> Result<ServerAddress, String> {
    let schemes = "write valkey://HOST, valkeys://HOST or unix:///PATH";
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("the address has no scheme; {schemes}"));
    };
    let is_encrypted = match scheme {
        "valkey" | "redis" => false,
        "valkeys" | "rediss" => true,
        "unix" => return parse_socket(rest),
        _ => return Err(format!("the scheme {scheme} is not supported; {schemes}")),
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(parse_user(user)?), rest),
        None => (None, rest),
    };
    let (host, database) = rest.split_once('/').unwrap_or((rest, ""));
    let database = match database {
        "" => 0,
        number => number
            .parse::<u16>()
            .map_err(|_| format!("the database {number} is not a number from 0 to 65535"))?,
    };
    let endpoint = parse_host(host)?;
    Ok(ServerAddress { endpoint, is_encrypted, user, database: database.into() })
}

/// Parses `HOST` or `HOST:PORT`; an IPv6 address is in brackets.
pub(super) fn parse_host(text: &str) -> Result<Endpoint, String> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or("the IPv6 address lacks its bracket")?;
        (host, port.strip_prefix(':'))
    } else {
        text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return Err(format!("{host:?} is not the name of a host; write HOST or HOST:PORT"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => {
            let number = port.parse().ok().filter(|number| *number != 0);
            number.ok_or_else(|| format!("the port {port:?} is not a number from 1 to 65535"))?
        }
    };
    Ok(Endpoint::Tcp { host: host.to_owned(), port })
}

fn parse_socket(path: &str) -> Result<ServerAddress, String> {
    if !path.starts_with('/') {
        return Err("the path of the socket is not absolute; write unix:///PATH".to_owned());
    }
    let endpoint = Endpoint::Unix(path.into());
    Ok(ServerAddress { endpoint, is_encrypted: false, user: None, database: 0 })
}

fn parse_user(text: &str) -> Result<String, String> {
    if text.contains(':') {
        return Err(
            "the address contains a password, which messages would show; set the password \
                    apart from the address"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn an_address_has_scheme_user_host_port_and_database() {
        let parsed = parse_address("valkeys://me@kv.internal:6380/2").unwrap();
        assert_eq!(parsed.endpoint, tcp("kv.internal", 6380));
        assert_eq!((parsed.is_encrypted, parsed.database), (true, 2));
        assert_eq!(parsed.user.as_deref(), Some("me"));
        let parsed = parse_address("redis://[::1]").unwrap();
        assert_eq!((parsed.endpoint.is_local(), parsed.is_encrypted), (true, false));
        assert_eq!(parsed.endpoint, tcp("::1", 6379));
        let parsed = parse_address("unix:///run/kv.sock").unwrap();
        assert_eq!(parsed.endpoint, Endpoint::Unix("/run/kv.sock".into()));
    }

    #[test]
    fn an_address_without_a_meaning_is_refused_with_the_reason() {
        for (address, reason) in [
            ("localhost:6379", "no scheme"),
            ("http://localhost", "scheme http"),
            ("valkey://", "not the name of a host"),
            ("valkey://a b", "not the name of a host"),
            ("valkey://a:0", "port"),
            ("valkey://a:99999", "port"),
            ("valkey://a/x", "database x"),
            ("valkey://me:secret@a", "contains a password"),
            ("unix://relative", "not absolute"),
        ] {
            let error = parse_address(address).unwrap_err();
            assert!(error.contains(reason), "{address}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
