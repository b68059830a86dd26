//! Converts the schemas of a document to self-contained JSON Schema 2020-12: references are inlined, recursion is cut
//! and invalid parts are removed.
//!
//! Clients lose definitions and references, so the result has none. An invalid keyword is removed, because the service
//! validates its input anyway.

mod keywords;

use std::collections::{HashMap, HashSet};

use creole::Schema;
use creole::internal::schema::Violation;
use serde_json::{Map, Value, json};

use super::document_set::{DocumentSet, Node, ReferenceTarget, clean_text};
use keywords::{Keyword, keyword};

/// The budgets for a schema, tried in order until the result is small enough.
const BUDGETS: [SchemaBudget; 7] = [
    SchemaBudget { recursion: 5, depth: 24, description: 600 },
    SchemaBudget { recursion: 2, depth: 12, description: 400 },
    SchemaBudget { recursion: 1, depth: 8, description: 200 },
    SchemaBudget { recursion: 1, depth: 5, description: 120 },
    SchemaBudget { recursion: 1, depth: 3, description: 80 },
    SchemaBudget { recursion: 1, depth: 1, description: 40 },
    SchemaBudget { recursion: 1, depth: 0, description: 0 },
];
/// Maximum nesting of schemas and maximum length of a chain of references in any budget, since the stack is limited.
const MAX_DEPTH: usize = 64;
/// Maximum number of regular expressions of a document that are checked.
const MAX_PATTERNS: usize = 5_000;
/// Maximum size of an example or default value, in bytes. Larger ones are removed.
const MAX_SAMPLE_BYTES: usize = 200;

/// The limits on following schemas.
#[derive(Clone, Copy)]
struct SchemaBudget {
    /// Maximum recursion of the same reference.
    recursion: usize,
    /// Maximum nesting of schemas.
    depth: usize,
    /// Maximum size of a description, in bytes.
    description: usize,
}

/// Inlines schemas.
pub(super) struct SchemaInliner<'a> {
    library: &'a DocumentSet,
    /// Whether the document is of version 3.0, which has its own schema dialect.
    is_version_3_0: bool,
    /// The checked expressions and whether they are valid.
    patterns: HashMap<String, bool>,
    /// Notes on the parts that were removed.
    notes: Vec<String>,
}

/// A schema exceeds its size limit.
struct TooLarge;

/// The state of inlining one schema.
struct SchemaBuild<'a, 'b> {
    schemas: &'b mut SchemaInliner<'a>,
    budget: SchemaBudget,
    left: usize,
    path: Vec<ReferenceTarget>,
    is_cut: bool,
}

impl<'a> SchemaInliner<'a> {
    pub(super) fn new(library: &'a DocumentSet, is_old: bool) -> Self {
        Self { library, is_version_3_0: is_old, patterns: HashMap::new(), notes: Vec::new() }
    }

    /// Takes the notes on removed parts.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        let mut seen = HashSet::new();
        notes.retain(|note| seen.insert(note.clone()));
        notes
    }

    /// Inlines schemas of at most `most` bytes in total; `None` if that is impossible.
    pub(super) fn inline_all(&mut self, nodes: &[Node<'a>], max: usize) -> Option<Vec<Value>> {
        for (attempt, measure) in BUDGETS.into_iter().enumerate() {
            self.notes.clear();
            let mut work = SchemaBuild {
                schemas: self,
                budget: measure,
                left: max,
                path: Vec::new(),
                is_cut: false,
            };
            let made: Result<Vec<Value>, TooLarge> =
                nodes.iter().map(|node| work.schema(*node, 0)).collect();
            let is_cut = work.is_cut;
            let Ok(made) = made else { continue };
            if made.iter().map(|schema| schema.to_string().len()).sum::<usize>() <= max {
                if attempt > 0 {
                    self.notes.push("the schema of its arguments is simplified".to_owned());
                } else if is_cut {
                    self.notes.push("a recursive part of its arguments is cut off".to_owned());
                }
                return Some(made);
            }
        }
        None
    }

    /// Whether an expression is supported here.
    fn is_valid_pattern(&mut self, pattern: &str) -> bool {
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return false;
        }
        // Whether the schema accepts the text does not matter; it only has to compile.
        let schema = Schema::new(json!({ "not": { "pattern": pattern } }).to_string());
        let broken =
            |violations: Vec<Violation>| violations.iter().any(Violation::is_broken_schema);
        let is_fine = !schema.validate(&Value::from("")).err().is_some_and(broken);
        self.patterns.insert(pattern.to_owned(), is_fine);
        is_fine
    }
}

