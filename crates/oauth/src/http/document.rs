//! JSON documents of other servers, read within limits.

use std::fmt;

use creole_proto::wire::scan::{ScanLimits, scan};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::OAuthError;
use crate::web_url::WebUrl;

/// The maximum size of a document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 65_536;

const LIMITS: ScanLimits = ScanLimits { max_depth: 16, max_nodes: 1_000, max_batch: 1 };

/// A JSON object. Its `Debug` output hides the values, which may be tokens.
#[derive(Clone, Default, PartialEq)]
pub struct Document(Map<String, Value>);

impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.keys()).finish()
    }
}

impl Document {
    /// Reads a document. `None` if it is not a JSON object, exceeds a limit or repeats a name.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return None;
        }
        scan(bytes, &LIMITS).ok()?;
        serde_json::from_slice(bytes).ok()
    }

    /// A text; `None` if there is none or it is empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// A list of texts; `None` if there is none, or an element is something else.
    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let elements = self.0.get(name)?.as_array()?;
        elements.iter().map(|it| it.as_str().map(str::to_owned)).collect()
    }

    /// Whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The address of an endpoint: encrypted, or on this machine if the MCP server is too.
    ///
    /// # Errors
    /// When the address is not used.
    pub fn endpoint(
        &self,
        member: &'static str,
        server: &WebUrl,
    ) -> Result<Option<WebUrl>, OAuthError> {
        let Some(text) = self.text(member) else { return Ok(None) };
        let url = WebUrl::parse(text).map_err(|error| OAuthError::Address { member, error })?;
        match url.is_https() || (url.is_loopback() && server.is_loopback()) {
            true => Ok(Some(url)),
            false => Err(OAuthError::NotEncrypted { member }),
        }
    }

    /// Whether a member is the literal `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|it| *it == Value::Bool(true))
    }

    /// A number of seconds: a JSON number from 0 to 2^53, cut to an integer. Some servers write it as a text.
    pub fn seconds(&self, name: &str) -> Option<u64> {
        let number = match self.0.get(name)? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.parse::<u64>().ok()? as f64,
            _ => return None,
        };
        ((0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueMembers)
    }
}

/// Reads an object and refuses a repeated name: two readers of one document must not see different values.
struct UniqueMembers;

impl<'de> Visitor<'de> for UniqueMembers {
    type Value = Document;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Document, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a repeated name"));
            }
        }
        Ok(Document(members))
    }
}

#[cfg(test)]
mod tests {
    use super::{Document, MAX_DOCUMENT_BYTES};

    #[test]
    fn members_of_the_wrong_type_are_absent() {
        let document =
            Document::parse(br#"{"a":1,"b":"","c":["x",1],"d":["x"],"e":"true","f":true}"#)
                .unwrap();
        assert_eq!((document.text("a"), document.text("b")), (None, None));
        assert_eq!((document.texts("c"), document.texts("d")), (None, Some(vec!["x".to_owned()])));
        assert!(!document.is_true("e") && document.is_true("f"));
    }

    #[test]
    fn seconds_are_numbers_within_limits() {
        let document =
            Document::parse(br#"{"a":3599.9,"b":-1,"c":"60","d":1e300,"e":"x","f":0}"#).unwrap();
        let seconds = ["a", "b", "c", "d", "e", "f"].map(|name| document.seconds(name));
        assert_eq!(seconds, [Some(3_599), None, Some(60), None, None, Some(0)]);
    }

    #[test]
    fn other_documents_are_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(20), "]".repeat(20));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_DOCUMENT_BYTES));
        let many = format!("{{\"a\":[{}0]}}", "0,".repeat(1_000));
        for text in ["", "[]", "<html>", "{\"a\":1,\"a\":2}", &deep, &long, &many] {
            assert!(Document::parse(text.as_bytes()).is_none(), "{}", &text[..text.len().min(60)]);
        }
    }
}
