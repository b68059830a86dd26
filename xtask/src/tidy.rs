//! `cargo xtask tidy`: checks the written invariants of the source tree.
//!
//! Each finding is one line: the location, the problem and the fix.

mod cases;
mod console;
mod dependencies;
mod history;
mod layers;
mod source;
mod text;
mod vocabulary;

use crate::repository::{File, Repository};
use crate::say;

/// Reports all findings.
pub(crate) fn run() -> Result<(), String> {
    let files = Repository::find()?.files("")?;
    let mut findings = Findings::default();
    cases::check(&files, &mut findings);
    console::check(&files, &mut findings);
    source::check(&files, &mut findings);
    dependencies::check(&files, &mut findings);
    layers::check(&files, &mut findings);
    text::check(&files, &mut findings);
    vocabulary::check(&files, &mut findings);
    history::check(&mut findings);
    findings.report(files.len())
}

/// The findings, in order.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    /// Adds a finding for a line (counted from one) of a file, with the fix.
    fn add(&mut self, path: &str, line: usize, invalid: &str, right: &str) {
        self.0.push(format!("{path}:{line}: {invalid}; {right}"));
    }

    fn report(mut self, files: usize) -> Result<(), String> {
        self.0.sort();
        if self.0.is_empty() {
            say(&format!("checked {files} files: no findings"));
            return Ok(());
        }
        Err(format!("{}\n{} findings in {files} files", self.0.join("\n"), self.0.len()))
    }
}

/// Whether this is one of the files that contain the words they forbid.
fn is_own(file: &File) -> bool {
    file.path.starts_with("xtask/src/tidy/")
}
