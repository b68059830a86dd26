//! Access to the files below a folder: confined opening, filter patterns, bounded listing and watching.

mod file_error;
pub(crate) mod file_filter;
pub mod pattern;
pub(crate) mod root;
pub(crate) mod scan;
mod shared_watcher;
pub(crate) mod watch;

pub use file_error::FileError;
pub use pattern::Pattern;
