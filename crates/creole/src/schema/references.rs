//! Resolves the references of a schema, and finds chains of subschemas that apply to the same part of a value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{SchemaError, message};

/// The keywords whose subschemas apply to the same part of a value.
const IN_PLACE_KEYWORDS: [&str; 10] = [
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
];

/// The steps from one subschema to another that stay at the same part of a value.
#[derive(Default)]
pub(super) struct InPlaceReferences(Vec<(usize, usize)>);

impl InPlaceReferences {
    /// Records the steps that start at `schema`, which is the object `map`.
    pub(super) fn add(
        &mut self,
        root: &Value,
        schema: &Value,
        map: &Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let from = address(schema);
        for (name, part) in
            map.iter().filter(|(name, _)| IN_PLACE_KEYWORDS.contains(&name.as_str()))
        {
            match part {
                Value::String(reference) => self.0.push((from, address(resolve(root, reference)?))),
                Value::Array(parts) => {
                    self.0.extend(parts.iter().map(|part| (from, address(part))))
                }
                Value::Object(parts) if name.starts_with("depend") => {
                    self.0.extend(parts.values().map(|part| (from, address(part))));
                }
                _ => self.0.push((from, address(part))),
            }
        }
        Ok(())
    }

    /// The number of subschemas on the longest path.
    ///
    /// A cycle at one part of a value has no meaning, and is expensive for the validator.
    pub(super) fn longest_chain(&self) -> Result<u64, SchemaError> {
        longest_path(&self.0).ok_or(SchemaError::Circular)
    }
}

/// Identifies a value of the schema.
pub(super) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// The number of nodes on the longest path; `None` if there is a cycle.
///
/// A node is removed once all its predecessors are, so nothing recurses here.
fn longest_path(edges: &[(usize, usize)]) -> Option<u64> {
    let mut nodes: HashMap<usize, (usize, u64, Vec<usize>)> = HashMap::new();
    for &(from, to) in edges {
        nodes.entry(from).or_default().2.push(to);
        nodes.entry(to).or_default().0 += 1;
    }
    let mut free: Vec<usize> = nodes.iter().filter(|n| n.1.0 == 0).map(|n| *n.0).collect();
    let (mut taken, mut max_length) = (0, 1);
    while let Some(node) = free.pop() {
        taken += 1;
        let (_, length, targets) = nodes.get_mut(&node).map(std::mem::take)?;
        max_length = max_length.max(length + 1);
        for target in targets {
            let (incoming, reached, _) = nodes.get_mut(&target)?;
            *incoming -= 1;
            *reached = (*reached).max(length + 1);
            if *incoming == 0 {
                free.push(target);
            }
        }
    }
    (taken == nodes.len()).then_some(max_length)
}

/// The subschema that `reference` names; only `#` and `#/…` are supported.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Result<&'a Value, SchemaError> {
    let found = reference
        .strip_prefix('#')
        .and_then(percent_decoded)
        .and_then(|pointer| root.pointer(&pointer));
    found.ok_or_else(|| SchemaError::Reference(message::truncate(reference)))
}

/// Schema generators write the `<` of a generic name as `%3C`.
fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
