//! The arguments of a configured tool: their schemas, and the values of one call.

use creole::ToolError;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipeArgument {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ArgumentType,
    /// Its schema.
    pub schema: Value,
    /// Whether it is required.
    pub required: bool,
    /// Its default.
    pub default: Option<Value>,
    /// Whether its values are listed in the configuration.
    pub is_choice: bool,
    /// Whether it may begin with `-` where a program could read it as an option.
    pub leading_dash: bool,
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentType {
    /// A text.
    String,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// An array of scalars.
    Array,
    /// An object.
    Object,
}

impl RecipeArgument {
    /// Whether every call has a value for it.
    pub fn always_has_value(&self) -> bool {
        self.required || self.default.is_some()
    }
}

/// The schema of all arguments. Additional ones are not allowed.
pub(crate) fn arguments_schema(arguments: &[RecipeArgument]) -> Raw {
    let required = arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.name.as_str());
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

/// The schema of each argument, in the order of the configuration, which people and models see.
struct Properties<'a>(&'a [RecipeArgument]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|argument| (&argument.name, &argument.schema)))
    }
}

/// The values of one call.
#[derive(Debug)]
pub(crate) struct ArgumentValues<'a> {
    arguments: &'a [RecipeArgument],
    values: Map<String, Value>,
}

impl<'a> ArgumentValues<'a> {
    /// The values of a call, with the defaults for absent ones.
    pub(crate) fn new(arguments: &'a [RecipeArgument], brought: Value) -> Self {
        let mut given = match brought {
            Value::Object(given) => given,
            _ => Map::new(),
        };
        for RecipeArgument { name, default, .. } in arguments {
            if let Some(default) = default
                && !given.contains_key(name)
            {
                given.insert(name.clone(), default.clone());
            }
        }
        Self { arguments, values: given }
    }

    /// The value of an argument, if any.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// The value of an argument as text.
    pub(crate) fn to_text(&self, name: &str) -> Option<String> {
        self.get(name).map(text)
    }

    /// The argument with this name.
    pub(crate) fn argument(&self, name: &str) -> Option<&RecipeArgument> {
        self.arguments.iter().find(|it| it.name == name)
    }

    /// All values.
    pub(crate) fn all(&self) -> &Map<String, Value> {
        &self.values
    }
}

/// A value as text: a string unchanged, an integer without a fraction, any other value as JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            // JSON Schema accepts 5.0 as an integer; programs and services do not.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// The error for an invalid argument, with the reason.
pub(crate) fn invalid_argument(name: &str, reason: &str) -> ToolError {
    let detail = format!("`{name}` {reason}");
    ToolError::Fault(Box::new(Fault::new(FaultKind::InvalidArguments, detail)))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::{ArgumentType, ArgumentValues, RecipeArgument, arguments_schema, text};

    /// An argument with default settings.
    pub(crate) fn argument(name: &str, kind: ArgumentType) -> RecipeArgument {
        let word = match kind {
            ArgumentType::String => "string",
            ArgumentType::Integer => "integer",
            ArgumentType::Number => "number",
            ArgumentType::Boolean => "boolean",
            ArgumentType::Array => "array",
            ArgumentType::Object => "object",
        };
        RecipeArgument {
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
    fn values_are_arguments_or_defaults() {
        let count =
            RecipeArgument { default: Some(json!(3)), ..argument("count", ArgumentType::Integer) };
        let arguments = [count, argument("path", ArgumentType::String)];
        let values = ArgumentValues::new(&arguments, json!({ "path": "a b" }));
        assert_eq!(values.to_text("count").as_deref(), Some("3"));
        assert_eq!(values.to_text("path").as_deref(), Some("a b"));
        let values = ArgumentValues::new(&arguments, json!({ "count": 5.0 }));
        assert_eq!(values.to_text("count").as_deref(), Some("5"));
        assert_eq!(values.to_text("path"), None);
        assert_eq!(text(&json!([1, "a"])), r#"[1,"a"]"#);
        assert_eq!(text(&json!(0.5)), "0.5");
    }

    #[test]
    fn the_schema_keeps_the_order_of_the_configuration() {
        let arguments =
            ["owner", "name", "labels"].map(|name| argument(name, ArgumentType::String));
        let value = arguments_schema(&arguments);
        let place = |name: &str| value.as_str().find(&format!("\"{name}\":")).unwrap();
        assert!(place("owner") < place("name") && place("name") < place("labels"));
    }

    #[test]
    fn the_schema_accepts_nothing_else() {
        let path = RecipeArgument { required: true, ..argument("path", ArgumentType::String) };
        let schema: Value = arguments_schema(&[path]).decode().unwrap();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["path"]));
        assert_eq!(schema["properties"]["path"]["type"], json!("string"));
    }
}
