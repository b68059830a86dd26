//! The reference of the configuration: every table and key with its type, default and description.
//!
//! It is generated from the JSON Schema, which is generated from the types, so the three cannot disagree.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::describe::schema::schema;

const PREAMBLE: &str = "\
# Configuration reference

The configuration is one TOML file, which describes one process. Creole refuses to start with an unknown key, a value of a wrong
type, or keys that exclude each other. The message has the position in the file and a suggestion. `creole config check FILE`
checks a file and prints its meaning. `creole config schema` prints the JSON Schema that this page is generated from, for editors.

String values may contain environment variables. `${NAME}` inserts the value of a variable, `${NAME:-text}` inserts `text` if the
variable is unset or empty, and `$${` inserts `${` itself. Creole inserts them after it has parsed the file, so a value cannot
change the structure of the file. A secret may also be in a separate file: the key that names such a file ends in `_file`.

In the names of tables, words in capital letters such as `NAME` stand for names of your choice.
";

/// The reference as Markdown, given the available packs.
pub fn reference(known_packs: &[&str]) -> String {
    let document = schema(known_packs);
    let mut writer =
        ReferenceWriter { document: &document, text: PREAMBLE.to_owned(), seen: HashMap::new() };
    let mut next = VecDeque::from([ReferenceTable { path: String::new(), schema: &document }]);
    while let Some(table) = next.pop_front() {
        let below = writer.table(&table);
        // Inner tables follow directly after their outer table.
        below.into_iter().rev().for_each(|table| next.push_front(table));
    }
    writer.text
}

/// A table of the file.
struct ReferenceTable<'a> {
    /// The path as written in the file, with brackets. Empty for the file itself.
    path: String,
    schema: &'a Value,
}

struct ReferenceWriter<'a> {
    document: &'a Value,
    text: String,
    /// The path at which each kind of table was written first.
    seen: HashMap<String, String>,
}

