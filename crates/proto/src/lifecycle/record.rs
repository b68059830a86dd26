//! Session records: a session as text, so that another process can continue it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{HandshakePhase, HandshakeSession};
use crate::dialect::Dialect;
use crate::model::{ClientCapabilities, Level};
use crate::revision::Revision;
use crate::wire::{Object, Raw};

#[derive(Serialize, Deserialize)]
struct SessionRecord<'a> {
    revision: &'a str,
    version: String,
    operating: bool,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    client: Option<&'a RawValue>,
    level: &'a str,
    watched: Vec<String>,
}

impl HandshakeSession {
    /// Serialises the parts of the session that outlive the process.
    pub fn to_record(&self) -> String {
        let capabilities = self.capabilities.as_ref().and_then(|said| said.raw.as_ref());
        let record = SessionRecord {
            revision: self.rules.name,
            version: self.version.as_ref().into(),
            operating: self.phase == HandshakePhase::Operating,
            capabilities: capabilities.and_then(as_raw_value),
            client: self.client.as_ref().and_then(as_raw_value),
            level: self.level.name(),
            watched: self.subscribed_uris.iter().cloned().collect(),
        };
        serde_json::to_string(&record).unwrap_or_default()
    }

    /// Restores a session from its record.
    pub fn from_record(text: &str, dialect: &Dialect) -> Option<Self> {
        let record: SessionRecord<'_> = serde_json::from_str(text).ok()?;
        let capabilities = record.capabilities.and_then(|raw| Object::new(raw.get()));
        let rules = Revision::from_name(record.revision)?.rules();
        let capabilities = capabilities.map(ClientCapabilities::read);
        Some(Self {
            phase: if record.operating {
                HandshakePhase::Operating
            } else {
                HandshakePhase::Initializing
            },
            rules,
            capabilities: capabilities.map(|it| Arc::new(it.in_revision(rules))),
            client: record.client.map(|raw| Raw::from_validated(raw.get())),
            level: Level::from_name(record.level)?,
            subscribed_uris: record.watched.into_iter().collect(),
            version: record.version.into(),
            ..Self::new(dialect)
        })
    }
}

fn as_raw_value(raw: &Raw) -> Option<&RawValue> {
    serde_json::from_str(raw.as_str()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::builtin;

    #[test]
    fn a_session_is_restored_from_its_record() {
        let dialect = builtin("spec").unwrap();
        let mut session = HandshakeSession::new(&dialect);
        let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"x":[1.0]},
            "clientInfo":{"name":"a\"b","version":"1"}}"#;
        session.initialize(Object::new(hello), &dialect).unwrap();
        session.confirm();
        session.set_level(Level::Error);
        session.subscribe("file:///a");
        let record = session.to_record();
        let resumed = HandshakeSession::from_record(&record, &dialect).unwrap();
        assert_eq!(resumed.to_record(), record);
        assert_eq!(resumed.phase, HandshakePhase::Operating);
        assert!(
            resumed.capabilities.as_ref().is_some_and(|capabilities| capabilities.roots)
                && !resumed.is_dirty
        );
        assert_eq!(resumed.capabilities, session.capabilities);
    }

    #[test]
    fn what_we_did_not_write_is_no_session() {
        let dialect = builtin("spec").unwrap();
        for text in ["", "{}", "[]", r#"{"revision":"x"}"#] {
            assert!(HandshakeSession::from_record(text, &dialect).is_none(), "{text}");
        }
    }
}
