//! Measures the size of a value, and decides whether it can be validated.

use serde_json::Value;

use super::bounds::SchemaMeasures;

/// The measures of a value to be validated.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueSize {
    /// The number of values; a long text counts as several.
    pub(super) weight: u64,
    pub(super) depth: u32,
}

impl ValueSize {
    /// Whether the cost of validating a value of this size is acceptable.
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
            // Parsed values are less deep; a value that was built in code is measured deep enough to be rejected.
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

/// Maximum depth of a validated value, which is what serde_json parses.
const MAX_VALUE_DEPTH: u32 = 128;

/// Values times subschemas, at some ten nanoseconds each.
const MAX_WORK: u64 = 50_000_000;

/// How many bytes of text count as one value.
const BYTES_PER_UNIT: u64 = 32;
