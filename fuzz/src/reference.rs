//! The reference parser: reads a message with `serde_json` and detects repeated keys.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// The content of a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// Whether an object anywhere repeats a key.
    pub repeated: bool,
}

/// Reads `bytes` as one JSON value, without our scanner.
pub fn read(bytes: &[u8]) -> serde_json::Result<Shape> {
    serde_json::from_slice(bytes)
}

/// Whether `serde_json` rejects something that the grammar allows and we forward: a number that is not a double, or the
/// last level of depth.
pub fn is_stricter(error: &serde_json::Error) -> bool {
    let message = error.to_string();
    message.starts_with("number out of range") || message.starts_with("recursion limit exceeded")
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Shape, A::Error> {
        let mut shape = Shape::default();
        while let Some(element) = elements.next_element::<Shape>()? {
            shape.repeated |= element.repeated;
        }
        Ok(shape)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Shape, A::Error> {
        let mut shape = Shape::default();
        let mut keys = HashSet::new();
        while let Some((key, value)) = members.next_entry::<String, Shape>()? {
            shape.repeated |= value.repeated | !keys.insert(key);
        }
        Ok(shape)
    }
}
