//! The index of requirements: each clause that a transcript cites, and the transcripts that cite it.

use std::collections::BTreeMap;

use creole_proto::revision::Revision;

use super::{NOTICE, table};
use crate::repository::File;

/// A document, its clauses, and the files that show each of them.
type Index<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a str>>>;

/// `docs/conformance.md`.
pub(super) fn document(transcripts: &[File]) -> File {
    let index = index(transcripts);
    let mut text = format!("{NOTICE}\n\n# Conformance\n\n");
    text += "A transcript is a list of messages that a test exchanges with the real binary. Its `Spec:` lines name the \
             clauses that it tests. This page lists the transcripts of each clause. It does not list clauses without a \
             transcript. The seed documents are the origin of the presets. \
             [The table of the seeds](../acceptance/transcripts/seeds/README.md) lists their clauses in \
             order.\n\n";
    text += &table(&["Document", "Clauses tested", "Transcripts"], overview(&index));
    for (document, clauses) in &index {
        text += &format!("\n## {}\n\n", title(document));
        text += &table(
            &["Clause", "Tested by"],
            clauses.iter().map(|(clause, files)| {
                vec![
                    (*clause).to_owned(),
                    files.iter().map(|file| link(file)).collect::<Vec<_>>().join(", "),
                ]
            }),
        );
    }
    File { path: "docs/conformance.md".into(), text }
}

fn index(transcripts: &[File]) -> Index<'_> {
    let mut index = Index::new();
    for file in transcripts.iter().filter(|file| file.path.ends_with(".txt")) {
        for cited in file.text.lines().filter_map(|line| line.strip_prefix("Spec: ")) {
            let (document, clause) = split(cited.trim());
            index.entry(document).or_default().entry(clause).or_default().push(&file.path);
        }
    }
    index
}

/// A citation as document and clause: `seed 000, tools/list`, or `2025-11-25 basic/lifecycle#…`.
fn split(cited: &str) -> (&str, &str) {
    if let Some((first, rest)) = cited.split_once(' ')
        && Revision::from_name(first).is_some()
    {
        return (first, rest);
    }
    cited.split_once(", ").unwrap_or((cited, "as a whole"))
}

/// The summary of each document. A revision without citations is included too.
fn overview(index: &Index<'_>) -> Vec<Vec<String>> {
    let count = |document: &str| {
        let clauses = index.get(document);
        let mut files: Vec<&str> =
            clauses.into_iter().flat_map(BTreeMap::values).flatten().copied().collect();
        files.sort_unstable();
        files.dedup();
        vec![title(document), clauses.map_or(0, BTreeMap::len).to_string(), files.len().to_string()]
    };
    let uncited = Revision::ALL.map(|revision| revision.rules().name);
    let uncited = uncited.into_iter().filter(|name| !index.contains_key(name));
    let mut documents: Vec<&str> = index.keys().copied().chain(uncited).collect();
    documents.sort_unstable();
    documents.into_iter().map(count).collect()
}

fn title(document: &str) -> String {
    match Revision::from_name(document) {
        Some(_) => format!("Revision {document}"),
        None => document.to_owned(),
    }
}

fn link(file: &str) -> String {
    let name = file.trim_start_matches("acceptance/transcripts/").trim_end_matches(".txt");
    format!("[{name}](../{file})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_is_split_into_document_and_clause() {
        assert_eq!(split("seed 000, tools/list, errors"), ("seed 000", "tools/list, errors"));
        assert_eq!(split("2025-11-25 basic/lifecycle"), ("2025-11-25", "basic/lifecycle"));
        assert_eq!(split("JSON-RPC 2.0"), ("JSON-RPC 2.0", "as a whole"));
    }

    #[test]
    fn each_clause_leads_to_its_transcripts_and_an_uncited_revision_is_named() {
        let file = |path: &str, clause: &str| File {
            path: format!("acceptance/transcripts/{path}.txt"),
            text: format!("It holds.\nSpec: {clause}\n\n> {{}}\n"),
        };
        let text = document(&[file("a", "seed 000, x"), file("b", "seed 000, x")]).text;
        assert!(text.contains("| x | [a](../acceptance/transcripts/a.txt), [b]("), "{text}");
        assert!(text.contains("| seed 000 | 1 | 2 |"), "{text}");
        assert!(text.contains("| Revision 2026-07-28 | 0 | 0 |"), "{text}");
    }
}
