//! A session written down, so that it can go on in another process.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Phase, Session};
use crate::dialect::Dialect;
use crate::model::{ClientCapabilities, Level};
use crate::revision::Revision;
use crate::wire::{Object, Raw};

#[derive(Serialize, Deserialize)]
struct Record<'a> {
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

impl Session {
    /// What of it has to be kept.
    pub fn record(&self) -> String {
        let capabilities = self.capabilities.as_ref().and_then(|said| said.raw.as_ref());
        let record = Record {
            revision: self.rules.name,
            version: self.version.as_ref().into(),
            operating: self.phase == Phase::Operating,
            capabilities: capabilities.and_then(written),
            client: self.client.as_ref().and_then(written),
            level: self.level.name(),
            watched: self.watched.iter().cloned().collect(),
        };
        serde_json::to_string(&record).unwrap_or_default()
    }

    /// The session of a record.
    pub fn from_record(text: &str, dialect: &Dialect) -> Option<Self> {
        let record: Record<'_> = serde_json::from_str(text).ok()?;
        let capabilities = record.capabilities.and_then(|raw| Object::new(raw.get()));
        let rules = Revision::named(record.revision)?.rules();
        let capabilities = capabilities.map(ClientCapabilities::read);
        Some(Self {
            phase: if record.operating { Phase::Operating } else { Phase::Initializing },
            rules,
            capabilities: capabilities.map(|it| Arc::new(it.in_revision(rules))),
            client: record.client.map(|raw| Raw::trusted(raw.get())),
            level: Level::named(record.level)?,
            watched: record.watched.into_iter().collect(),
            version: record.version.into(),
            ..Self::new(dialect)
        })
    }
}

fn written(raw: &Raw) -> Option<&RawValue> {
    serde_json::from_str(raw.as_str()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::builtin;

    #[test]
    fn a_session_goes_on_as_it_was_written_down() {
        let dialect = builtin("spec").unwrap();
        let mut session = Session::new(&dialect);
        let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"x":[1.0]},
            "clientInfo":{"name":"a\"b","version":"1"}}"#;
        session.initialize(Object::new(hello), &dialect).unwrap();
        session.confirm();
        session.set_level(Level::Error);
        session.watch("file:///a");
        let record = session.record();
        let resumed = Session::from_record(&record, &dialect).unwrap();
        assert_eq!(resumed.record(), record);
        assert_eq!(resumed.phase, Phase::Operating);
        assert!(resumed.capabilities.as_ref().is_some_and(|said| said.roots) && !resumed.changed);
        assert_eq!(resumed.capabilities, session.capabilities);
    }

    #[test]
    fn what_we_did_not_write_is_no_session() {
        let dialect = builtin("spec").unwrap();
        for text in ["", "{}", "[]", r#"{"revision":"x"}"#] {
            assert!(Session::from_record(text, &dialect).is_none(), "{text}");
        }
    }
}
