//! Verdicts on `Host` and `Origin`: what keeps web pages away from a server on the same machine.
//!
//! A page whose own name suddenly leads to 127.0.0.1 (DNS rebinding) still sends that name as the host, and
//! a page that calls `http://localhost:8080` by its address sends where it comes from as the origin. So a
//! request must name a host that the server is known by, and come from no page at all or from an allowed one.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name of a host (RFC 1035, 2.3.4).
const MAX_NAME: usize = 253;
/// The longest part of a name (RFC 1035, 2.3.4).
const MAX_LABEL: usize = 63;

/// The hosts that a server is known by, and the origins that may call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginGuard {
    hosts: Vec<Authority<String>>,
    origins: Vec<String>,
}

/// Why a request is turned away; its text says what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginGuardError {
    /// There is no host.
    HostMissing,
    /// There is more than one host.
    HostRepeated,
    /// The host is none.
    HostUnreadable,
    /// The target of the request names another host than the header.
    HostDiffers,
    /// The server is not known by this host.
    HostUnknown,
    /// There is more than one origin.
    OriginRepeated,
    /// The origin is none that a browser writes, or is hidden.
    OriginUnreadable,
    /// Pages of this origin may not call the server.
    OriginUnknown,
}

/// A text that is no host or no origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHostOrOrigin;

impl OriginGuard {
    /// The server is known as `localhost`, `127.0.0.1` and `[::1]`, whatever the port, and its own pages may
    /// call it. Pages of other servers on the same machine may not: who knows what those serve.
    pub fn loopback() -> Self {
        let any_port = |host| Authority { host, port: None };
        let hosts = [
            Host::Name("localhost".to_string()),
            Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Host::Address(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ];
        Self { hosts: hosts.map(any_port).into(), origins: Vec::new() }
    }

    /// Lets the server be known by one more host: a name or an address, with any port unless one is written.
    ///
    /// # Errors
    /// When the text is no host.
    pub fn allow_host(&mut self, written: &str) -> Result<(), InvalidHostOrOrigin> {
        let authority = Authority::parse(written).ok_or(InvalidHostOrOrigin)?;
        self.hosts.push(authority.to_lower());
        Ok(())
    }

    /// Lets the server be known by one more address, with any port.
    pub fn allow_address(&mut self, address: IpAddr) {
        self.hosts.push(Authority { host: Host::Address(address), port: None });
    }

    /// Lets pages of one more origin call: `https://app.example.com`, with the port if it is an unusual one.
    ///
    /// # Errors
    /// When the text is not an origin as browsers write it.
    pub fn allow_origin(&mut self, written: &str) -> Result<(), InvalidHostOrOrigin> {
        Origin::parse(written).ok_or(InvalidHostOrOrigin)?;
        self.origins.push(written.to_string());
        Ok(())
    }

    /// Whether a request may name this host: gives its port back if it names one.
    ///
    /// `target` is the authority in the request's target (absolute form, or `:authority`), `headers` are all
    /// `Host` headers. HTTP/1 needs the header in any case (RFC 9112, 3.2), later versions either of both.
    ///
    /// # Errors
    /// Why it may not.
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

    /// Whether a page of this origin may call: gives the origin back if there is one.
    ///
    /// Programs that are no browsers send none. `headers` are all `Origin` headers, `port` is that of the
    /// [host](Self::check_host) that the request names.
    ///
    /// # Errors
    /// Why it may not.
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

/// A host and perhaps a port. User information is no part of it: in `Host` it is always a disguise.
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
    /// Whether a host is this one. A rule without a port admits any.
    fn admits(&self, host: &Host<&str>, port: Option<u16>) -> bool {
        let host = match (&self.host, host) {
            (Host::Name(known), Host::Name(name)) => known.eq_ignore_ascii_case(name),
            (Host::Address(known), Host::Address(address)) => known == address,
            _ => false,
        };
        host && (self.port.is_none() || self.port == port)
    }

    /// Whether a page is this host's: of its port, or, where the rule has none, of the one that the request
    /// names. A public name also has pages at the usual port, in front of which a proxy may stand that calls
    /// us by another name.
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
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(letter)
        };
        // `127.1` and `0x7f.1` are addresses in disguise: browsers read a last part of digits as one.
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

/// A port: digits alone, so neither `+80` nor nothing.
fn parse_port(digits: &str) -> Option<u16> {
    let plain = (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Where a page comes from, as browsers write it: in small letters, with nothing behind the port.
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
            Self::HostMissing => "the request names no host; send one `Host` header",
            Self::HostRepeated => "the request has more than one `Host` header; send one",
            Self::HostUnreadable => {
                "the `Host` header is not a host; send a name or an address, and perhaps a port"
            }
            Self::HostDiffers => {
                "the target of the request and its `Host` header name different hosts; send the same"
            }
            Self::HostUnknown => {
                "this server is not known by that host; call it by a name that is configured in `hosts`"
            }
            Self::OriginRepeated => "the request has more than one `Origin` header; send one",
            Self::OriginUnreadable => {
                "the `Origin` header is not an origin such as `https://app.example.com`"
            }
            Self::OriginUnknown => {
                "pages of that origin may not call this server; allowed ones are configured in `origins`"
            }
        })
    }
}

#[cfg(test)]
mod tests;
