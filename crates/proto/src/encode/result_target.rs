//! The parameters for encoding a result.

use alloc::vec::Vec;

use super::{write_key, write_text_member};
use crate::dialect::Dialect;
use crate::revision::Rules;
use crate::wire::{Raw, meta};

/// The parameters for encoding a result.
pub(crate) struct ResultTarget<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rules: &'static Rules,
    /// The version in the `initialize` result.
    pub(crate) version: &'a str,
    /// The server's `Implementation`, as JSON.
    pub(crate) identity: Option<&'a Raw>,
    /// The task that the result belongs to.
    pub(crate) related_task: Option<&'a str>,
}

/// Writes the `_meta` member that names a task (2025-11-25 schema, `RelatedTaskMetadata`).
pub(super) fn write_related_task(out: &mut Vec<u8>, id: &str) {
    write_key(out, meta::RELATED_TASK);
    out.push(b'{');
    write_text_member(out, "taskId", id);
    out.push(b'}');
}
