//! The schema of a type as a form can have it: one flat object of plain values (2025-11-25 client/elicitation, requested
//! schema).

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::item::tool::schema_of;

/// The formats that a text in a form may have.
const TEXT_FORMATS: [&str; 4] = ["date", "date-time", "email", "uri"];

/// The schema of a form that is read as a `T`.
///
/// # Errors
/// The reason why `T` has no form: the property, and the types that a form may have.
pub(super) fn form_schema<T: JsonSchema>() -> Result<Value, String> {
    let schema: Value = schema_of::<T>().decode().map_err(|error| error.to_string())?;
    let name = T::schema_name();
    if schema["type"] != "object" {
        return Err(format!("`{name}` cannot be a form: it is not a struct with named fields"));
    }
    let mut properties = Map::new();
    for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
        let plain = plain_schema(schema).ok_or_else(|| {
            format!(
                "`{name}` cannot be a form: the field `{property}` is neither text, number, boolean, an enum without \
                 data nor a list of such an enum"
            )
        })?;
        properties.insert(property.clone(), Value::Object(plain));
    }
    let mut form = json!({"type": "object", "properties": properties});
    if let Some(required) = schema.get("required") {
        form["required"] = required.clone();
    }
    Ok(form)
}

/// One property, if it is plain, with the members that a form may have.
fn plain_schema(schema: &Value) -> Option<Map<String, Value>> {
    if let Some(Value::Array(variants)) = schema.get("anyOf") {
        return optional_schema(schema, variants);
    }
    if let Some(Value::Array(variants)) = schema.get("oneOf") {
        let mut plain = keep(schema, &["title", "description", "default"]);
        plain.insert("type".to_owned(), json!("string"));
        plain.insert("oneOf".to_owned(), Value::Array(titled_options(variants)?));
        return Some(plain);
    }
    let kind = plain_type(schema)?;
    let mut plain = match kind {
        "string" if schema.get("enum").is_some() => {
            let mut plain = keep(schema, &["title", "description", "default"]);
            let mut options = schema["enum"].as_array()?.clone();
            options.retain(|option| !option.is_null());
            plain.insert("enum".to_owned(), Value::Array(options));
            plain
        }
        "string" => {
            let mut plain = keep(
                schema,
                &["title", "description", "default", "minLength", "maxLength", "format"],
            );
            plain.retain(|key, value| {
                key != "format" || value.as_str().is_some_and(|text| TEXT_FORMATS.contains(&text))
            });
            plain
        }
        "integer" | "number" => {
            keep(schema, &["title", "description", "default", "minimum", "maximum"])
        }
        "boolean" => keep(schema, &["title", "description", "default"]),
        "array" => {
            let mut plain =
                keep(schema, &["title", "description", "default", "minItems", "maxItems"]);
            plain.insert("items".to_owned(), choice_items(schema.get("items")?)?);
            plain
        }
        _ => return None,
    };
    // A field that may be left out is not `null` by default: forms have no such value.
    plain.retain(|key, value| key != "default" || !value.is_null());
    plain.insert("type".to_owned(), json!(kind));
    Some(plain)
}

/// The one type of a value that may also be `null`.
fn plain_type(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(types) => {
            let mut types = types.iter().filter(|kind| *kind != "null");
            types.next().filter(|_| types.next().is_none())?.as_str()
        }
        kind => kind.as_str(),
    }
}

/// The schema of an `Option`: that of its value, with the annotations of the option itself.
fn optional_schema(schema: &Value, variants: &[Value]) -> Option<Map<String, Value>> {
    let mut values = variants.iter().filter(|variant| variant["type"] != "null");
    let mut plain = plain_schema(values.next().filter(|_| values.next().is_none())?)?;
    let mut said = keep(schema, &["title", "description", "default"]);
    said.retain(|_, value| !value.is_null());
    plain.extend(said);
    Some(plain)
}

