//! How much a state takes, so that it never grows without end.

use std::time::Duration;

use bytes::Bytes;

use super::{Result, StateError};

/// How much a state takes. Where several processes share a file, each goes by its own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLimits {
    /// The longest key, and name of a log, topic or lease.
    pub key_bytes: usize,
    /// The longest value and the longest entry of a log.
    pub value_bytes: usize,
    /// The longest message to listeners.
    pub message_bytes: usize,
    /// The most values and leases together.
    pub entries: usize,
    /// The most logs.
    pub logs: usize,
    /// The most entries that one log may ask to keep.
    pub log_entries: usize,
    /// The most bytes that values and logs take together, each with [`StateLimits::OVERHEAD`].
    pub bytes: usize,
    /// The most listeners.
    pub subscriptions: usize,
    /// The most messages of a topic that wait for a slow listener.
    pub backlog: usize,
    /// The most bytes of all messages that wait for slow listeners. Beyond them, listeners are told that
    /// something was missed.
    pub pending_bytes: usize,
}

/// How much of a log is kept. What is older or before that is thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRetention {
    /// The most entries.
    pub entries: usize,
    /// The age at which an entry is gone. An entry never goes before an earlier one.
    pub ttl: Duration,
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
    /// What a value or an entry of a log is reckoned to take beside its own bytes and those of its key.
    pub const OVERHEAD: usize = 128;

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

fn check(what: &'static str, bytes: usize, most: usize) -> Result<()> {
    if bytes <= most { Ok(()) } else { Err(StateError::TooLong { kind: what, bytes, max: most }) }
}
