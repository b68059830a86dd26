//! How a value, log entry or message is stored: the number of its format, what it says, and the protection of both.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;

use super::protection::{StateProtection, StoredKind};
use super::{Result, State, StateError};

/// The formats of stored records that a program reads.
///
/// A version reads its own format and the one before. It writes the older one until all replicas read the newer one, so
/// that replicas can be updated, and put back, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFormats {
    /// The oldest one.
    pub oldest: u8,
    /// The newest one.
    pub newest: u8,
}

impl RecordFormats {
    /// Those of this version.
    const CURRENT: Self = Self { oldest: 1, newest: 1 };
}

impl State {
    /// The same state, whose values, log entries and messages are encrypted and authenticated. Keys, names and topics
    /// are not.
    #[must_use]
    pub fn protected(mut self, protection: StateProtection) -> Self {
        self.records = self.records.protected(Some(protection));
        self
    }

    /// The same state, used by a version that reads these formats: for tests of updates.
    #[doc(hidden)]
    #[must_use]
    pub fn with_formats(mut self, formats: RecordFormats) -> Self {
        let protection = self.records.protection().cloned();
        self.records = RecordCodec::new(formats).protected(protection);
        self
    }

    /// The formats that this version reads.
    pub(crate) fn formats(&self) -> RecordFormats {
        self.records.formats()
    }

    /// The format that is written: all replicas read it.
    pub(crate) fn written_format(&self) -> u8 {
        self.records.written_format()
    }

    /// Writes this format from now on, or the nearest that this version reads.
    pub(crate) fn write_format(&self, format: u8) {
        self.records.write_format(format);
    }
}

/// Writes and reads the stored form of everything in a state. Clones use the same format.
#[derive(Clone)]
pub(super) struct RecordCodec {
    formats: RecordFormats,
    /// The format of what is written.
    written: Arc<AtomicU8>,
    /// What a store on the network must not read or forge.
    protection: Option<StateProtection>,
}

impl Default for RecordCodec {
    fn default() -> Self {
        Self::new(RecordFormats::CURRENT)
    }
}

impl RecordCodec {
    pub(super) fn new(formats: RecordFormats) -> Self {
        Self { formats, written: Arc::new(AtomicU8::new(formats.oldest)), protection: None }
    }

    pub(super) fn protected(self, protection: Option<StateProtection>) -> Self {
        Self { protection, ..self }
    }

    pub(super) fn protection(&self) -> Option<&StateProtection> {
        self.protection.as_ref()
    }

    pub(super) fn formats(&self) -> RecordFormats {
        self.formats
    }

    pub(super) fn written_format(&self) -> u8 {
        self.written.load(Ordering::Relaxed)
    }

    /// Writes this format from now on, or the nearest that it reads.
    pub(super) fn write_format(&self, format: u8) {
        let format = format.clamp(self.formats.oldest, self.formats.newest);
        self.written.store(format, Ordering::Relaxed);
    }

    pub(super) fn encode(&self, kind: StoredKind, name: &str, plain: &[u8]) -> Result<Bytes> {
        let record = [&[self.written_format()], plain].concat();
        match &self.protection {
            None => Ok(record.into()),
            Some(protection) => protection.encrypt(kind, name, &record),
        }
    }

    /// The format of a stored text, and what it says; `None` if it was not written here.
    ///
    /// # Errors
    /// When it has a format that this version does not read. It is there, and nothing can be said about it.
    pub(super) fn decode(
        &self,
        kind: StoredKind,
        name: &str,
        stored: Bytes,
    ) -> Result<Option<(u8, Bytes)>> {
        let record = match &self.protection {
            None => Some(stored),
            Some(protection) => protection.decrypt(kind, name, &stored),
        };
        let Some(record) = record.filter(|record| !record.is_empty()) else { return Ok(None) };
        let (format, RecordFormats { oldest, newest }) = (record[0], self.formats);
        if (oldest..=newest).contains(&format) {
            Ok(Some((format, record.slice(1..))))
        } else {
            Err(StateError::UnknownFormat { found: format, oldest, newest })
        }
    }
}

impl fmt::Debug for RecordCodec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RecordCodec")
            .field("formats", &self.formats)
            .field("written", &self.written_format())
            .field("is_protected", &self.protection.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: StoredKind = StoredKind::Entry;

    fn codec(oldest: u8, newest: u8) -> RecordCodec {
        RecordCodec::new(RecordFormats { oldest, newest })
    }

    #[test]
    fn the_oldest_format_is_written_until_another_is_chosen() {
        let codec = codec(1, 2);
        let text = codec.encode(KIND, "a", b"x").unwrap();
        assert_eq!(codec.decode(KIND, "a", text), Ok(Some((1, Bytes::from_static(b"x")))));
        for (chosen, written) in [(2, 2), (1, 1), (9, 2), (0, 1)] {
            codec.write_format(chosen);
            let text = codec.encode(KIND, "a", b"").unwrap();
            assert_eq!(codec.decode(KIND, "a", text), Ok(Some((written, Bytes::new()))));
        }
    }

    #[test]
    fn a_record_of_an_unknown_format_is_an_error_that_may_pass_and_not_absent() {
        let middle = codec(2, 3);
        for (other, found) in [(codec(1, 1), 1), (codec(4, 5), 4)] {
            let text = other.encode(KIND, "a", b"x").unwrap();
            let error = middle.decode(KIND, "a", text).unwrap_err();
            assert_eq!(error, StateError::UnknownFormat { found, oldest: 2, newest: 3 });
            assert!(error.is_temporary() && !error.is_unknown());
        }
        assert_eq!(middle.decode(KIND, "a", Bytes::new()), Ok(None));
    }
}
