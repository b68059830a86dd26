//! Arguments of a tool, written as `name=value` and read as the tool's schema says.

use serde_json::{Map, Value};

use crate::failure::Failure;

/// How far references of a schema are followed.
const DEPTH: usize = 16;

/// The object of the arguments, checked for names that the tool does not have and for those that it needs.
pub(crate) fn typed(tool: &str, schema: &Value, given: &[String]) -> Result<Value, Failure> {
    let mut arguments = Map::new();
    for entry in given {
        let (name, text) = split(entry)?;
        let value = value(tool, schema, name, text).map_err(Failure::Usage)?;
        if arguments.insert(name.to_owned(), value).is_some() {
            return Err(Failure::Usage(format!("the argument `{name}` is given twice")));
        }
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<String> = required
        .filter(|name| !arguments.contains_key(*name))
        .map(|name| format!("--arg {name}={}", placeholder(schema, name)))
        .collect();
    if !missing.is_empty() {
        let what = format!("the tool `{tool}` also needs {}", missing.join(" "));
        return Err(Failure::Usage(what));
    }
    Ok(Value::Object(arguments))
}

/// The name and the text of an argument.
pub(crate) fn split(entry: &str) -> Result<(&str, &str), Failure> {
    let parts = entry.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.ok_or_else(|| Failure::Usage(format!("`{entry}` is no argument; write `name=value`")))
}

fn value(tool: &str, schema: &Value, name: &str, text: &str) -> Result<Value, String> {
    let Some(of_property) = schema["properties"].get(name) else {
        return match schema["additionalProperties"] {
            Value::Bool(false) => Err(unknown(tool, schema, name)),
            _ => Ok(any(text)),
        };
    };
    let mut kinds = Vec::new();
    collect(of_property, schema, DEPTH, &mut kinds);
    if kinds.is_empty() {
        return Ok(any(text));
    }
    let read = kinds.iter().filter(|kind| *kind != "string").find_map(|kind| read(kind, text));
    let is_text = kinds.iter().any(|kind| kind == "string");
    read.or_else(|| is_text.then(|| Value::String(text.to_owned()))).ok_or_else(|| {
        let wanted: Vec<&str> = kinds.iter().map(|kind| in_words(kind)).collect();
        format!(
            "the argument `{name}` of `{tool}` is `{text}`, and should be {}",
            wanted.join(" or ")
        )
    })
}

/// What was typed where the schema does not say what it is: JSON if it is that, and text otherwise.
fn any(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn unknown(tool: &str, schema: &Value, name: &str) -> String {
    let known: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .map(|known| format!("`{known}`"))
        .collect();
    match known.is_empty() {
        true => format!("the tool `{tool}` takes no arguments, not even `{name}`"),
        false => {
            format!("the tool `{tool}` has no argument `{name}`; it has {}", known.join(", "))
        }
    }
}

/// The types that a schema allows, in the order in which it names them.
fn collect(schema: &Value, root: &Value, depth: usize, kinds: &mut Vec<String>) {
    let Some(deeper) = depth.checked_sub(1) else { return };
    let mut add = |kind: &str| {
        if !kinds.iter().any(|known| known == kind) {
            kinds.push(kind.to_owned());
        }
    };
    match &schema["type"] {
        Value::String(kind) => return add(kind),
        Value::Array(several) => {
            return several.iter().filter_map(Value::as_str).for_each(add);
        }
        _ => {}
    }
    for value in schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")) {
        add(kind_of(value));
    }
    let alternatives =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array());
    for alternative in alternatives.flatten() {
        collect(alternative, root, deeper, kinds);
    }
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    if let Some(target) = pointer.and_then(|pointer| root.pointer(pointer)) {
        collect(target, root, deeper, kinds);
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The text as a value of this type, if it is one.
fn read(kind: &str, text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let fits = match kind {
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n % 1.0 == 0.0)
        }
        other => kind_of(&value) == other,
    };
    fits.then_some(value)
}

fn in_words(kind: &str) -> &str {
    match kind {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "`true` or `false`",
        "array" => "a JSON list such as `[1,2]`",
        "object" => "a JSON object such as `{\"a\":1}`",
        "null" => "`null`",
        other => other,
    }
}

/// What could stand for a value that is missing.
fn placeholder(schema: &Value, name: &str) -> String {
    let mut kinds = Vec::new();
    collect(&schema["properties"][name], schema, DEPTH, &mut kinds);
    kinds.first().map_or("VALUE", String::as_str).to_uppercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "share": {"type": "number"},
                "sure": {"type": "boolean"},
                "list": {"type": "array"},
                "maybe": {"anyOf": [{"$ref": "#/$defs/Count"}, {"type": "null"}]},
                "either": {"type": ["integer", "string"]},
                "colour": {"enum": ["red", "green"]},
                "anything": {}
            },
            "$defs": {"Count": {"type": "integer"}},
            "additionalProperties": false
        })
    }

    fn read_as(entry: &str) -> Result<Value, String> {
        let (name, text) = split(entry).unwrap();
        value("tool", &schema(), name, text)
    }

    #[test]
    fn values_are_read_as_the_schema_says() {
        assert_eq!(read_as("text=5"), Ok(json!("5")));
        assert_eq!(read_as("text=a=b"), Ok(json!("a=b")));
        assert_eq!(read_as("count=5"), Ok(json!(5)));
        assert_eq!(read_as("share=0.5"), Ok(json!(0.5)));
        assert_eq!(read_as("sure=true"), Ok(json!(true)));
        assert_eq!(read_as("list=[1]"), Ok(json!([1])));
        assert_eq!(read_as("maybe=7"), Ok(json!(7)));
        assert_eq!(read_as("maybe=null"), Ok(json!(null)));
        assert_eq!(read_as("either=7"), Ok(json!(7)));
        assert_eq!(read_as("either=seven"), Ok(json!("seven")));
        assert_eq!(read_as("colour=red"), Ok(json!("red")));
        assert_eq!(read_as("anything={\"a\":1}"), Ok(json!({"a": 1})));
        assert_eq!(read_as("anything=word"), Ok(json!("word")));
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_would_be_right() {
        let problem = read_as("count=many").unwrap_err();
        assert_eq!(
            problem,
            "the argument `count` of `tool` is `many`, and should be a whole number"
        );
        assert!(read_as("sure=yes").unwrap_err().ends_with("`true` or `false`"));
        assert!(read_as("maybe=x").unwrap_err().ends_with("a whole number or `null`"));
        assert!(read_as("other=1").unwrap_err().contains("has no argument `other`; it has `"));
    }

    #[test]
    fn what_is_missing_or_given_twice_is_told() {
        let schema = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
        let told = typed("add", &schema, &[]).unwrap_err().to_string();
        assert_eq!(told, "error: the tool `add` also needs --arg a=INTEGER");
        let twice = ["a=1".to_owned(), "a=2".to_owned()];
        assert!(typed("add", &schema, &twice).unwrap_err().to_string().contains("twice"));
        assert!(split("=1").is_err() && split("a").is_err());
    }
}
