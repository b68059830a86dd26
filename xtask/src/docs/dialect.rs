//! The page of one dialect.

use creole_proto::dialect::{Clause, Dialect};

use super::settings::settings;
use super::{NOTICE, bold, errors, table};

/// The page of a dialect: its settings, the differences from the specification, and the clause that demands each.
pub(super) fn page(dialect: &Dialect, spec: &Dialect) -> String {
    let name = &dialect.name;
    let is_spec = dialect == spec;
    let mut page = format!("{NOTICE}\n\n# The dialect `{name}`\n\n{}\n\n", dialect.about);
    page += &format!(
        "In a configuration file, `dialect = \"{name}\"` selects it, and `dialect = {{ extends = \"{name}\", … }}` \
         extends it.\n[README.md](README.md) compares all dialects.\n\n## Settings\n\n",
    );
    if is_spec {
        page += "The other dialects are compared with this one. Where no clause is given, the specification leaves the \
                 choice open, or all revisions agree.\n\n";
        page += &table(&["Setting", "Meaning", "Value", "Required by"], rows(dialect, spec));
    } else {
        page += "**Bold** settings differ from [`spec`](spec.md).\n\n";
        page += &table(
            &["Setting", "Meaning", "Value", "In `spec`", "Required by"],
            rows(dialect, spec),
        );
    }
    page + "\n## Errors\n\n" + &errors::section(dialect)
}

fn rows(dialect: &Dialect, spec: &Dialect) -> Vec<Vec<String>> {
    let pairs = settings(dialect).into_iter().zip(settings(spec));
    let row = |(own, usual): (super::settings::Setting, super::settings::Setting)| {
        let differs = own.value != usual.value;
        let mut cells =
            vec![bold(differs, &format!("`{}`", own.field)), own.about.to_owned(), own.value];
        if dialect != spec {
            cells.push(if differs { usual.value } else { "same".into() });
        }
        cells.push(demand(&dialect.name, own.field, differs));
        cells
    };
    pairs.map(row).collect()
}

/// The clauses behind a field. A difference without a clause is marked as such.
fn demand(dialect: &str, field: &str, differs: bool) -> String {
    let clauses = Clause::of(dialect).iter().filter(|clause| clause.field == field);
    let demands: Vec<&str> = clauses.map(|clause| clause.demand).collect();
    if demands.is_empty() && differs { "no clause".into() } else { demands.join("; ") }
}
