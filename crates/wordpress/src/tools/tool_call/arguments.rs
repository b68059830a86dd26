//! Converts the arguments of a call to the form that the site accepts.

use serde_json::{Map, Value, json};

use crate::tools::spec::{ArgumentSpec, SiteArgumentType, ToolSpec};

/// The largest integer that every JSON reader represents exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// Maximum number of items in a list.
const MAX_ITEMS: usize = 100;

/// The arguments with comma-separated texts split into lists, or their error. The schema accepts integers that the site
/// rejects, such as `4.0` and `1e300`.
pub(crate) fn normalize(
    spec: &ToolSpec,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut normal = arguments.clone();
    for argument in spec.arguments {
        if let Some(value) = normal.get_mut(argument.name) {
            *value = normalize_value(argument, value)?;
        }
    }
    Ok(normal)
}

fn normalize_value(argument: &ArgumentSpec, value: &Value) -> Result<Value, String> {
    let name = argument.name;
    match (argument.kind, value) {
        (SiteArgumentType::Id | SiteArgumentType::Page | SiteArgumentType::PerPage, value) => {
            to_integer(name, value)
        }
        (SiteArgumentType::Ids, Value::Array(items)) => items
            .iter()
            .map(|item| to_integer(name, item))
            .collect::<Result<_, _>>()
            .map(Value::Array),
        (SiteArgumentType::Ids, Value::String(text)) => {
            let number = |text: &str| match text.parse::<u64>() {
                Ok(number @ 1..=MAX_SAFE_INTEGER) => Ok(json!(number)),
                _ => Err(format!("`{name}` must be a list of IDs such as [2, 3]; `{text}` is not")),
            };
            split_list(name, text)?
                .into_iter()
                .map(number)
                .collect::<Result<_, _>>()
                .map(Value::Array)
        }
        (SiteArgumentType::Choices(words), Value::String(text)) => {
            let word = |text: &str| match words.contains(&text) {
                true => Ok(json!(text)),
                false => {
                    let words = words.join(", ");
                    Err(format!("`{name}` must be of these: {words}; `{text}` is not"))
                }
            };
            split_list(name, text)?
                .into_iter()
                .map(word)
                .collect::<Result<_, _>>()
                .map(Value::Array)
        }
        (SiteArgumentType::Texts, Value::String(text)) => Ok(json!(split_list(name, text)?)),
        (_, value) => Ok(value.clone()),
    }
}

fn split_list<'a>(name: &str, text: &'a str) -> Result<Vec<&'a str>, String> {
    let items: Vec<&str> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
    match items.len() > MAX_ITEMS {
        true => Err(format!("`{name}` has more than {MAX_ITEMS} items")),
        false => Ok(items),
    }
}

fn to_integer(name: &str, value: &Value) -> Result<Value, String> {
    match value.as_u64() {
        Some(number @ 1..=MAX_SAFE_INTEGER) => Ok(json!(number)),
        Some(_) => Err(format!("`{name}` is too large: the largest number is {MAX_SAFE_INTEGER}")),
        None => Err(format!("`{name}` must be an integer such as 4, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::spec::optional;

    fn read(kind: SiteArgumentType, value: Value) -> Result<Value, String> {
        normalize_value(&optional("x", kind, ""), &value)
    }

    #[test]
    fn numbers_that_the_site_would_misread_are_refused() {
        assert_eq!(read(SiteArgumentType::Id, json!(4)), Ok(json!(4)));
        let text = "[4.0, 1e300, 18446744073709551615, 99999999999999999999]";
        let invalid: Vec<Value> = serde_json::from_str(text).unwrap();
        for value in &invalid {
            assert!(read(SiteArgumentType::Id, value.clone()).is_err(), "{value}");
            assert!(read(SiteArgumentType::Page, value.clone()).is_err(), "{value}");
            assert!(read(SiteArgumentType::Ids, json!([value])).is_err(), "{value}");
        }
        let message = read(SiteArgumentType::Id, invalid[0].clone()).unwrap_err();
        assert_eq!(message, "`x` must be an integer such as 4, not 4.0");
    }

    #[test]
    fn lists_may_be_written_with_commas() {
        assert_eq!(read(SiteArgumentType::Ids, json!("2, 3")), Ok(json!([2, 3])));
        assert_eq!(
            read(SiteArgumentType::Choices(&["public", "hidden"]), json!("public")),
            Ok(json!(["public"]))
        );
        assert_eq!(read(SiteArgumentType::Texts, json!("a,b")), Ok(json!(["a", "b"])));
        for invalid in ["2,x", "-1", "0", "1e3", "4.0"] {
            assert!(read(SiteArgumentType::Ids, json!(invalid)).is_err(), "{invalid}");
        }
        assert!(read(SiteArgumentType::Choices(&["public"]), json!("public,moon")).is_err());
    }
}
