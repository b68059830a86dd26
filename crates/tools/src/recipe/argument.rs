//! The arguments of a described tool: what is announced, and the values of one call.

use creole::ToolError;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its schema.
    pub schema: Value,
    /// Whether a call must have it.
    pub required: bool,
    /// What holds where a call does not have it.
    pub default: Option<Value>,
    /// Whether it is one of a few words that the configuration lists.
    pub is_choice: bool,
    /// Whether it may begin with `-` where a program could take it for an option.
    pub leading_dash: bool,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// A list of texts, numbers, or answers.
    Array,
    /// Anything with members.
    Object,
}

impl Argument {
    /// Whether there is a value in every call.
    pub fn is_certain(&self) -> bool {
        self.required || self.default.is_some()
    }
}

/// The schema of all arguments together; nothing else is taken.
pub(crate) fn schema(arguments: &[Argument]) -> Raw {
    let required = arguments.iter().filter(|it| it.required).map(|it| it.name.as_str());
    Raw::from_value(&Schema {
        kind: "object",
        properties: Properties(arguments),
        required: required.collect(),
        others: false,
    })
}

/// The schema of an object.
#[derive(Serialize)]
struct Schema<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Properties<'a>,
    required: Vec<&'a str>,
    #[serde(rename = "additionalProperties")]
    others: bool,
}

/// The schema of each argument, in the order of the configuration: people and models read them in that order.
struct Properties<'a>(&'a [Argument]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|it| (&it.name, &it.schema)))
    }
}

/// The values of one call.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    arguments: &'a [Argument],
    given: Map<String, Value>,
}

impl<'a> Values<'a> {
    /// What a call brings, and what holds without it.
    pub(crate) fn new(arguments: &'a [Argument], brought: Value) -> Self {
        let mut given = match brought {
            Value::Object(given) => given,
            _ => Map::new(),
        };
        for Argument { name, default, .. } in arguments {
            if let Some(default) = default
                && !given.contains_key(name)
            {
                given.insert(name.clone(), default.clone());
            }
        }
        Self { arguments, given }
    }

    /// The value of an argument, if there is one.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    /// The value of an argument as text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(text)
    }

    /// The argument of this name.
    pub(crate) fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|it| it.name == name)
    }

    /// All values.
    pub(crate) fn all(&self) -> &Map<String, Value> {
        &self.given
    }
}

/// A value as text: a string as it is, a whole number without a fraction, everything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            // Schemas call 5.0 an integer; programs and services do not.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// That an argument cannot be used, and why.
pub(crate) fn refused(name: &str, why: &str) -> ToolError {
    let detail = format!("`{name}` {why}");
    ToolError::Fault(Box::new(Fault::new(FaultKind::InvalidArguments, detail)))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::{Argument, Kind, Values, schema, text};

    /// An argument with nothing special about it.
    pub(in crate::recipe) fn argument(name: &str, kind: Kind) -> Argument {
        let word = match kind {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Array => "array",
            Kind::Object => "object",
        };
        Argument {
            name: name.into(),
            kind,
            schema: json!({ "type": word }),
            required: false,
            default: None,
            is_choice: false,
            leading_dash: false,
        }
    }

    #[test]
    fn values_are_brought_or_hold_anyway() {
        let count = Argument { default: Some(json!(3)), ..argument("count", Kind::Integer) };
        let arguments = [count, argument("path", Kind::String)];
        let values = Values::new(&arguments, json!({ "path": "a b" }));
        assert_eq!(values.text("count").as_deref(), Some("3"));
        assert_eq!(values.text("path").as_deref(), Some("a b"));
        let values = Values::new(&arguments, json!({ "count": 5.0 }));
        assert_eq!(values.text("count").as_deref(), Some("5"));
        assert_eq!(values.text("path"), None);
        assert_eq!(text(&json!([1, "a"])), r#"[1,"a"]"#);
        assert_eq!(text(&json!(0.5)), "0.5");
    }

    #[test]
    fn the_schema_keeps_the_order_of_the_configuration() {
        let arguments = ["owner", "name", "labels"].map(|name| argument(name, Kind::String));
        let written = schema(&arguments);
        let place = |name: &str| written.as_str().find(&format!("\"{name}\":")).unwrap();
        assert!(place("owner") < place("name") && place("name") < place("labels"));
    }

    #[test]
    fn the_schema_takes_nothing_else() {
        let path = Argument { required: true, ..argument("path", Kind::String) };
        let schema: Value = schema(&[path]).decode().unwrap();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["path"]));
        assert_eq!(schema["properties"]["path"]["type"], json!("string"));
    }
}
