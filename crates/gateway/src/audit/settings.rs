//! The settings of an audit log.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use crate::layers::Redactor;

/// The settings of an audit log.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// Where the lines go.
    pub to: AuditTarget,
    /// Which form of the arguments is written.
    pub arguments: AuditArguments,
    /// Whether each line contains the hash of the line before it.
    pub chain: bool,
    /// Whether a call is refused if its line cannot be handed over.
    pub required: bool,
    /// Whether the addresses of clients are written.
    pub remote: bool,
    /// The name of this process among those that share a state.
    pub replica: Option<Arc<str>>,
}

/// Where the lines of an audit log go.
#[derive(Clone, Debug)]
pub enum AuditTarget {
    /// To a file.
    File(AuditFileSettings),
    /// To stdout. A server whose client is at stdin and stdout cannot use it.
    Stdout,
    /// To a collector.
    Exporter(AuditExporter),
}

/// The file of an audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFileSettings {
    /// The file.
    pub path: PathBuf,
    /// The size in bytes at which the file is rotated.
    pub max_bytes: u64,
    /// The number of rotated files that are kept.
    pub keep: u32,
    /// Whether each write is synced to disk.
    pub sync: bool,
}

/// The form in which arguments are written.
#[derive(Clone, Debug)]
pub enum AuditArguments {
    /// Nothing.
    None,
    /// The SHA-256 of their canonical form.
    Digest,
    /// The arguments after redaction.
    Redacted(Redactor),
}

/// A line for a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditExport {
    /// When the line was written.
    pub time: SystemTime,
    /// The line.
    pub line: Box<str>,
    /// The trace that the call belongs to.
    pub trace: Option<[u8; 16]>,
}

/// Hands lines to a collector.
#[derive(Clone)]
pub struct AuditExporter(Arc<dyn Fn(AuditExport) -> bool + Send + Sync>);

impl AuditExporter {
    /// An exporter that calls this function on the thread of the log, which may wait. It returns false if the line is
    /// not accepted, such as when its queue is full: the line is then counted as lost.
    pub fn new(export: impl Fn(AuditExport) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(export))
    }

    pub(crate) fn export(&self, line: AuditExport) -> bool {
        (self.0)(line)
    }
}

impl fmt::Debug for AuditExporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuditExporter").finish_non_exhaustive()
    }
}
