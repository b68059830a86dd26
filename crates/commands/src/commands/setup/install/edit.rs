//! Edits JSON with comments and keeps everything else unchanged.

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::parse_to_serde_value;
use serde_json::Value;

use crate::commands::setup::{is_too_deep, json_options};

/// The value of a member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MemberValue {
    Text(String),
    List(Vec<String>),
}

impl MemberValue {
    fn json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::List(items) => Value::from(items.as_slice()),
        }
    }

    fn value(&self) -> CstInputValue {
        let text = |text: &String| CstInputValue::String(text.clone());
        match self {
            Self::Text(output) => text(output),
            Self::List(items) => CstInputValue::Array(items.iter().map(text).collect()),
        }
    }
}

/// The text with an object of this name below these keys that has these members. Other members of the object stay.
///
/// # Errors
/// With the problem of the text, as the rest of a sentence that begins with its file.
pub(crate) fn with_entry(
    text: &str,
    keys: &[&str],
    name: &str,
    members: &[(&str, MemberValue)],
) -> Result<String, String> {
    if is_too_deep(text) {
        return Err("is nested too deep and was not changed".to_owned());
    }
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = CstRootNode::parse(bare, &json_options())
        .map_err(|error| format!("is not JSON and was not changed: {error}"))?;
    let mut object = root.object_value_or_create().ok_or("does not contain a JSON object")?;
    for key in keys {
        object = child_object(&object, key)?;
    }
    let known = object.get(name).and_then(|known| known.value());
    let known =
        known.map(|known| known.as_object().ok_or(format!("has a `{name}` that is not an object")));
    match known.transpose()? {
        None => {
            let members = members.iter().map(|(key, member)| ((*key).to_owned(), member.value()));
            object.append(name, CstInputValue::Object(members.collect()));
            object.ensure_multiline();
        }
        Some(known) => change(&known, members),
    }
    let mut changed = root.to_string();
    if bare.trim().is_empty() && !changed.ends_with('\n') {
        changed.push('\n');
    }
    Ok(format!("{}{changed}", &text[..text.len() - bare.len()]))
}

/// Sets only the members that differ, so that a correct entry stays unchanged.
fn change(known: &CstObject, members: &[(&str, MemberValue)]) {
    for (key, member) in members {
        let property = known.get(key);
        let now = property.as_ref().and_then(|property| {
            parse_to_serde_value::<Value>(&property.value()?.to_string(), &json_options()).ok()
        });
        match (property, now == Some(member.json())) {
            (_, true) => {}
            (Some(property), false) => property.set_value(member.value()),
            (None, false) => _ = known.append(key, member.value()),
        }
    }
}

fn child_object(object: &CstObject, key: &str) -> Result<CstObject, String> {
    object.object_value_or_create(key).ok_or_else(|| format!("has a `{key}` that is not an object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> Result<String, String> {
        let members = [
            ("command", MemberValue::Text("/bin/creole".to_owned())),
            ("args", MemberValue::List(vec!["serve".to_owned()])),
        ];
        with_entry(text, &["mcpServers"], "creole", &members)
    }

    const ENTRY: &str = r#""creole": {
      "command": "/bin/creole",
      "args": ["serve"]
    }"#;

    #[test]
    fn comments_order_and_other_entries_stay() {
        let before = r#"{
  // Mine.
  "zoo": 1, // last
  "mcpServers": {
    "other": { "command": "x" } /* keep */
  },
  "ape": 2
}
"#;
        let after = before.replace(
            "{ \"command\": \"x\" } /* keep */",
            &format!("{{ \"command\": \"x\" }}, /* keep */\n    {ENTRY}"),
        );
        assert_eq!(added(before).unwrap(), after);
        assert_eq!(added(&after).unwrap(), after);
    }

    #[test]
    fn an_empty_file_becomes_one_with_the_entry() {
        let expected = format!("{{\n  \"mcpServers\": {{\n    {ENTRY}\n  }}\n}}\n");
        assert_eq!(added("").unwrap(), expected);
        assert_eq!(added("{}\n").unwrap(), expected);
    }

    #[test]
    fn an_existing_entry_is_updated_and_keeps_its_other_members() {
        let before = "{\n  \"mcpServers\": {\n    \"creole\": {\n      \"command\": \"old\",\n      \"env\": { \"A\": \"b\" }\n    }\n  }\n}\n";
        let after = added(before).unwrap();
        assert!(after.contains("\"command\": \"/bin/creole\",\n      \"env\": { \"A\": \"b\" },\n      \"args\": [\"serve\"]"), "{after}");
    }

    #[test]
    fn a_value_that_is_not_an_object_is_not_changed() {
        for invalid in [
            "[]",
            "{\"mcpServers\": []}",
            "{\"mcpServers\": {\"creole\": 5}}",
            "{",
            "{\"a\": 1 \"b\": 2}",
        ] {
            assert!(added(invalid).is_err(), "{invalid}");
        }
        assert!(added(&"[".repeat(100_000)).unwrap_err().contains("too deep"));
    }
}