impl<'a> ReferenceWriter<'a> {
    /// Writes a table and returns its inner tables that are not written yet.
    fn table(&mut self, table: &ReferenceTable<'a>) -> Vec<ReferenceTable<'a>> {
        if table.path.is_empty() {
            self.text.push_str("\n## Top level\n\n");
        } else {
            self.text.push_str(&format!(
                "\n## `{}`\n\n{}\n\n",
                table.path,
                description(table.schema)
            ));
        }
        let Some(kinds) = table.schema["oneOf"].as_array().filter(|_| !table.path.is_empty())
        else {
            return self.keys(table);
        };
        let mut below = Vec::new();
        for kind in kinds {
            let name = kind["properties"]["kind"]["const"].as_str().unwrap_or_default();
            self.text.push_str(&format!("### `kind = \"{name}\"`\n\n{}\n\n", description(kind)));
            below.extend(self.keys(&ReferenceTable { path: table.path.clone(), schema: kind }));
            self.text.push('\n');
        }
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
        below
    }

    /// Writes the keys of a table.
    fn keys(&mut self, table: &ReferenceTable<'a>) -> Vec<ReferenceTable<'a>> {
        self.text.push_str("| Key | Type | Default | Description |\n|---|---|---|---|\n");
        let (mut below, mut values) = (Vec::new(), Vec::new());
        let required = table.schema["required"].as_array();
        for (key, value) in table.schema["properties"].as_object().into_iter().flatten() {
            let inner = child_path(&table.path, key);
            let kind = self.type_name(value, &inner, &mut below);
            let is_required = required.is_some_and(|names| names.iter().any(|name| name == key));
            let (text, default_value) =
                split_default(value["description"].as_str().unwrap_or_default());
            let default_value = if is_required { "required".to_owned() } else { default_value };
            if key == "kind" && value["const"].is_string() {
                continue;
            }
            let cells = [format!("`{key}`"), kind, default_value, text]
                .map(|cell| cell.replace('|', "\\|"));
            self.text.push_str(&format!("| {} |\n", cells.join(" | ")));
            values.extend(self.describe_values(value).map(|list| format!("- `{key}`:\n{list}")));
        }
        if !values.is_empty() {
            self.text.push('\n');
            values.iter().for_each(|list| self.text.push_str(list));
        }
        below
    }

    /// The target of a `$ref`.
    fn resolve(&self, value: &'a Value) -> &'a Value {
        let location = value["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
        location.and_then(|location| self.document.pointer(location)).unwrap_or(value)
    }

    /// The name of a value's type. Tables that it refers to are collected.
    fn type_name(
        &mut self,
        value: &'a Value,
        path: &str,
        below: &mut Vec<ReferenceTable<'a>>,
    ) -> String {
        let name = value["$ref"].as_str().map(|text| text.rsplit('/').next().unwrap_or(text));
        if name == Some("FromEnvironment") {
            return String::new();
        }
        let schema = self.resolve(value);
        if let Some(choices) = schema["anyOf"].as_array() {
            let kinds = choices.iter().map(|choice| self.type_name(choice, path, below));
            let kinds: Vec<String> = kinds.filter(|kind| !kind.is_empty()).collect();
            return kinds.join(", or ");
        }
        let is_layers =
            schema["oneOf"].as_array().is_some_and(|values| values[0]["properties"].is_object());
        let is_table = schema["properties"].is_object() && !is_same_table(schema);
        if is_layers || is_table {
            return self.add_table(name.unwrap_or(path), path, schema, below);
        }
        if let Some(words) = constants(schema) {
            return quoted(&words);
        }
        match schema["type"].as_str() {
            Some("integer") => {
                format!("integer from {} to {}", schema["minimum"], schema["maximum"])
            }
            Some("number") => "number".to_owned(),
            Some("boolean") => "boolean".to_owned(),
            Some("string") => "string".to_owned(),
            Some("array") => {
                let items = self.type_name(&schema["items"], &array_path(path), below);
                format!("list of: {items}")
            }
            Some("object") => {
                let (inner, name) = match schema["properties"].as_object() {
                    Some(members) => (members.values().next(), "KIND"),
                    None => (Some(&schema["additionalProperties"]), "NAME"),
                };
                match inner.filter(|inner| inner.is_object()) {
                    Some(inner) => {
                        let kind = self.type_name(inner, &child_path(path, name), below);
                        format!("table of: {kind}")
                    }
                    None => "table".to_owned(),
                }
            }
            _ => union_type(schema),
        }
    }

    /// Adds a table, which is written only once.
    fn add_table(
        &mut self,
        name: &str,
        path: &str,
        schema: &'a Value,
        below: &mut Vec<ReferenceTable<'a>>,
    ) -> String {
        if let Some(first) = self.seen.get(name) {
            return format!("table `{path}`, with the keys of `{first}`");
        }
        self.seen.insert(name.to_owned(), path.to_owned());
        below.push(ReferenceTable { path: path.to_owned(), schema });
        format!("table `{path}`")
    }

    /// The allowed values with their descriptions, as the lines of a list.
    fn describe_values(&self, value: &'a Value) -> Option<String> {
        let schema = self.resolve(value);
        let schema =
            if schema["type"] == "array" { self.resolve(&schema["items"]) } else { schema };
        let first = schema["anyOf"].as_array().and_then(|choices| choices.first());
        let choices = first.unwrap_or(schema)["oneOf"].as_array()?;
        let line = |choice: &Value| {
            let (name, about) = (choice["const"].as_str()?, choice["description"].as_str()?);
            Some(format!("  - `{name}`: {about}\n"))
        };
        let lines: String = choices.iter().filter_map(line).collect();
        (!lines.is_empty()).then_some(lines)
    }
}

/// The path of an inner table.
fn child_path(path: &str, key: &str) -> String {
    let outer = path.trim_matches(['[', ']']);
    match outer.is_empty() {
        true => format!("[{key}]"),
        false => format!("[{outer}.{key}]"),
    }
}

/// The path of an array of tables.
fn array_path(path: &str) -> String {
    format!("[{path}]")
}

/// Whether all members are tables of the same kind, so that their names are free.
fn is_same_table(schema: &Value) -> bool {
    let members = schema["properties"].as_object();
    let mut references = members.into_iter().flatten().map(|(_, value)| value["$ref"].as_str());
    let first = references.next().flatten();
    first.is_some() && references.clone().count() > 3 && references.all(|it| it == first)
}

/// The allowed values.
fn constants(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema["enum"].as_array() {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let choices = schema["oneOf"].as_array()?;
    Some(choices.iter().filter_map(|choice| choice["const"].as_str()).collect())
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The type of a value with several types, or with any.
fn union_type(schema: &Value) -> String {
    let kinds = schema["type"].as_array().map(|kinds| {
        let name = |kind: &Value| match kind.as_str() {
            Some("boolean") => "boolean",
            Some("string") => "string",
            Some("object") => "table",
            Some("array") => "list",
            _ => "number",
        };
        kinds.iter().map(name).collect::<Vec<_>>().join(", or ")
    });
    kinds.unwrap_or_else(|| "any value".to_owned())
}

fn description(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// Splits the sentence about the default off a description.
fn split_default(description: &str) -> (String, String) {
    let Some((before, behind)) = description.split_once("Default: ") else {
        return (description.to_owned(), "–".to_owned());
    };
    let (default_value, after) = behind.split_once(". ").unwrap_or((behind, ""));
    let text = format!("{} {after}", before.trim_end());
    (text.trim().to_owned(), default_value.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_have_their_own_column() {
        let rows = [
            ("The time. Default: 60.", ("The time.", "60")),
            ("Waits. Default: 5000. Then it ends.", ("Waits. Then it ends.", "5000")),
            ("A name.", ("A name.", "–")),
        ];
        for (text, (output, default_value)) in rows {
            assert_eq!(split_default(text), (output.to_owned(), default_value.to_owned()));
        }
    }

    #[test]
    fn every_key_of_every_table_is_there_once() {
        let text = reference(&["echo"]);
        for heading in [
            "[server]",
            "[server.limits]",
            "[[server.chain]]",
            "[upstreams.NAME]",
            "[tools.NAME.http]",
        ] {
            assert_eq!(
                text.matches(&format!("\n## `{heading}`\n")).count(),
                1,
                "{heading}\n{text}"
            );
        }
        assert!(
            text.contains("| `page_size` | integer from 1 to 1000 | 100 | The number of entries"),
            "{text}"
        );
        assert!(text.contains("### `kind = \"timeout\"`"));
        let document = schema(&["echo"]);
        for (name, table) in document["$defs"].as_object().unwrap() {
            for (key, _) in table["properties"].as_object().into_iter().flatten() {
                assert!(text.contains(&format!("| `{key}` |")), "{name}.{key}");
            }
        }
    }
}
