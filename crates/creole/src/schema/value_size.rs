//! How large a value is, and whether a schema can be held against it.

use serde_json::Value;

use super::bounds::SchemaMeasures;

/// The measures of a value that is to be validated.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueSize {
    /// How many values it has; long texts count as several.
    pub(super) weight: u64,
    pub(super) depth: u32,
}

impl ValueSize {
    /// Whether checking a value of this extent is affordable at all.
    pub(super) fn fits(self, shape: SchemaMeasures) -> Result<(), &'static str> {
        if self.depth > MAX_VALUE_DEPTH {
            return Err("must be nested less deeply to be checked");
        }
        if self.weight.saturating_mul(shape.weight) > MAX_WORK {
            return Err("must be smaller to be checked");
        }
        Ok(())
    }

    pub(super) fn of(value: &Value) -> Self {
        let mut extent = Self { weight: 0, depth: 0 };
        extent.add(value, 1);
        extent
    }

    fn add(&mut self, value: &Value, depth: u32) {
        self.weight += 1;
        self.depth = self.depth.max(depth);
        match value {
            // Parsed values are less deep; one that was built by hand is measured deep enough to
            // be refused.
            _ if depth > MAX_VALUE_DEPTH => {}
            Value::Array(items) => items.iter().for_each(|item| self.add(item, depth + 1)),
            Value::Object(map) => map.iter().for_each(|(name, value)| {
                self.weight += name.len() as u64 / BYTES_PER_UNIT;
                self.add(value, depth + 1);
            }),
            Value::String(text) => self.weight += text.len() as u64 / BYTES_PER_UNIT,
            _ => {}
        }
    }
}

/// The deepest value that is validated, which is what serde_json parses.
const MAX_VALUE_DEPTH: u32 = 128;

/// Values times subschemas, at some ten nanoseconds each.
const MAX_WORK: u64 = 50_000_000;

/// How many bytes of text count as one value.
const BYTES_PER_UNIT: u64 = 32;
