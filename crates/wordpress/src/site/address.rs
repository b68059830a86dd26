//! The address of a site and of its REST routes.

use std::fmt::Write;

use http::Uri;

/// The form of route URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkStyle {
    /// `/wp-json/wp/v2/posts`.
    Pretty,
    /// `/?rest_route=/wp/v2/posts`, which works without permalinks.
    Plain,
}

/// The address of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteAddress {
    /// The address without a trailing slash.
    base: String,
    is_encrypted: bool,
}

impl SiteAddress {
    /// Parses the address of a site, which may include a path.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text.trim().parse().map_err(|_| "is no URL")?;
        let is_encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("begins with neither https:// nor http://"),
        };
        let authority = uri.authority().ok_or("has no host")?;
        if authority.as_str().contains('@') {
            return Err("contains a password; callers use their own");
        }
        if uri.query().is_some() {
            return Err("has a query; write the URL of the site's front page");
        }
        let scheme = if is_encrypted { "https" } else { "http" };
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/wp-json").unwrap_or(path);
        Ok(Self { base: format!("{scheme}://{authority}{path}"), is_encrypted })
    }

    /// Whether requests to it are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        let uri: Option<Uri> = self.base.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback =
            |address: &str| address.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        host.eq_ignore_ascii_case("localhost") || is_loopback(address)
    }

    /// The address as configured, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.base
    }

    /// The URL of a route such as `/wp/v2/posts`, whose segments are already encoded.
    pub(crate) fn route(
        &self,
        route: &str,
        query: &[(String, String)],
        links: LinkStyle,
    ) -> Option<Uri> {
        let mut url = match links {
            LinkStyle::Pretty => format!("{}/wp-json{route}", self.base),
            LinkStyle::Plain => format!("{}/?rest_route={route}", self.base),
        };
        for (key, value) in query {
            url.push(if url.contains('?') { '&' } else { '?' });
            percent_encode(key, &mut url);
            url.push('=');
            percent_encode(value, &mut url);
        }
        url.parse().ok()
    }
}

/// Encodes a value so that it stays one path segment or one part of a parameter.
pub(crate) fn percent_encode(value: &str, out: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_host_or_a_folder_of_one() {
        let read = |text| SiteAddress::parse(text).map(|address| address.base);
        assert_eq!(read("https://example.org/").unwrap(), "https://example.org");
        assert_eq!(read("http://localhost:8088/blog/").unwrap(), "http://localhost:8088/blog");
        assert_eq!(read("https://example.org/wp-json/").unwrap(), "https://example.org");
        for invalid in
            ["", "example.org", "ftp://example.org", "https://a:b@example.org", "https://x/?a=b"]
        {
            assert!(SiteAddress::parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn routes_work_with_and_without_permalinks() {
        let address = SiteAddress::parse("http://[::1]:80/blog").unwrap();
        assert!(address.is_loopback() && !address.is_encrypted());
        let query = [("search".to_owned(), "a&b=ü".to_owned())];
        let at = |links| address.route("/wp/v2/posts", &query, links).unwrap().to_string();
        let expected = "http://[::1]:80/blog/wp-json/wp/v2/posts?search=a%26b%3D%C3%BC";
        assert_eq!(at(LinkStyle::Pretty), expected);
        let expected = "http://[::1]:80/blog/?rest_route=/wp/v2/posts&search=a%26b%3D%C3%BC";
        assert_eq!(at(LinkStyle::Plain), expected);
    }
}
