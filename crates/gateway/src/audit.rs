//! The audit log: one line of JSON for each call, with an optional hash chain.
//!
//! [`Audit`] is the layer that records the calls at its place in a chain. A separate thread writes the lines to a file,
//! to stdout or to a collector. [`verify`] checks the hash chains of files, and [`search`] finds lines in them.
//!
//! Calls never wait for the log. Lines that are lost are counted, and the count is written as a line. A log that is
//! required is different: a call does not run before its line is written.

mod backward_lines;
mod file;
mod hash_chain;
mod layer;
mod line;
mod log_files;
mod queue;
mod schema;
mod search;
mod settings;
mod sink;
#[cfg(test)]
mod tests;
mod verify;

pub use layer::{Audit, AuditScope};
pub use log_files::rotated_files;
pub use queue::flush;
pub use schema::line_schema;
pub use search::{AuditPage, AuditQuery, MAX_PAGE, SearchError, search};
pub use settings::{
    AuditArguments, AuditExport, AuditExporter, AuditFileSettings, AuditSettings, AuditTarget,
};
pub use verify::{BreakReason, Chain, ChainBreak, Verification, verify, verify_reader};
