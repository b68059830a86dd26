//! Measures the size of a schema with its references followed.
//!
//! The `jsonschema` crate follows references without limit: a kilobyte of `allOf` whose parts each refer to the next
//! one twice runs for hours, a long chain of references overflows the stack, and nested `unevaluatedProperties`
//! multiply. All of that shows in the unfolded size, which this module computes in one pass. References that this pass
//! cannot follow are rejected.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::references::{InPlaceReferences, address, resolve};
use super::{SchemaDraft, SchemaError, message};

/// The measures of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaMeasures {
    /// The number of values with each reference replaced by its target, once around each cycle.
    pub(super) weight: u64,
    /// The longest chain of subschemas that apply to the same part of a value.
    pub(super) in_place: u64,
    /// The number of references that lead back into a cycle; 0 if the schema is not recursive.
    pub(super) returns: u64,
}

impl SchemaMeasures {
    pub(super) fn of(schema: &Value, dialect: SchemaDraft) -> Result<Self, SchemaError> {
        let mut nodes = 0;
        check_written(schema, dialect, 1, &mut nodes)?;
        let mut unfolding = Unfolding::new(schema);
        let size = unfolding.schema(schema, 0)?;
        let in_place = unfolding.in_place.longest_chain()?;
        let unevaluated = if size.returns > 0 { MAX_CYCLIC_UNEVALUATED } else { MAX_UNEVALUATED };
        if unfolding.unevaluated > unevaluated {
            return Err(SchemaError::TooComplex);
        }
        Ok(Self { weight: size.weight, in_place, returns: size.returns })
    }
}

/// Checks everything that does not need references to be followed.
fn check_written(
    value: &Value,
    dialect: SchemaDraft,
    depth: usize,
    nodes: &mut u64,
) -> Result<(), SchemaError> {
    if depth > MAX_DEPTH {
        return Err(SchemaError::TooDeep);
    }
    *nodes += u64::from(value.is_object() || value.is_boolean());
    if *nodes > MAX_SUBSCHEMAS {
        return Err(SchemaError::TooComplex);
    }
    match value {
        Value::Object(map) => {
            check_identity(map, dialect, depth)?;
            map.values().try_for_each(|value| check_written(value, dialect, depth + 1, nodes))
        }
        Value::Array(items) => {
            items.iter().try_for_each(|value| check_written(value, dialect, depth + 1, nodes))
        }
        _ => Ok(()),
    }
}

/// Below the root, `$id` would change what `#/…` refers to, and `$schema` what keywords mean.
fn check_identity(
    map: &Map<String, Value>,
    dialect: SchemaDraft,
    depth: usize,
) -> Result<(), SchemaError> {
    if let (Some(Value::String(uri)), false) = (map.get("$id"), depth == 1) {
        return Err(SchemaError::Reference(message::truncate(uri)));
    }
    if let Some(Value::String(uri)) = map.get("$schema")
        && SchemaDraft::from_uri(uri)? != dialect
    {
        return Err(SchemaError::Dialect(message::truncate(uri)));
    }
    Ok(())
}

/// The measures of a subschema.
#[derive(Clone, Copy, Default)]
struct SubschemaMeasures {
    weight: u64,
    height: usize,
    returns: u64,
}

impl SubschemaMeasures {
    fn leaf(weight: u64) -> Self {
        Self { weight, height: 1, returns: 0 }
    }

    /// Adds the measures of a part of this subschema.
    fn add(&mut self, part: Self) {
        self.weight = self.weight.saturating_add(part.weight);
        self.height = self.height.max(part.height + 1);
        self.returns = self.returns.saturating_add(part.returns);
    }
}

struct Unfolding<'a> {
    root: &'a Value,
    /// Each measured object, by address; `None` while it is being measured.
    known: HashMap<usize, Option<SubschemaMeasures>>,
    in_place: InPlaceReferences,
    patterns: usize,
    unevaluated: usize,
}

impl<'a> Unfolding<'a> {
    fn new(root: &'a Value) -> Self {
        let in_place = InPlaceReferences::default();
        Self { root, known: HashMap::new(), in_place, patterns: 0, unevaluated: 0 }
    }

