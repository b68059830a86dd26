//! A validator for simple schemas: properties with types, limits and options, without references, combinations or
//! patterns.
//!
//! It decides exactly like the `jsonschema` crate, but does not need two milliseconds to compile.

mod compile;

use serde_json::{Map, Number, Value};

use super::message::is_integer;
use super::{MAX_VIOLATIONS, Violation, message};

/// A compiled simple schema.
pub(super) struct FlatSchema(FlatRule);

impl FlatSchema {
    /// `None` if the schema is not simple, or not valid, which the full validator can explain.
    pub(super) fn compile(schema: &Value) -> Option<Self> {
        compile::exact(schema).map(Self)
    }

    /// The simple part of any schema: a value that it rejects is invalid, a value that it accepts may be invalid too.
    pub(super) fn sketch(schema: &Value) -> Self {
        Self(compile::approximate(schema))
    }

    pub(super) fn validate(&self, instance: &Value) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        self.0.check(instance, &ValuePath::Root, &mut violations);
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}

#[derive(Default)]
struct FlatRule {
    /// Empty if every type is allowed.
    types: Vec<String>,
    options: Option<Vec<Value>>,
    minimum: Option<Number>,
    maximum: Option<Number>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    /// Sorted by name.
    properties: Vec<(String, Self)>,
    required: Vec<String>,
    closed: bool,
    items: Option<Box<Self>>,
}

impl FlatRule {
    fn check(&self, instance: &Value, path: &ValuePath<'_>, violations: &mut Vec<Violation>) {
        if violations.len() >= MAX_VIOLATIONS {
            return;
        }
        let mut report = |message| violations.push(Violation::new(&path.pointer(), message));
        if !self.types.is_empty() && !self.types.iter().any(|name| is_of_type(instance, name)) {
            report(message::wrong_type(self.types.iter().map(String::as_str), instance));
        } else if let Some(options) = &self.options
            && !options.contains(instance)
        {
            report(message::not_an_option(options));
        } else {
            match instance {
                Value::Number(number) => self.check_number(number).into_iter().for_each(report),
                Value::String(text) => self.check_length(text).into_iter().for_each(report),
                Value::Array(items) => self.check_items(items, path, violations),
                Value::Object(map) => self.check_object(map, path, violations),
                _ => {}
            }
        }
    }

    fn check_number(&self, number: &Number) -> Option<String> {
        // Limits are small enough that rounding never moves a number past one.
        let value = number.as_f64()?;
        let passes = |limit: &Number, test: fn(f64, f64) -> bool| {
            limit.as_f64().is_none_or(|limit| test(value, limit))
        };
        match (&self.minimum, &self.maximum) {
            (Some(limit), _) if !passes(limit, |a, b| a >= b) => {
                Some(format!("must be at least {limit}"))
            }
            (_, Some(limit)) if !passes(limit, |a, b| a <= b) => {
                Some(format!("must be at most {limit}"))
            }
            _ => None,
        }
    }

    fn check_length(&self, text: &str) -> Option<String> {
        if self.min_length.is_none() && self.max_length.is_none() {
            return None;
        }
        let length = text.chars().count() as u64;
        match (self.min_length, self.max_length) {
            (Some(limit), _) if length < limit => {
                Some(message::too_few(limit, message::CHARACTERS))
            }
            (_, Some(limit)) if length > limit => {
                Some(message::too_many(limit, message::CHARACTERS))
            }
            _ => None,
        }
    }

    fn check_items(&self, items: &[Value], path: &ValuePath<'_>, violations: &mut Vec<Violation>) {
        let Some(rule) = &self.items else { return };
        for (index, item) in items.iter().enumerate() {
            rule.check(item, &ValuePath::Item(path, index), violations);
        }
    }

    fn check_object(
        &self,
        map: &Map<String, Value>,
        path: &ValuePath<'_>,
        violations: &mut Vec<Violation>,
    ) {
        for name in self.required.iter().filter(|name| !map.contains_key(*name)) {
            if violations.len() < MAX_VIOLATIONS {
                violations.push(Violation::new(&path.pointer(), message::missing_property(name)));
            }
        }
        for (name, rule) in &self.properties {
            if let Some(value) = map.get(name) {
                rule.check(value, &ValuePath::Property(path, name), violations);
            }
        }
        if self.closed && violations.len() < MAX_VIOLATIONS {
            let known = |name: &str| self.properties.binary_search_by(|p| p.0.as_str().cmp(name));
            let mut unknown =
                map.keys().map(String::as_str).filter(|name| known(name).is_err()).peekable();
            if unknown.peek().is_some() {
                violations
                    .push(Violation::new(&path.pointer(), message::unexpected_properties(unknown)));
            }
        }
    }
}

/// The path of a value, which is formatted only for a violation.
enum ValuePath<'a> {
    Root,
    Property(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl ValuePath<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Property(parent, name) => {
                format!("{}/{}", parent.pointer(), name.replace('~', "~0").replace('/', "~1"))
            }
            Self::Item(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && is_integer(number),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}
