//! The pages of all dialects, and the table that compares them.

use creole_proto::dialect::{BUILTIN_NAMES, Dialect, builtin};
use creole_proto::fault::FaultKind;

use super::settings::settings;
use super::{DIALECTS, NOTICE, bold, dialect, errors, table};
use crate::repository::File;

/// A page for each dialect, and `README.md`.
pub(super) fn documents() -> Vec<File> {
    let all: Vec<Dialect> = BUILTIN_NAMES.iter().filter_map(|name| builtin(name)).collect();
    let Some((spec, _)) = all.split_first() else {
        return Vec::new();
    };
    let page = |one: &Dialect| File {
        path: format!("{DIALECTS}/{}.md", one.name),
        text: dialect::page(one, spec),
    };
    let mut documents: Vec<File> = all.iter().map(page).collect();
    documents.push(File { path: format!("{DIALECTS}/README.md"), text: comparison(&all, spec) });
    documents
}

fn comparison(all: &[Dialect], spec: &Dialect) -> String {
    let mut text = format!("{NOTICE}\n\n# Built-in dialects\n\n");
    text += "A dialect describes how a deployment deviates from the specification. It is data. The page of a dialect lists \
             every setting and the clause that requires it.\n\n";
    let about = |one: &Dialect| vec![format!("[`{0}`]({0}.md)", one.name), one.about.to_string()];
    text += &table(&["Dialect", "Description"], all.iter().map(about));
    text += "\n## Settings\n\n**Bold** values differ from `spec`.\n\n";
    text += &table(&head("Setting", all), setting_rows(all));
    text += "\n## Error codes\n\nThe codes are those of the base revision of each dialect. `result` is a tool result with \
             `isError`, so that the model can react.\n\n";
    text += &table(&head("Kind", all), error_rows(all, spec));
    text
}

fn head<'a>(first: &'a str, all: &'a [Dialect]) -> Vec<&'a str> {
    [first].into_iter().chain(all.iter().map(|one| one.name.as_ref())).collect()
}

fn setting_rows(all: &[Dialect]) -> Vec<Vec<String>> {
    let columns: Vec<_> = all.iter().map(settings).collect();
    let Some(usual) = columns.first() else {
        return Vec::new();
    };
    let row = |(index, setting): (usize, &super::settings::Setting)| {
        let values = columns.iter().map(|column| &column[index].value);
        let mut cells = vec![format!("`{}`", setting.field)];
        cells.extend(values.map(|value| bold(*value != setting.value, value)));
        cells
    };
    usual.iter().enumerate().map(row).collect()
}

fn error_rows(all: &[Dialect], spec: &Dialect) -> Vec<Vec<String>> {
    let row = |(kind, name): &(FaultKind, &str)| {
        let default_value = errors::brief(spec, *kind);
        let codes = all.iter().map(|one| errors::brief(one, *kind));
        let mut cells = vec![format!("`{name}`")];
        cells.extend(codes.map(|code| bold(code != default_value, &code)));
        cells
    };
    FaultKind::ALL.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole_proto::dialect::Clause;

    #[test]
    fn every_clause_belongs_to_an_existing_setting() {
        for one in BUILTIN_NAMES.iter().filter_map(|name| builtin(name)) {
            let known = settings(&one);
            for clause in Clause::of(&one.name) {
                assert!(known.iter().any(|known| known.field == clause.field), "{clause:?}");
            }
        }
    }

    #[test]
    fn every_dialect_has_a_page_with_every_setting() {
        let documents = documents();
        assert_eq!(documents.len(), BUILTIN_NAMES.len() + 1);
        let spec = builtin("spec").unwrap();
        for document in documents {
            for setting in settings(&spec) {
                assert!(
                    document.text.contains(&format!("`{}`", setting.field)),
                    "{}",
                    document.path
                );
            }
        }
    }
}
