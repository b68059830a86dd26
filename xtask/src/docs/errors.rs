//! The encoding of each kind of fault in a dialect.

use creole_proto::dialect::{Dialect, VersionPolicy};
use creole_proto::fault::{DataShape, ErrorChannel, ErrorRow, FaultKind};
use creole_proto::revision::{Revision, Rules};

use super::{bold, table};

/// The tables of a dialect's page: the base revision, then the differences of other revisions.
pub(super) fn section(dialect: &Dialect) -> String {
    let base = dialect.base_rules();
    let own = |kind| dialect.errors.iter().any(|row| row.kind == kind);
    let rows = FaultKind::ALL.iter().map(|(kind, name)| {
        let mut cells = vec![bold(own(*kind), &format!("`{name}`"))];
        cells.extend(cells_of(dialect.error_row(*kind, base)));
        cells
    });
    let mut section = format!(
        "The encoding of each kind of fault in {}. The dialect defines the **bold** kinds. The others are as the \
         revision or common practice defines them. `{{tool}}`, `{{method}}`, `{{uri}}` and `{{prompt}}` insert the \
         subject of the fault, `{{detail}}` inserts its description, and `{{trace}}` inserts its location.\n\n",
        base.name,
    );
    section += &table(&["Kind", "Reported as", "Code", "Message", "`data`"], rows);
    let others = differing(dialect, base);
    if !others.is_empty() {
        section += "\nOther revisions encode these kinds differently:\n\n";
        section +=
            &table(&["Revision", "Kind", "Reported as", "Code", "Message", "`data`"], others);
    }
    section
}

/// The rows in which negotiable revisions differ from the base.
fn differing(dialect: &Dialect, base: &'static Rules) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for revision in negotiable(dialect).filter(|revision| revision.rules().name != base.name) {
        let rules = revision.rules();
        for (kind, name) in FaultKind::ALL {
            let row = dialect.error_row(kind, rules);
            if row != dialect.error_row(kind, base) {
                let mut cells = vec![rules.name.to_owned(), format!("`{name}`")];
                cells.extend(cells_of(row));
                rows.push(cells);
            }
        }
    }
    rows
}

/// The negotiable revisions. A dialect with its own version stays in its base.
fn negotiable(dialect: &Dialect) -> impl Iterator<Item = Revision> {
    let negotiates = dialect.version == VersionPolicy::Negotiate;
    dialect.revisions().filter(move |_| negotiates)
}

/// A kind of fault in a few characters, for comparison.
pub(super) fn brief(dialect: &Dialect, kind: FaultKind) -> String {
    match dialect.error_row(kind, dialect.base_rules()).channel {
        ErrorChannel::ProtocolError(code) => code.to_string(),
        ErrorChannel::ToolResult { .. } => "result".into(),
    }
}

fn cells_of(row: &ErrorRow) -> Vec<String> {
    let (message, code) = match row.channel {
        ErrorChannel::ProtocolError(code) => ("error", code),
        ErrorChannel::ToolResult { fallback_code: otherwise } => {
            ("tool result; error outside of tool calls", otherwise)
        }
    };
    vec![message.into(), code.to_string(), format!("`{}`", row.message), data(&row.data)]
}

fn data(shape: &DataShape) -> String {
    match shape {
        DataShape::None => "none".into(),
        DataShape::FromFault => "the details of the fault".into(),
        DataShape::Text(text) => format!("the string `{text}`"),
        DataShape::Members(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, text)| format!("`{key}`: `{text}`")).collect();
            members.join(", ")
        }
    }
}
