//! The head of a request, as handlers see it.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::{fmt, slice};

use bytes::Bytes;
use http::header::ValueIter;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};

use crate::auth::ProtectedResource;

/// The header capacity that a connection keeps: enough for most requests.
const DEFAULT_HEADERS: usize = 32;

/// The head of a request.
#[derive(Debug, Default)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The target.
    pub uri: Uri,
    /// The HTTP version of the client.
    pub version: Version,
    /// The headers.
    pub headers: RequestHeaders,
    /// The client's address, if it is known: behind a trusted proxy, the address that the proxy reports.
    pub client: Option<IpAddr>,
    /// The SHA-256 of the certificate that the client presented with TLS.
    pub certificate: Option<[u8; 32]>,
    /// The resource that the caller's access token is for, if it has one.
    pub resource: Option<Arc<ProtectedResource>>,
}

impl From<Parts> for RequestHead {
    fn from(Parts { method, uri, version, headers, .. }: Parts) -> Self {
        Self {
            method,
            uri,
            version,
            headers: headers.into(),
            client: None,
            certificate: None,
            resource: None,
        }
    }
}

/// The headers of a request: as raw bytes, where only a few are ever read, or as hyper parsed them.
#[derive(Default)]
pub struct RequestHeaders {
    /// The headers that hyper parsed. Otherwise capacity for the headers of the response.
    map: HeaderMap,
    raw: Option<RawHeaders>,
}

/// Headers as raw bytes.
#[derive(Default)]
pub(crate) struct RawHeaders {
    text: Bytes,
    fields: Vec<HeaderSpan>,
}

/// The positions of a name and its value in the text.
struct HeaderSpan {
    name: Range<usize>,
    value: Range<usize>,
}

impl From<HeaderMap> for RequestHeaders {
    fn from(map: HeaderMap) -> Self {
        Self { map, raw: None }
    }
}

impl RequestHeaders {
    /// The values of a header; the name is given in lower case.
    pub fn get_all<'a>(&'a self, name: &'a str) -> HeaderValues<'a> {
        HeaderValues(match &self.raw {
            Some(lines) => HeaderValueSource::Lines(name, &lines.text, lines.fields.iter()),
            None => HeaderValueSource::Map(self.map.get_all(name).iter()),
        })
    }

    /// The first value of a header; the name is given in lower case.
    pub fn get<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        self.get_all(name).next()
    }

    /// The value of a header that was sent once. Of two values, it is unknown which one a proxy has checked, so they
    /// count as none.
    pub fn get_unique(&self, name: &str) -> Option<HeaderValue> {
        let mut all = self.get_all(name);
        match (all.next(), all.next()) {
            (Some(only), None) => HeaderValue::from_bytes(only).ok(),
            _ => None,
        }
    }

    /// Whether the header is present.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The number of headers; a repeated header counts each time.
    pub fn count(&self) -> usize {
        self.raw.as_ref().map_or(self.map.len(), |lines| lines.fields.len())
    }

    /// Removes a header.
    pub fn remove(&mut self, name: &str) {
        match &mut self.raw {
            Some(RawHeaders { text, fields }) => {
                fields.retain(|field| !field.is_named(name, text));
            }
            None => _ = self.map.remove(name),
        }
    }

    /// Replaces all headers by raw ones; the caller adds them to the returned value.
    pub(crate) fn set_raw(&mut self, text: Bytes) -> &mut RawHeaders {
        let lines = self.raw.get_or_insert_default();
        lines.fields.clear();
        lines.text = text;
        lines
    }

    /// The map of the request's headers, reused for the headers of the response. hyper parses the next head into the
    /// map that it wrote the last one from, so most connections allocate headers once.
    pub(crate) fn take_map(&mut self) -> HeaderMap {
        let mut headers = std::mem::take(&mut self.map);
        headers.clear();
        if headers.capacity() <= DEFAULT_HEADERS { headers } else { HeaderMap::new() }
    }

    /// Removes all headers, and keeps this capacity for the headers of the next response.
    pub(crate) fn clear_keeping(&mut self, headers: HeaderMap) {
        self.map = headers;
        self.set_raw(Bytes::new());
    }
}

/// Shows only the number of headers: some are secrets.
impl fmt::Debug for RequestHeaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Headers").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl RawHeaders {
    /// Adds a header; both parts are slices of the text.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        let [name, value] = [name, value].map(|part| {
            let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
            start..start + part.len()
        });
        self.fields.push(HeaderSpan { name, value });
    }
}

/// The values of a header.
pub struct HeaderValues<'a>(HeaderValueSource<'a>);

enum HeaderValueSource<'a> {
    Lines(&'a str, &'a [u8], slice::Iter<'a, HeaderSpan>),
    Map(ValueIter<'a, HeaderValue>),
}

impl fmt::Debug for HeaderValues<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Values")
    }
}

impl<'a> Iterator for HeaderValues<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match &mut self.0 {
            HeaderValueSource::Lines(name, text, fields) => {
                let field = fields.find(|field| field.is_named(name, text))?;
                Some(&text[field.value.clone()])
            }
            HeaderValueSource::Map(values) => values.next().map(HeaderValue::as_bytes),
        }
    }
}

impl HeaderSpan {
    fn is_named(&self, name: &str, text: &[u8]) -> bool {
        if self.name.len() != name.len() {
            return false;
        }
        let (written, name) = (&text[self.name.clone()], name.as_bytes());
        // Most clients write names in lower case.
        written == name || written.eq_ignore_ascii_case(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    const WRITTEN: [(&str, &str); 4] =
        [("Host", "localhost"), ("ACCEPT", "a"), ("accept", "b"), ("Authorization", "Bearer a")];

    /// The same headers, raw and parsed.
    fn both() -> [RequestHeaders; 2] {
        let text: String =
            WRITTEN.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = Bytes::from(text);
        let mut lines = RequestHeaders::default();
        let written = lines.set_raw(text.clone());
        let mut offset = 0;
        for (name, value) in WRITTEN {
            let middle = offset + name.len();
            written.add(&text[offset..middle], &text[middle + 2..middle + 2 + value.len()]);
            offset = middle + 2 + value.len() + 2;
        }
        let mut map = HeaderMap::new();
        for (name, value) in WRITTEN {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_static(value));
        }
        [lines, map.into()]
    }

    #[test]
    fn header_names_are_case_insensitive() {
        for headers in both() {
            assert_eq!(headers.count(), 4);
            assert_eq!(headers.get("host"), Some(&b"localhost"[..]));
            assert_eq!(headers.get_all("accept").collect::<Vec<_>>(), [b"a", b"b"]);
            assert!(headers.contains("authorization") && !headers.contains("origin"));
            assert_eq!(headers.get_all("origin").next(), None);
        }
    }

    #[test]
    fn two_are_as_good_as_none_where_there_may_be_one() {
        for headers in both() {
            assert_eq!(headers.get_unique("authorization").unwrap(), "Bearer a");
            assert_eq!(headers.get_unique("accept"), None);
            assert_eq!(headers.get_unique("origin"), None);
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        for headers in both() {
            assert_eq!(format!("{headers:?}"), "Headers { count: 4, .. }");
        }
    }

    #[test]
    fn a_removed_header_is_absent_and_the_others_stay() {
        for mut headers in both() {
            headers.remove("accept");
            assert_eq!((headers.count(), headers.get("accept")), (2, None));
            assert!(headers.contains("host") && headers.contains("authorization"));
            headers.clear_keeping(HeaderMap::new());
            assert_eq!((headers.count(), headers.get("host")), (0, None));
        }
    }
}
