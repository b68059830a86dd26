//! Checks `Host` and `Origin`, which protects a local server from web pages
//! (2025-11-25 basic/transports, security warning).
//!
//! A page whose host name is rebound to 127.0.0.1 (DNS rebinding) still sends that name as the host. A page that calls
//! `http://localhost:8080` directly sends its own origin. So a request must name a known host of the server, and have
//! no origin or an allowed one.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a host name as text. Encoded, it then has the maximum of 255 octets (RFC 1035, 2.3.4).
const MAX_NAME: usize = 253;
/// Maximum length of a label in a host name (RFC 1035, 2.3.4).
const MAX_LABEL: usize = 63;

/// The known hosts of a server and the origins that may call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginGuard {
    hosts: Vec<Authority<String>>,
    origins: Vec<String>,
}

/// The reason for rejecting a request. Its text describes how to correct the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginGuardError {
    /// The host is missing.
    HostMissing,
    /// There is more than one host.
    HostRepeated,
    /// The host is invalid.
    HostUnreadable,
    /// The request target names another host than the header.
    HostDiffers,
    /// The host is not a known host of the server.
    HostUnknown,
    /// There is more than one origin.
    OriginRepeated,
    /// The origin is not in the form that browsers send, or is opaque.
    OriginUnreadable,
    /// The origin is not allowed.
    OriginUnknown,
}

/// A text that is not a host or not an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHostOrOrigin;

impl OriginGuard {
    /// A guard with the hosts `localhost`, `127.0.0.1` and `[::1]` on any port, and with the server's own pages as
    /// origins. Pages of other servers on the same machine are not allowed, because their content is not trusted.
    pub fn loopback() -> Self {
        let any_port = |host| Authority { host, port: None };
        let hosts = [
            Host::Name("localhost".to_string()),
            Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Host::Address(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ];
        Self { hosts: hosts.map(any_port).into(), origins: Vec::new() }
    }

    /// Adds a known host: a name or an address, for any port unless one is given.
    ///
    /// # Errors
    /// When the text is not a host.
    pub fn allow_host(&mut self, text: &str) -> Result<(), InvalidHostOrOrigin> {
        let authority = Authority::parse(text).ok_or(InvalidHostOrOrigin)?;
        self.hosts.push(authority.to_lower());
        Ok(())
    }

    /// Adds a known address, for any port.
    pub fn allow_address(&mut self, address: IpAddr) {
        self.hosts.push(Authority { host: Host::Address(address), port: None });
    }

    /// Adds an allowed origin: `https://app.example.com`, with the port if it is not the default.
    ///
    /// # Errors
    /// When the text is not an origin as browsers write it.
    pub fn allow_origin(&mut self, text: &str) -> Result<(), InvalidHostOrOrigin> {
        Origin::parse(text).ok_or(InvalidHostOrOrigin)?;
        self.origins.push(text.to_string());
        Ok(())
    }

    /// Whether all known hosts are this machine itself.
    pub fn is_loopback(&self) -> bool {
        self.hosts.iter().all(|known| match &known.host {
            Host::Name(name) => name == "localhost",
            Host::Address(address) => address.is_loopback(),
        })
    }

    /// Checks the host of a request. Returns its port if it names one.
    ///
    /// `target` is the authority in the request's target (absolute form, or `:authority`), `headers` are all `Host`
    /// headers. HTTP/1 requires the header in any case (RFC 9112, 3.2), later versions one of both.
    ///
    /// # Errors
    /// The reason for the rejection.
    pub fn check_host<'a>(
        &self,
        target: Option<&str>,
        mut headers: impl Iterator<Item = &'a [u8]>,
        header_needed: bool,
    ) -> Result<Option<u16>, OriginGuardError> {
        let header = headers.next();
        if headers.next().is_some() {
            return Err(OriginGuardError::HostRepeated);
        }
        if header.is_none() && (header_needed || target.is_none()) {
            return Err(OriginGuardError::HostMissing);
        }
        let header = header.map(parse_host_header).transpose()?;
        let target =
            target.map(|text| Authority::parse(text).ok_or(OriginGuardError::HostUnreadable));
        let named = match (target.transpose()?, header) {
            (Some(target), Some(header)) if !target.same_as(&header) => {
                return Err(OriginGuardError::HostDiffers);
            }
            (Some(named), _) | (None, Some(named)) => named,
            (None, None) => return Err(OriginGuardError::HostMissing),
        };
        let known = self.hosts.iter().any(|rule| rule.admits(&named.host, named.port));
        if known { Ok(named.port) } else { Err(OriginGuardError::HostUnknown) }
    }

