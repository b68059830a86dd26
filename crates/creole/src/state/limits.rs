//! Limits on the size of a state.

use std::time::Duration;

use bytes::Bytes;

use super::{Result, StateError};

/// Limits on the size of a state. If several processes share a file, each applies its own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateLimits {
    /// Maximum length of a key, and of the name of a log, topic or lease.
    pub key_bytes: usize,
    /// Maximum length of a value and of a log entry.
    pub value_bytes: usize,
    /// Maximum length of a message.
    pub message_bytes: usize,
    /// Maximum number of values and leases together.
    pub entries: usize,
    /// Maximum number of logs.
    pub logs: usize,
    /// Maximum number of entries that one log may request to keep.
    pub log_entries: usize,
    /// Maximum number of bytes of values and logs together, each counted with its key and 128 bytes more.
    pub bytes: usize,
    /// Maximum number of subscriptions.
    pub subscriptions: usize,
    /// Maximum number of unread messages of a topic per subscriber.
    pub backlog: usize,
    /// Maximum number of bytes of all unread messages. Beyond it, subscribers get an error that they missed messages.
    pub pending_bytes: usize,
}

/// How much of a log is kept. Older and earlier entries are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogRetention {
    /// Maximum number of entries.
    pub(crate) entries: usize,
    /// How long an entry is kept. An entry never expires before an earlier one.
    pub(crate) ttl: Duration,
}

impl Default for StateLimits {
    fn default() -> Self {
        Self {
            key_bytes: 512,
            value_bytes: 1024 * 1024,
            message_bytes: 64 * 1024,
            entries: 100_000,
            logs: 10_000,
            log_entries: 10_000,
            bytes: 256 * 1024 * 1024,
            subscriptions: 10_000,
            backlog: 64,
            pending_bytes: 64 * 1024 * 1024,
        }
    }
}

impl StateLimits {
    /// The assumed overhead of a value or log entry beside its own bytes and those of its key.
    pub(crate) const OVERHEAD: usize = 128;

    pub(super) fn check_key(&self, key: &str) -> Result<()> {
        check("the key or name", key.len(), self.key_bytes)
    }

    pub(super) fn check_value(&self, value: &Bytes) -> Result<()> {
        check("the value or entry", value.len(), self.value_bytes)
    }

    pub(super) fn check_message(&self, message: &Bytes) -> Result<()> {
        check("the message", message.len(), self.message_bytes)
    }

    pub(super) fn check_retention(&self, keep: LogRetention) -> Result<()> {
        if keep.entries <= self.log_entries {
            return Ok(());
        }
        Err(StateError::RetentionTooLong { wanted: keep.entries, max: self.log_entries })
    }
}

fn check(description: &'static str, bytes: usize, max: usize) -> Result<()> {
    if bytes <= max { Ok(()) } else { Err(StateError::TooLong { kind: description, bytes, max }) }
}
