//! The proxies that the environment names, and the choice of the proxy for a request.

mod bypass;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};

use crate::client::transport::http::conn::proxy::bypass::Bypass;

/// The proxies for requests. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Arc<ProxyRules>);

#[derive(Debug, Default)]
struct ProxyRules {
    http: Option<Result<Proxy, String>>,
    https: Option<Result<Proxy, String>>,
    bypass: Bypass,
}

/// A proxy and its credentials.
#[derive(Clone, PartialEq)]
pub(crate) struct Proxy {
    /// Its scheme, host and port.
    pub(crate) url: Uri,
    /// The value of `Proxy-Authorization`. Only the proxy gets it.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Proxies {
    /// No proxy: every connection is direct.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The proxies that the environment of this process names: `http_proxy`, `https_proxy` and `all_proxy`, with the
    /// exceptions in `no_proxy`. Upper-case names work as well. An empty variable counts as unset.
    #[must_use]
    pub fn of_environment() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    /// The same from any variables.
    #[must_use]
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let either = |name: &str| {
            set(name).map(|value| (name.to_owned(), value)).or_else(|| {
                let capital = name.to_uppercase();
                // A web server passes request headers to a CGI program as variables, so this one may come from the
                // caller.
                let is_of_caller = capital == "HTTP_PROXY" && variable("REQUEST_METHOD").is_some();
                let value = set(&capital).filter(|_| !is_of_caller)?;
                Some((capital, value))
            })
        };
        let proxy = |name: &str| {
            let (name, value) = either(name).or_else(|| either("all_proxy"))?;
            Some(
                Proxy::parse(value.trim())
                    .map_err(|reason| format!("the proxy of `{name}` {reason}")),
            )
        };
        let bypass = either("no_proxy").map(|(_, list)| Bypass::parse(&list));
        Self(Arc::new(ProxyRules {
            http: proxy("http_proxy"),
            https: proxy("https_proxy"),
            bypass: bypass.unwrap_or_default(),
        }))
    }

    /// The proxy for a URL, if there is one.
    ///
    /// # Errors
    /// With the error in the proxy's setting: a direct connection would ignore the setting.
    pub(crate) fn proxy_for(&self, url: &Uri) -> Result<Option<&Proxy>, &str> {
        let proxy = match url.scheme_str() {
            Some("https") => self.0.https.as_ref(),
            _ => self.0.http.as_ref(),
        };
        match (proxy, url.host()) {
            (Some(proxy), Some(host)) if !self.0.bypass.contains(host) => {
                proxy.as_ref().map(Some).map_err(String::as_str)
            }
            _ => Ok(None),
        }
    }
}

impl Proxy {
    fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = scheme.to_ascii_lowercase();
        if !["http", "https"].contains(&scheme.as_str()) {
            return Err(format!("has the unsupported scheme `{scheme}`; use http:// or https://"));
        }
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let url: Option<Uri> = format!("{scheme}://{host}/").parse().ok();
        let url = url.filter(|url| url.host().is_some_and(|host| !host.is_empty()));
        // It may hold a password, so it is not repeated.
        let url = url.ok_or("is not a valid URL; write it as http://host:port")?;
        Ok(Self { url, authorization: user.and_then(basic_authorization) })
    }

    /// Its address, for messages.
    pub(crate) fn location(&self) -> &str {
        self.url.authority().map_or("", |authority| authority.as_str())
    }
}

impl fmt::Debug for Proxy {
    /// Omits the credentials.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Proxy").field(&self.location()).finish()
    }
}

/// The user and the password of a URL as a header (RFC 7617).
fn basic_authorization(user: &str) -> Option<HeaderValue> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let pair = [percent_decode(name), vec![b':'], percent_decode(password)].concat();
    let mut header = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Decodes the percent escapes of a part of a URL.
fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut decoded, mut index) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(index) {
        let digits = text.get(index + 1..index + 3).filter(|_| *byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                decoded.push(escaped);
                index += 3;
            }
            None => {
                decoded.push(*byte);
                index += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Proxies::read(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    fn way(variables: &[(&str, &str)], url: &'static str) -> Result<Option<String>, String> {
        let proxies = proxies(variables);
        let proxy = proxies.proxy_for(&Uri::from_static(url)).map_err(str::to_owned)?;
        Ok(proxy.map(|proxy| proxy.url.to_string()))
    }

    #[test]
    fn each_scheme_has_its_proxy_and_lower_case_variables_take_precedence() {
        let all = [
            ("HTTP_PROXY", "http://big:1"),
            ("http_proxy", "small:2"),
            ("HTTPS_PROXY", "HTTPS://big:3/x"),
            ("ALL_PROXY", "http://all:4"),
        ];
        assert_eq!(way(&all, "http://a/"), Ok(Some("http://small:2/".to_owned())));
        assert_eq!(way(&all, "https://a/"), Ok(Some("https://big:3/".to_owned())));
        assert_eq!(way(&all[3..], "https://a/"), Ok(Some("http://all:4/".to_owned())));
        assert_eq!(way(&[("http_proxy", " "), ("HTTPS_PROXY", "x:1")], "http://a/"), Ok(None));
        assert_eq!(way(&[], "https://a/"), Ok(None));
    }

    #[test]
    fn a_header_of_a_caller_names_no_proxy() {
        let of_cgi = [("HTTP_PROXY", "http://evil:1"), ("REQUEST_METHOD", "GET")];
        assert_eq!(way(&of_cgi, "http://a/"), Ok(None));
    }

    #[test]
    fn hosts_that_are_named_are_connected_to_directly() {
        let some = [("https_proxy", "http://p:1"), ("NO_PROXY", "example.com,127.0.0.0/8")];
        assert_eq!(way(&some, "https://a.example.com/"), Ok(None));
        assert_eq!(way(&some, "https://127.0.0.1:8/"), Ok(None));
        assert!(way(&some, "https://example.org/").unwrap().is_some());
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_an_error_that_keeps_its_password() {
        let socks = way(&[("ALL_PROXY", "socks5://u:secret@p:1")], "http://a/").unwrap_err();
        assert!(
            socks.starts_with("the proxy of `ALL_PROXY` has the unsupported scheme `socks5`"),
            "{socks}"
        );
        let problem = way(&[("https_proxy", "http://u:secret@ho st:1")], "https://a/").unwrap_err();
        assert!(
            problem.contains("`https_proxy` is not a valid URL") && !problem.contains("secret"),
            "{problem}"
        );
        assert_eq!(way(&[("https_proxy", "socks5://p:1")], "http://a/"), Ok(None));
    }

    #[test]
    fn the_password_of_a_proxy_is_its_own() {
        let proxy = Proxy::parse("http://ann:p%40ss:w%2@proxy:3128").unwrap();
        assert_eq!(proxy.url, "http://proxy:3128/");
        let header = proxy.authorization.clone().unwrap();
        assert_eq!(header, format!("Basic {}", STANDARD.encode("ann:p@ss:w%2")).as_str());
        assert!(header.is_sensitive() && !format!("{proxy:?}").contains("ann"));
        assert_eq!(Proxy::parse("[::1]:80").unwrap().url, "http://[::1]:80/");
        assert_eq!(Proxy::parse("proxy").unwrap().authorization, None);
    }
}