    /// Checks the origin of a request. Returns the origin if there is one.
    ///
    /// Clients other than browsers send none. `headers` are all `Origin` headers, `port` is that of the request's
    /// [host](Self::check_host).
    ///
    /// # Errors
    /// The reason for the rejection.
    pub fn check_origin<'a>(
        &self,
        mut headers: impl Iterator<Item = &'a [u8]>,
        port: Option<u16>,
    ) -> Result<Option<&'a str>, OriginGuardError> {
        let Some(header) = headers.next() else { return Ok(None) };
        if headers.next().is_some() {
            return Err(OriginGuardError::OriginRepeated);
        }
        let text = core::str::from_utf8(header).map_err(|_| OriginGuardError::OriginUnreadable)?;
        let origin = Origin::parse(text).ok_or(OriginGuardError::OriginUnreadable)?;
        let listed = self.origins.iter().any(|allowed| allowed == text);
        let is_ours = || self.hosts.iter().any(|rule| rule.admits_page(&origin, port));
        if listed || is_ours() { Ok(Some(text)) } else { Err(OriginGuardError::OriginUnknown) }
    }
}

impl Default for OriginGuard {
    fn default() -> Self {
        Self::loopback()
    }
}

fn parse_host_header(header: &[u8]) -> Result<Authority<&str>, OriginGuardError> {
    let text = core::str::from_utf8(header).map_err(|_| OriginGuardError::HostUnreadable)?;
    Authority::parse(text).ok_or(OriginGuardError::HostUnreadable)
}

/// A host and an optional port. User information is not allowed: in `Host` it only serves deception.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority<T> {
    host: Host<T>,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host<T> {
    Name(T),
    Address(IpAddr),
}

impl<'a> Authority<&'a str> {
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            (Host::Address(IpAddr::V6(address.parse().ok()?)), port)
        } else {
            let end = text.find(':').unwrap_or(text.len());
            (Host::named(&text[..end])?, &text[end..])
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => Some(parse_port(digits)?),
            None if port.is_empty() => None,
            None => return None,
        };
        Some(Self { host, port })
    }

    fn same_as(&self, other: &Self) -> bool {
        self.port == other.port && self.host.same_as(&other.host)
    }

    fn to_lower(&self) -> Authority<String> {
        let host = match self.host {
            Host::Name(name) => Host::Name(name.to_ascii_lowercase()),
            Host::Address(address) => Host::Address(address),
        };
        Authority { host, port: self.port }
    }
}

impl Authority<String> {
    /// Whether the rule matches a host. A rule without a port matches any port.
    fn admits(&self, host: &Host<&str>, port: Option<u16>) -> bool {
        let host = match (&self.host, host) {
            (Host::Name(known), Host::Name(name)) => known.eq_ignore_ascii_case(name),
            (Host::Address(known), Host::Address(address)) => known == address,
            _ => false,
        };
        host && (self.port.is_none() || self.port == port)
    }

    /// Whether an origin belongs to this host: on the rule's port, or, without one, on the port that the request names.
    /// A public host also has pages on the default port, because a proxy in front of it may use another name for this
    /// server.
    fn admits_page(&self, origin: &Origin<'_>, named: Option<u16>) -> bool {
        let port = origin.port();
        let is_named = match named {
            Some(named) => port == named,
            None => origin.authority.port.is_none(),
        };
        let is_usual = || origin.authority.port.is_none() && !self.host.is_loopback();
        self.admits(&origin.authority.host, Some(port))
            && (self.port.is_some() || is_named || is_usual())
    }
}

impl Host<String> {
    fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => address.is_loopback(),
        }
    }
}

impl<'a> Host<&'a str> {
    fn named(text: &'a str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let label = |label: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_allowed)
        };
        // `127.1` and `0x7f.1` are disguised addresses: browsers read a host with a numeric last label as an address.
        let last = text.rsplit('.').next().unwrap_or_default();
        let disguised = last.starts_with(|first: char| first.is_ascii_digit());
        let fits = text.len() <= MAX_NAME && text.split('.').all(label);
        (fits && !disguised).then_some(Self::Name(text))
    }

    fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(one), Self::Name(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => one == other,
        }
    }
}

/// Parses a port: only digits, neither `+80` nor an empty text.
fn parse_port(digits: &str) -> Option<u16> {
    let plain = (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// The origin of a page as browsers write it: in lower case, with nothing after the port (RFC 6454, 4 and 6.2).
struct Origin<'a> {
    secure: bool,
    authority: Authority<&'a str>,
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let secure = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        if authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        Some(Self { secure, authority: Authority::parse(authority)? })
    }

    fn port(&self) -> u16 {
        self.authority.port.unwrap_or(if self.secure { 443 } else { 80 })
    }
}

impl fmt::Display for OriginGuardError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::HostMissing => "the request has no `Host` header; send one",
            Self::HostRepeated => "the request has more than one `Host` header; send one",
            Self::HostUnreadable => {
                "the `Host` header is invalid; send a host name or an IP address with an \
                    optional port"
            }
            Self::HostDiffers => {
                "the request target and the `Host` header have different hosts; send the same host"
            }
            Self::HostUnknown => {
                "this host is not allowed; use a host that is configured in `hosts`"
            }
            Self::OriginRepeated => "the request has more than one `Origin` header; send one",
            Self::OriginUnreadable => {
                "the `Origin` header is not an origin such as `https://app.example.com`"
            }
            Self::OriginUnknown => {
                "this origin is not allowed; allowed origins are configured in `origins`"
            }
        })
    }
}

#[cfg(test)]
mod tests;
