//! The requests that a login makes, and the way they are sent.

use std::fmt;
use std::future::Future;

use crate::error::OAuthError;
use crate::web_url::WebUrl;

/// Which addresses a request may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Public ones. A document of another server named the host, so it must not lead into a private network.
    Public,
    /// All.
    Anywhere,
}

impl Reach {
    /// The reach of a request to a host that a document names: private addresses only if the MCP server itself has that
    /// name.
    pub(crate) fn of(url: &WebUrl, server: &WebUrl, allows_private: bool) -> Self {
        match allows_private || url.is_same_host(server) {
            true => Self::Anywhere,
            false => Self::Public,
        }
    }
}

/// A request of a login. Its `Debug` output hides headers and body, which have secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The address.
    pub url: WebUrl,
    /// Which addresses the host may have.
    pub reach: Reach,
    /// Headers besides `Accept: application/json`, `User-Agent` and the type of the body.
    pub headers: Vec<(&'static str, String)>,
    /// The body of a POST; a GET has none.
    pub body: Option<Body>,
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Request({}, {:?})", self.url.without_query(), self.reach)
    }
}

/// The body of a POST.
#[derive(Clone, PartialEq, Eq)]
pub enum Body {
    /// An HTML form.
    Form(String),
    /// A JSON document.
    Json(String),
}

/// A response. Its `Debug` output hides the body, which may have tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The value of the header `DPoP-Nonce`.
    pub dpop_nonce: Option<String>,
    /// How long the response may be kept, in seconds: `max-age` of the header `Cache-Control`.
    pub max_age: Option<u64>,
    /// The body, at most [`MAX_DOCUMENT_BYTES`](crate::http::document::MAX_DOCUMENT_BYTES) and one byte.
    pub body: Vec<u8>,
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Response({})", self.status)
    }
}

impl Response {
    /// Whether the status says that the request was successful.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Sends requests. An implementation limits the time, the size and the redirects.
pub trait Exchange: Send + Sync {
    /// Sends a request and reads the response.
    fn send(&self, request: Request) -> impl Future<Output = Result<Response, OAuthError>> + Send;

    /// The time in seconds since 1970.
    fn now(&self) -> u64;

    /// Waits this many seconds.
    fn wait(&self, seconds: u64) -> impl Future<Output = ()> + Send;
}

/// The parameters of a form or of a query, in their order. Its `Debug` output hides them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Form(String);

impl fmt::Debug for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Form(…)")
    }
}

impl Form {
    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        form_encode(name, &mut self.0);
        self.0.push('=');
        form_encode(value, &mut self.0);
        self
    }

    /// Adds a parameter, if there is a value.
    #[must_use]
    pub fn with_option(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds the parameters of another form.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        if !self.0.is_empty() && !other.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(&other.0);
        self
    }

    /// The encoded text.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// Encodes a text for a form (RFC 6749, appendix B).
pub fn form_encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
                out.push(char::from(byte))
            }
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// Decodes the parameters of a query. `None` if an escape is broken or the text is not UTF-8.
pub fn form_decode(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name)?, decode(value)?))
    });
    decoded.collect()
}

fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{Form, form_decode};

    #[test]
    fn broken_escapes_are_refused() {
        assert_eq!(form_decode("a=%"), None);
        assert_eq!(form_decode("a=%4"), None);
        assert_eq!(form_decode("a=%zz"), None);
        assert_eq!(form_decode("a=%ff"), None);
        assert_eq!(
            form_decode("a&b=+%20"),
            Some(vec![("a".into(), String::new()), ("b".into(), "  ".into())])
        );
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(name in any::<String>(), value in any::<String>()) {
            let form = Form::default().with(&name, &value).with_option("x", None).with_option("y", Some("1"));
            let text = form.into_text();
            assert!(text.is_ascii());
            assert_eq!(form_decode(&text), Some(vec![(name, value), ("y".into(), "1".into())]));
        }
    }
}
