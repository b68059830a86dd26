//! The table of an audit log.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// Writes one line of JSON for each call. The log never delays a call, unless it is `required`. Lines that arrive faster
/// than they can be written are dropped and counted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditTable {
    /// Where the lines go. Default: `file`.
    pub to: Option<Spanned<AuditTargetChoice>>,
    /// The audit log. A relative path is resolved against the folder of this file. Required with `to = "file"`.
    pub file: Option<Spanned<String>>,
    /// The size at which the file is rotated, in bytes. Default: 104857600.
    pub max_bytes: Option<Spanned<Ranged<4096, 1_099_511_627_776>>>,
    /// The number of rotated files that are kept. Older files are deleted. Default: 5.
    pub keep: Option<Spanned<Ranged<0, 1000>>>,
    /// What is logged of the arguments. Default: `digest`.
    pub arguments: Option<AuditArgumentsChoice>,
    /// Regular expressions. Every match in the logged arguments is replaced. Only with `arguments = "redacted"`.
    pub patterns: Option<Spanned<Vec<Spanned<String>>>>,
    /// JSON pointers into the logged arguments. The values there are replaced. Only with `arguments = "redacted"`.
    pub pointers: Option<Spanned<Vec<Spanned<String>>>>,
    /// Whether each line is flushed to the disk at once. If false, the operating system decides, and a power failure
    /// may lose the last lines. The end of the process loses none. Default: false.
    pub sync: Option<Spanned<bool>>,
    /// Whether each line contains the hash of the line before it, so that `creole audit verify` finds changed and
    /// removed lines. Default: false.
    pub chain: Option<bool>,
    /// Whether a call is refused with a `backend-unavailable` error if its line cannot be written. Each call then waits
    /// until a line with the outcome `started` is written, and has a second line when it ends. Default: false.
    pub required: Option<bool>,
    /// Whether the addresses of clients are written. Default: true.
    pub remote: Option<bool>,
}

/// Where the lines of the audit log go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditTargetChoice {
    /// To the file `file`.
    File,
    /// To stdout. Not for a server on stdin and stdout.
    Stdout,
    /// To the OpenTelemetry collector, as log records with the event name `creole.audit`.
    Otlp,
}

/// What the audit log contains of the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditArgumentsChoice {
    /// Nothing.
    None,
    /// Their SHA-256, which shows whether two calls had equal arguments.
    Digest,
    /// The arguments, after redaction.
    Redacted,
}