/// The options of an enum whose variants are described.
fn titled_options(variants: &[Value]) -> Option<Vec<Value>> {
    let titled = variants.iter().flat_map(|variant| match variant.get("enum") {
        // Variants without a description share one `enum`.
        Some(Value::Array(values)) => values.iter().map(|value| (value, None)).collect(),
        _ => vec![(&variant["const"], variant.get("title").or(variant.get("description")))],
    });
    let option = |(value, title): (&Value, Option<&Value>)| {
        value.as_str().map(|_| json!({"const": value, "title": title.unwrap_or(value)}))
    };
    titled.map(option).collect()
}

/// The items of a list from which several may be chosen.
fn choice_items(items: &Value) -> Option<Value> {
    match (items.get("oneOf"), items.get("enum")) {
        (Some(Value::Array(variants)), _) => Some(json!({"anyOf": titled_options(variants)?})),
        (None, Some(options)) if items["type"] == "string" => {
            Some(json!({"type": "string", "enum": options}))
        }
        _ => None,
    }
}

fn keep(schema: &Value, members: &[&str]) -> Map<String, Value> {
    let kept = members.iter().filter_map(|key| Some(((*key).to_owned(), schema.get(key)?.clone())));
    kept.collect()
}

#[cfg(test)]
mod tests {
    #![allow(dead_code, reason = "the types are only described")]

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    enum Size {
        Small,
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Extra {
        /// With cheese
        Cheese,
        Plain,
    }

    /// An order.
    #[derive(Deserialize, JsonSchema)]
    #[schemars(deny_unknown_fields)]
    struct Order {
        /// Your table
        table: u8,
        note: Option<String>,
        size: Size,
        other: Option<Size>,
        extra: Extra,
        #[serde(default)]
        extras: Vec<Extra>,
        sizes: Vec<Size>,
        hot: bool,
    }

    #[test]
    fn a_struct_of_plain_fields_is_a_form_without_members_that_forms_do_not_have() {
        let form = form_schema::<Order>().unwrap();
        let titled = json!([{"const": "Plain", "title": "Plain"}, {"const": "Cheese", "title": "With cheese"}]);
        let sorted = |options: &Value| {
            let mut options = options.as_array().unwrap().clone();
            options.sort_by_key(|option| option["const"].to_string());
            options.reverse();
            Value::Array(options)
        };
        let of = |name: &str| form["properties"][name].clone();
        assert_eq!(form.as_object().unwrap().len(), 3, "{form}");
        let table =
            json!({"type": "integer", "minimum": 0, "maximum": 255, "description": "Your table"});
        assert_eq!(of("table"), table);
        assert_eq!(of("note"), json!({"type": "string"}));
        assert_eq!(of("size"), json!({"type": "string", "enum": ["Small", "Large"]}));
        assert_eq!(of("other"), of("size"));
        assert_eq!(of("extra")["type"], "string");
        assert_eq!(sorted(&of("extra")["oneOf"]), titled);
        assert_eq!(sorted(&of("extras")["items"]["anyOf"]), titled);
        let sizes =
            json!({"type": "array", "items": {"type": "string", "enum": ["Small", "Large"]}});
        assert_eq!(of("sizes"), sizes);
        assert_eq!(of("hot"), json!({"type": "boolean"}));
        assert_eq!(form["required"], json!(["table", "size", "extra", "sizes", "hot"]));
    }

    #[test]
    fn an_invalid_form_is_refused_with_the_name_of_the_field() {
        #[derive(Deserialize, JsonSchema)]
        struct Nested {
            order: Order,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Words {
            words: Vec<String>,
        }
        let error = form_schema::<Nested>().unwrap_err();
        assert!(error.starts_with("`Nested` cannot be a form: the field `order` is"), "{error}");
        assert!(form_schema::<Words>().unwrap_err().contains("`words`"));
        let error = form_schema::<String>().unwrap_err();
        assert_eq!(error, "`string` cannot be a form: it is not a struct with named fields");
    }
}