    fn schema(&mut self, value: &'a Value, depth: usize) -> Result<SubschemaMeasures, SchemaError> {
        // This pass has a stack, too.
        if depth > MAX_UNFOLDED_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let size = match value {
            Value::Object(map) => {
                let address = address(value);
                match self.known.get(&address) {
                    Some(Some(size)) => *size,
                    Some(None) => SubschemaMeasures { returns: 1, ..SubschemaMeasures::leaf(1) },
                    None => {
                        self.known.insert(address, None);
                        let size = self.object(map, depth)?;
                        self.in_place.add(self.root, value, map)?;
                        self.known.insert(address, Some(size));
                        size
                    }
                }
            }
            Value::Array(items) => self.all(items.iter(), depth)?,
            _ => SubschemaMeasures::leaf(1),
        };
        if depth + size.height > MAX_UNFOLDED_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        if size.weight > MAX_WEIGHT {
            return Err(SchemaError::TooComplex);
        }
        Ok(size)
    }

    fn object(
        &mut self,
        map: &'a Map<String, Value>,
        depth: usize,
    ) -> Result<SubschemaMeasures, SchemaError> {
        let mut size = SubschemaMeasures::leaf(1);
        for (name, value) in map {
            size.add(self.keyword(name, value, depth)?);
        }
        if map.contains_key("unevaluatedProperties") || map.contains_key("unevaluatedItems") {
            size.weight = size.weight.saturating_mul(UNEVALUATED_WEIGHT);
            self.unevaluated += 1;
        }
        Ok(size)
    }

    fn keyword(
        &mut self,
        name: &str,
        value: &'a Value,
        depth: usize,
    ) -> Result<SubschemaMeasures, SchemaError> {
        match (name, value) {
            ("$ref", Value::String(reference)) => {
                self.schema(resolve(self.root, reference)?, depth + 1)
            }
            ("$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                Err(SchemaError::Reference(message::truncate(reference)))
            }
            ("pattern", Value::String(_)) => self.patterns(1),
            ("patternProperties", Value::Object(map)) => {
                let mut size = self.patterns(map.len())?;
                size.add(self.all(map.values(), depth)?);
                Ok(size)
            }
            ("enum" | "const" | "default" | "examples", data) => {
                Ok(SubschemaMeasures::leaf(count(data)))
            }
            (
                "properties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
                Value::Object(map),
            ) => self.all(map.values(), depth),
            _ => self.schema(value, depth + 1),
        }
    }

    fn all(
        &mut self,
        values: impl Iterator<Item = &'a Value>,
        depth: usize,
    ) -> Result<SubschemaMeasures, SchemaError> {
        let mut size = SubschemaMeasures::leaf(1);
        for value in values {
            size.add(self.schema(value, depth + 1)?);
        }
        Ok(size)
    }

    /// A pattern costs more than other keywords, to compile and to match.
    fn patterns(&mut self, number: usize) -> Result<SubschemaMeasures, SchemaError> {
        self.patterns += number;
        if self.patterns > MAX_PATTERNS {
            return Err(SchemaError::TooComplex);
        }
        Ok(SubschemaMeasures::leaf(PATTERN_WEIGHT * number as u64))
    }
}

fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<u64>(),
        _ => 1,
    }
}

/// Maximum depth of a schema as written.
const MAX_DEPTH: usize = 64;

/// Maximum number of subschemas as written.
const MAX_SUBSCHEMAS: u64 = 10_000;

/// Maximum depth of a schema with its references followed.
const MAX_UNFOLDED_DEPTH: usize = 192;

/// Maximum number of values of a schema with its references followed.
const MAX_WEIGHT: u64 = 100_000;

/// Each pattern may take milliseconds to compile.
const MAX_PATTERNS: usize = 100;

const PATTERN_WEIGHT: u64 = 16;

/// For `unevaluated…` the crate compiles and visits all parts again, so nested ones are exponential: measured at a
/// factor of 2.5 to 3 per level.
const UNEVALUATED_WEIGHT: u64 = 4;

/// Schemas in use have one or two.
const MAX_UNEVALUATED: usize = 16;

/// Within cycles the crate compiles even more parts again.
const MAX_CYCLIC_UNEVALUATED: usize = 4;
