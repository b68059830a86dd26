//! A web address, kept as it was written.
//!
//! Issuers, resources and redirect addresses are compared byte by byte and sent as they came. A type that normalises
//! them would break these comparisons, so this one only finds the parts of the text.

use std::fmt;
use std::net::IpAddr;

/// The maximum length of an address, in bytes.
const MAX_BYTES: usize = 2_048;

/// An absolute `http` or `https` URL without a user part and without a fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct WebUrl {
    text: String,
    is_https: bool,
    /// In lower case, without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Where the path begins; the length of the text if there is none.
    path: usize,
    /// Where the query begins, with its question mark; the length of the text if there is none.
    query: usize,
}

/// Why a text is not a web address that is used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// It is longer than 2,048 bytes.
    TooLong,
    /// It has a space, a quotation mark, a control character or a character outside of ASCII.
    Character,
    /// It begins neither with `http://` nor with `https://`.
    Scheme,
    /// It has a user part.
    User,
    /// It has a fragment.
    Fragment,
    /// It has no host, or an unreadable port.
    Host,
}

impl fmt::Display for UrlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "is longer than 2,048 bytes",
            Self::Character => "has a character that a URL cannot have",
            Self::Scheme => "begins neither with http:// nor with https://",
            Self::User => "has a user part",
            Self::Fragment => "has a fragment",
            Self::Host => "has no readable host and port",
        })
    }
}

impl std::error::Error for UrlError {}

impl WebUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// When the text is not an address that is used here.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > MAX_BYTES {
            return Err(UrlError::TooLong);
        }
        if !text.bytes().all(is_url_byte) {
            return Err(UrlError::Character);
        }
        let (is_https, start) = match text.as_bytes() {
            [
                b'h' | b'H',
                b't' | b'T',
                b't' | b'T',
                b'p' | b'P',
                b's' | b'S',
                b':',
                b'/',
                b'/',
                ..,
            ] => (true, 8),
            [b'h' | b'H', b't' | b'T', b't' | b'T', b'p' | b'P', b':', b'/', b'/', ..] => {
                (false, 7)
            }
            _ => return Err(UrlError::Scheme),
        };
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        let rest = &text[start..];
        let path = start + rest.find(['/', '?']).unwrap_or(rest.len());
        let query = text[path..].find('?').map_or(text.len(), |at| path + at);
        let authority = &text[start..path];
        if authority.contains('@') {
            return Err(UrlError::User);
        }
        let (host, port) = split_authority(authority).ok_or(UrlError::Host)?;
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(UrlError::Host)?,
            None if is_https => 443,
            None => 80,
        };
        let host = host.to_ascii_lowercase();
        Ok(Self { text: text.to_owned(), is_https, host, port, path, query })
    }

    /// The address as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// The host in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Scheme, host and port as they were written, without a slash at the end.
    pub fn origin(&self) -> &str {
        &self.text[..self.path]
    }

    /// The path, which is empty or begins with a slash.
    pub fn path(&self) -> &str {
        &self.text[self.path..self.query]
    }

    /// The query with its question mark, or nothing.
    pub fn query(&self) -> &str {
        &self.text[self.query..]
    }

    /// The address without its query.
    pub fn without_query(&self) -> &str {
        &self.text[..self.query]
    }

    /// The address in one spelling, to find what is stored for it: scheme and host in lower case, without a default port,
    /// and without the slash of an empty path. It is never sent.
    pub fn canonical(&self) -> String {
        let (scheme, default_port) = if self.is_https { ("https", 443) } else { ("http", 80) };
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let port =
            if self.port == default_port { String::new() } else { format!(":{}", self.port) };
        let path = if self.path() == "/" { "" } else { self.path() };
        format!("{scheme}://{host}{port}{path}{}", self.query())
    }

    /// Whether both addresses have the same scheme, host and port.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (self.is_https, &self.host, self.port) == (other.is_https, &other.host, other.port)
    }

    /// Whether the host is this machine by its text: `localhost`, a name below it, or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let is_name = self.host == "localhost" || self.host.ends_with(".localhost");
        is_name || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether the host is written out as an IP address.
    pub fn is_address(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok()
    }

    /// Whether both addresses name the same host. All names of this machine are the same host.
    pub fn is_same_host(&self, other: &Self) -> bool {
        self.host == other.host || (self.is_loopback() && other.is_loopback())
    }
}