impl<'a> SchemaBuild<'a, '_> {
    fn spend(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }

    fn schema(&mut self, node: Node<'a>, depth: usize) -> Result<Value, TooLarge> {
        self.spend(2)?;
        let Some(members) = node.value.as_object() else {
            return Ok(node.value.as_bool().map_or_else(|| json!({}), Value::Bool));
        };
        let Some(reference) = node.text("$ref") else { return self.inline_keywords(node, depth) };
        let library = self.schemas.library;
        let found = library.resolve_target(node.file, reference);
        let found = found.and_then(|place| library.node_at(&place).map(|target| (place, target)));
        let (place, target) = match found {
            Ok(found) => found,
            Err(reason) => {
                self.schemas.notes.push(format!("its arguments have a reference to {reason}"));
                return Ok(json!({}));
            }
        };
        let again = self.path.iter().filter(|it| **it == place).count();
        if again >= self.budget.recursion || self.path.len() >= MAX_DEPTH {
            self.is_cut = true;
            return self.stub(target, &format!("recursive: {}", last_segment(reference)));
        }
        self.path.push(place);
        let schema = self.schema(target, depth);
        self.path.pop();
        let mut schema = schema?;
        // In version 3.0, siblings of a reference are ignored.
        if members.len() > 1
            && !self.schemas.is_version_3_0
            && let (Value::Object(schema), Value::Object(beside)) =
                (&mut schema, self.inline_keywords(node, depth)?)
        {
            schema.extend(beside);
        }
        Ok(schema)
    }

    /// The placeholder for a schema that is not followed further.
    fn stub(&mut self, node: Node<'a>, description: &str) -> Result<Value, TooLarge> {
        let mut schema = Map::new();
        let resolved = self.schemas.library.resolve(node).unwrap_or(node);
        if let Some(kind) = resolved.get("type").and_then(|kind| keywords::read_types(kind.value)) {
            schema.insert("type".to_owned(), kind);
        }
        if self.budget.description > 0 && !description.is_empty() {
            schema.insert("description".to_owned(), description.into());
        }
        if self.schemas.is_version_3_0 && resolved.is_true("nullable") {
            nullable(&mut schema);
        }
        self.spend(description.len() + 30)?;
        Ok(Value::Object(schema))
    }

    fn inline_keywords(&mut self, node: Node<'a>, depth: usize) -> Result<Value, TooLarge> {
        let nests = ["properties", "items", "allOf", "anyOf", "oneOf"];
        let goes_on = nests.iter().any(|key| node.get(key).is_some());
        if (depth >= self.budget.depth && goes_on) || depth >= MAX_DEPTH {
            self.is_cut = true;
            let about = clean_text(node.text("description").unwrap_or(""), self.budget.description);
            return self.stub(node, &about);
        }
        let mut schema = Map::new();
        for (key, value) in node.members() {
            self.spend(key.len().min(20))?;
            self.keyword(key, value, node, depth, &mut schema)?;
        }
        if self.schemas.is_version_3_0 && node.is_true("nullable") {
            nullable(&mut schema);
        }
        prune_required(&mut schema);
        Ok(Value::Object(schema))
    }

    fn keyword(
        &mut self,
        key: &str,
        node: Node<'a>,
        parent: Node<'a>,
        depth: usize,
        schema: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let value = match keyword(key, node.value) {
            Keyword::Nothing => return Ok(()),
            Keyword::Value(value) => {
                self.spend(value.to_string().len())?;
                value
            }
            Keyword::Sample(value) => {
                let value = if key == "example" { json!([value]) } else { value };
                let length = value.to_string().len();
                if length > MAX_SAMPLE_BYTES {
                    return Ok(());
                }
                self.spend(length)?;
                let key = if key == "example" { "examples" } else { key };
                schema.entry(key).or_insert(value);
                return Ok(());
            }
            Keyword::Text(text) => match clean_text(text, self.budget.description) {
                text if text.is_empty() => return Ok(()),
                text => {
                    self.spend(text.len())?;
                    text.into()
                }
            },
            Keyword::Pattern(pattern) => match self.schemas.is_valid_pattern(pattern) {
                true => {
                    self.spend(pattern.len())?;
                    pattern.into()
                }
                false => {
                    let message = format!("the pattern `{}` is omitted", clean_text(pattern, 60));
                    self.schemas.notes.push(message);
                    return Ok(());
                }
            },
            Keyword::Exclusive(limit) => {
                // In version 3.0, a boolean says whether the adjacent limit is exclusive.
                if let Some(number) = parent.value.get(limit).filter(|entry| entry.is_number()) {
                    schema.insert(key.to_owned(), number.clone());
                }
                return Ok(());
            }
            Keyword::Schema => self.schema(node, depth + 1)?,
            Keyword::List => {
                let items: Result<Vec<Value>, _> =
                    node.items().map(|item| self.schema(item, depth + 1)).collect();
                Value::Array(items?)
            }
            Keyword::Members => Value::Object(self.members(node, depth)?),
        };
        // Documents use `oneOf` even where several schemas match; the service validates its input.
        let key = if key == "oneOf" { "anyOf" } else { key };
        schema.insert(key.to_owned(), value);
        Ok(())
    }

    /// The members of a schema, without those that only responses have.
    fn members(&mut self, node: Node<'a>, depth: usize) -> Result<Map<String, Value>, TooLarge> {
        let mut members = Map::new();
        for (name, member) in node.members() {
            if is_read_only(self.schemas.library, member) {
                continue;
            }
            self.spend(name.len() + 4)?;
            members.insert(name.to_owned(), self.schema(member, depth + 1)?);
        }
        Ok(members)
    }
}

/// Whether a member occurs only in responses.
pub(super) fn is_read_only(library: &DocumentSet, member: Node<'_>) -> bool {
    member.is_true("readOnly")
        || library.resolve(member).is_ok_and(|found| found.is_true("readOnly"))
}

/// Makes a schema of version 3.0 accept null.
fn nullable(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(choices)) = schema.get_mut("enum")
        && !choices.contains(&Value::Null)
    {
        choices.push(Value::Null);
    }
    if let Some(kind) = schema.get("type") {
        if let Value::String(kind) = kind {
            let kinds = json!([kind, "null"]);
            schema.insert("type".to_owned(), kinds);
        }
    } else if schema.contains_key("allOf") {
        let inner = std::mem::take(schema);
        schema.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
    } else if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.push(json!({ "type": "null" }));
    }
}

/// Removes names from `required` that are not members any more.
fn prune_required(schema: &mut Map<String, Value>) {
    let Some(Value::Object(members)) = schema.get("properties") else { return };
    let names: Vec<String> = members.keys().cloned().collect();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required
            .retain(|name| name.as_str().is_some_and(|text| names.iter().any(|own| own == text)));
    }
}

fn last_segment(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

#[cfg(test)]
mod tests;
