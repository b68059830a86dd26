//! Tests of document 004, clause by clause, in front of a mock.

use std::fs;
use std::path::PathBuf;

use creole_acceptance::stage::stdio::repository;
use creole_acceptance::transcript;
use creole_acceptance::transcript::{Direction, Transcript};

use crate::mock::{ADMIN, ED, Mock};
use crate::stage::{NAME, SiteBackend, SiteStage};

impl SiteBackend for Mock {
    fn url(&self) -> String {
        self.url()
    }

    fn header_of(&self, user: &str) -> String {
        match user {
            "admin" => ADMIN.to_owned(),
            "ed" => ED.to_owned(),
            _ => "Basic YWRtaW46d3Jvbmc=".to_owned(),
        }
    }

    fn set_platform(&self, is_active: bool) {
        self.set_platform(is_active);
    }
}

/// The transcripts of the document.
pub(crate) fn all() -> Vec<Transcript> {
    let folder = repository().join("acceptance/transcripts/seeds/004-buddyboss");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|os_str| os_str == "txt")).collect();
    files.sort();
    let transcripts: Vec<Transcript> =
        files.iter().map(|file| Transcript::load(file).unwrap()).collect();
    assert!(transcripts.len() > 15);
    transcripts
}

/// Plays a transcript. Returns the failure, if there is one.
pub(crate) fn run_transcript(transcript: &Transcript, stage: &mut SiteStage) -> Option<String> {
    assert_eq!(transcript.skip(NAME), None);
    transcript::run(transcript, stage, &mut |_: Direction, _: &str| {})
        .err()
        .map(|failure| failure.to_string())
}

#[test]
fn every_transcript_of_the_document_passes_against_a_mock() {
    let failures: Vec<String> = all()
        .iter()
        .filter_map(|transcript| {
            run_transcript(transcript, &mut SiteStage::new(Box::new(Mock::start())))
        })
        .collect();
    assert!(failures.is_empty(), "\n\n{}", failures.join("\n"));
}