impl fmt::Debug for WebUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, formatter)
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The characters of RFC 3986, section 2, and no others. A program that opens an address in a browser passes it as an
/// argument, so quotation marks and spaces are refused here.
fn is_url_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

/// Splits host and port. The host of an IPv6 address loses its brackets.
fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (host, rest) = inside.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            let (host, rest) = authority.split_at(end);
            (host, rest)
        }
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => {
            Some((host, Some(port)))
        }
        Some(_) => None,
        None if rest.is_empty() => Some((host, None)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{UrlError, WebUrl};

    #[test]
    fn the_parts_are_found_and_the_text_stays() {
        let url = WebUrl::parse("HTTPS://Mcp.Example.com:8443/a/b?c=d").unwrap();
        assert_eq!(url.as_str(), "HTTPS://Mcp.Example.com:8443/a/b?c=d");
        assert_eq!((url.host(), url.path(), url.query()), ("mcp.example.com", "/a/b", "?c=d"));
        assert_eq!(url.origin(), "HTTPS://Mcp.Example.com:8443");
        assert_eq!(url.without_query(), "HTTPS://Mcp.Example.com:8443/a/b");
        let bare = WebUrl::parse("https://mcp.example.com?x").unwrap();
        assert_eq!(
            (bare.path(), bare.query(), bare.origin()),
            ("", "?x", "https://mcp.example.com")
        );
    }

    proptest! {
        #[test]
        fn the_parts_of_any_address_are_its_text(text in any::<String>(), rest in "[!-~]{0,40}") {
            for text in [text.clone(), format!("https://{rest}"), format!("http://{text}")] {
                if let Ok(url) = WebUrl::parse(&text) {
                    let whole = format!("{}{}{}", url.origin(), url.path(), url.query());
                    prop_assert_eq!(&whole, &text);
                    prop_assert!(!url.host().is_empty() && !url.origin().contains('@'));
                }
            }
        }
    }

    #[test]
    fn origins_are_compared_without_case_and_with_default_ports() {
        let same = |left: &str, right: &str| {
            WebUrl::parse(left).unwrap().is_same_origin(&WebUrl::parse(right).unwrap())
        };
        assert!(same("https://A.example/x", "https://a.example:443"));
        assert!(same("http://a.example", "http://a.example:80/y"));
        assert!(!same("http://a.example", "https://a.example"));
        assert!(!same("https://a.example", "https://a.example:444"));
    }

    #[test]
    fn hosts_of_this_machine_are_one() {
        let parse = |text| WebUrl::parse(text).unwrap();
        assert!(parse("http://[::1]:1/").is_same_host(&parse("http://127.0.0.1:2/")));
        assert!(
            parse("http://localhost").is_loopback() && parse("http://a.localhost").is_loopback()
        );
        assert!(!parse("http://localhost.example").is_loopback());
    }

    #[test]
    fn unusable_addresses_are_refused() {
        for (text, error) in [
            ("javascript:alert(1)", UrlError::Scheme),
            ("file:///etc/passwd", UrlError::Scheme),
            ("-x", UrlError::Scheme),
            ("https://x\" --y", UrlError::Character),
            ("https://x\ny", UrlError::Character),
            ("https://ä.example", UrlError::Character),
            ("https://user:pw@x/", UrlError::User),
            ("https://x/#f", UrlError::Fragment),
            ("https:///x", UrlError::Host),
            ("https://x:0/", UrlError::Host),
            ("https://x:65536/", UrlError::Host),
            ("https://[::1/", UrlError::Host),
            ("https://[x]/", UrlError::Host),
        ] {
            assert_eq!(WebUrl::parse(text).unwrap_err(), error, "{text}");
        }
        assert_eq!(
            WebUrl::parse(&format!("https://x/{}", "a".repeat(2048))).unwrap_err(),
            UrlError::TooLong
        );
    }

    #[test]
    fn spellings_of_one_address_have_one_canonical_form() {
        let same = ["https://x", "https://x/", "HTTPS://X:443", "https://x:443/"];
        for text in same {
            assert_eq!(WebUrl::parse(text).unwrap().canonical(), "https://x", "{text}");
        }
        for text in ["https://x/mcp", "https://x/mcp/", "https://x:8443", "https://x?a=B"] {
            assert_eq!(WebUrl::parse(text).unwrap().canonical(), text);
        }
        assert_eq!(WebUrl::parse("http://[::1]:80/A").unwrap().canonical(), "http://[::1]/A");
        assert_eq!(WebUrl::parse("https://x/?a").unwrap().canonical(), "https://x?a");
    }
}
