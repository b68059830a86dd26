//! The head of a request, as those see it who answer it.

use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use std::slice;

use bytes::Bytes;
use http::header::ValueIter;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};

/// The room for headers that a connection keeps: that of most requests.
const USUAL_HEADERS: usize = 32;

/// The head of a request.
#[derive(Debug, Default)]
pub struct Head {
    /// What is to be done.
    pub method: Method,
    /// What it is to be done with.
    pub uri: Uri,
    /// The version of HTTP that its client speaks.
    pub version: Version,
    /// What else is said about it.
    pub headers: Headers,
    /// The address of its client, as far as it is known: behind a proxy that is trusted, the one that this tells.
    pub client: Option<IpAddr>,
}

impl From<Parts> for Head {
    fn from(Parts { method, uri, version, headers, .. }: Parts) -> Self {
        Self { method, uri, version, headers: headers.into(), client: None }
    }
}

/// The headers of a request: as they were written, where only a few of them are ever looked at, or as others have read
/// them.
#[derive(Default)]
pub struct Headers {
    /// Those that others have read. Otherwise room for those of the response.
    map: HeaderMap,
    lines: Option<Lines>,
}

/// Headers as they were written.
#[derive(Default)]
pub(super) struct Lines {
    text: Bytes,
    fields: Vec<Field>,
}

/// Where a name and its value are in the text.
struct Field {
    name: Range<usize>,
    value: Range<usize>,
}

impl From<HeaderMap> for Headers {
    fn from(map: HeaderMap) -> Self {
        Self { map, lines: None }
    }
}

impl Headers {
    /// The values of a header, whose name is given in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> Values<'a> {
        Values(match &self.lines {
            Some(lines) => Source::Lines(name, &lines.text, lines.fields.iter()),
            None => Source::Map(self.map.get_all(name).iter()),
        })
    }

    /// The first value of a header, whose name is given in lower case.
    pub fn get<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// The value of a header that was sent once. Of two, nobody could tell which one another program on the way has
    /// checked, so they are as good as none.
    pub fn only(&self, name: &str) -> Option<HeaderValue> {
        let mut all = self.all(name);
        match (all.next(), all.next()) {
            (Some(only), None) => HeaderValue::from_bytes(only).ok(),
            _ => None,
        }
    }

    /// Whether there is such a header.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// How many headers there are; one that was sent several times counts as often.
    pub fn count(&self) -> usize {
        self.lines.as_ref().map_or(self.map.len(), |lines| lines.fields.len())
    }

    /// Forgets a header.
    pub fn remove(&mut self, name: &str) {
        match &mut self.lines {
            Some(Lines { text, fields }) => {
                fields.retain(|field| !field.is_named(name, text));
            }
            None => _ = self.map.remove(name),
        }
    }

    /// Takes others in place of all of them: what is added to those that are given back.
    pub(super) fn written(&mut self, text: Bytes) -> &mut Lines {
        let lines = self.lines.get_or_insert_default();
        lines.fields.clear();
        lines.text = text;
        lines
    }

    /// Room for the headers of the response: that of the request's, which nobody needs any more. hyper reads the next head
    /// into what it wrote the last one from, so most connections make room for headers once.
    pub(super) fn take_room(&mut self) -> HeaderMap {
        let mut room = std::mem::take(&mut self.map);
        room.clear();
        if room.capacity() <= USUAL_HEADERS { room } else { HeaderMap::new() }
    }

    /// Forgets all of them, and keeps room for the headers of the next response.
    pub(super) fn rest(&mut self, room: HeaderMap) {
        self.map = room;
        self.written(Bytes::new());
    }
}

/// Tells no more than how many there are: some are secrets.
impl fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Headers").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Lines {
    /// Adds a header, both parts of which are in the text.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let [name, value] = [name, value].map(|part| {
            let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
            start..start + part.len()
        });
        self.fields.push(Field { name, value });
    }
}

/// The values of a header.
pub struct Values<'a>(Source<'a>);

enum Source<'a> {
    Lines(&'a str, &'a [u8], slice::Iter<'a, Field>),
    Map(ValueIter<'a, HeaderValue>),
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Values")
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match &mut self.0 {
            Source::Lines(name, text, fields) => {
                let field = fields.find(|field| field.is_named(name, text))?;
                Some(&text[field.value.clone()])
            }
            Source::Map(values) => values.next().map(HeaderValue::as_bytes),
        }
    }
}

impl Field {
    fn is_named(&self, name: &str, text: &[u8]) -> bool {
        if self.name.len() != name.len() {
            return false;
        }
        let (written, name) = (&text[self.name.clone()], name.as_bytes());
        // Most write names in lower case.
        written == name || written.eq_ignore_ascii_case(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    const WRITTEN: [(&str, &str); 4] =
        [("Host", "localhost"), ("ACCEPT", "a"), ("accept", "b"), ("Authorization", "Bearer a")];

    /// The same headers, as they were written and as others have read them.
    fn both() -> [Headers; 2] {
        let text: String =
            WRITTEN.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = Bytes::from(text);
        let mut lines = Headers::default();
        let written = lines.written(text.clone());
        let mut at = 0;
        for (name, value) in WRITTEN {
            let middle = at + name.len();
            written.add(&text[at..middle], &text[middle + 2..middle + 2 + value.len()]);
            at = middle + 2 + value.len() + 2;
        }
        let mut map = HeaderMap::new();
        for (name, value) in WRITTEN {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_static(value));
        }
        [lines, map.into()]
    }

    #[test]
    fn headers_are_found_however_their_names_are_written() {
        for headers in both() {
            assert_eq!(headers.count(), 4);
            assert_eq!(headers.get("host"), Some(&b"localhost"[..]));
            assert_eq!(headers.all("accept").collect::<Vec<_>>(), [b"a", b"b"]);
            assert!(headers.contains("authorization") && !headers.contains("origin"));
            assert_eq!(headers.all("origin").next(), None);
        }
    }

    #[test]
    fn two_are_as_good_as_none_where_there_may_be_one() {
        for headers in both() {
            assert_eq!(headers.only("authorization").unwrap(), "Bearer a");
            assert_eq!(headers.only("accept"), None);
            assert_eq!(headers.only("origin"), None);
        }
    }

    #[test]
    fn secrets_are_not_told() {
        for headers in both() {
            assert_eq!(format!("{headers:?}"), "Headers { count: 4, .. }");
        }
    }

    #[test]
    fn what_is_removed_is_gone_and_the_others_stay() {
        for mut headers in both() {
            headers.remove("accept");
            assert_eq!((headers.count(), headers.get("accept")), (2, None));
            assert!(headers.contains("host") && headers.contains("authorization"));
            headers.rest(HeaderMap::new());
            assert_eq!((headers.count(), headers.get("host")), (0, None));
        }
    }
}
