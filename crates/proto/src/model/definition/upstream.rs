//! Definitions of upstreams: the upstream's text with only the necessary changes.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Definition, DefinitionTexts};
use crate::model::adapt::{lower_input_schema, lower_output_schema, repair_required};
use crate::model::{ListKind, TaskSupport, ToolAnnotations};
use crate::wire::{Object, Raw, quote, unquote, write_foreign_member};

/// Members of a tool that are rewritten for some peers; `None` removes a member.
type MemberRewrites<'a> = [(&'static str, Option<Cow<'a, str>>)];

impl Definition {
    /// The definition of an upstream's item, renamed if `new_name` is given. Returns `None` if the text is not an
    /// object or has no identifying member.
    pub fn from_upstream(kind: ListKind, item: &str, new_name: Option<&str>) -> Option<Self> {
        let object = Object::new(item)?;
        let name = object.string(kind.key()).ok().flatten().filter(|name| !name.is_empty())?;
        let mut changes = Vec::new();
        if let Some(new) = new_name.filter(|new| *new != name) {
            let mut quoted = Vec::new();
            quote(&mut quoted, new);
            changes.push((kind.key(), String::from_utf8(quoted).ok().map(Cow::Owned)));
        }
        let name = new_name.map_or_else(|| name.into_owned(), String::from);
        Some(match kind {
            ListKind::Tools => upstream_tool(name, object, changes),
            _ => Self::from_texts(
                name,
                DefinitionTexts::uniform(rewrite_members(object, &changes)),
                false,
            ),
        })
    }

    /// The same item under another name, in each text.
    pub fn with_name(&self, kind: ListKind, name: &str) -> Option<Self> {
        let mut quoted = Vec::new();
        quote(&mut quoted, name);
        let quoted = String::from_utf8(quoted).ok()?;
        self.map_texts(name, |text| {
            let changes = [(kind.key(), Some(Cow::Borrowed(&*quoted)))];
            Some(rewrite_members(Object::new(text)?, &changes).into())
        })
    }

    /// The raw text of a member, in the newest revision's text.
    pub fn member(&self, name: &str) -> Option<&str> {
        Object::new(&self.texts().newest)?.get(name)
    }

    /// The string value of a member, such as a template's `uriTemplate`.
    pub fn text_member(&self, name: &str) -> Option<Cow<'_, str>> {
        self.member(name).and_then(unquote)
    }

    /// A tool's task support. Only servers of one revision announce it (2025-11-25 schema, `ToolExecution`).
    pub fn task_support(&self) -> TaskSupport {
        let support = || {
            let tool = Object::new(self.texts().with_task_support.as_deref()?)?;
            let execution = tool.get("execution").and_then(Object::new)?;
            let word = execution.string("taskSupport").ok().flatten()?;
            let all = [TaskSupport::Optional, TaskSupport::Required];
            all.into_iter().find(|support| support.as_str() == word)
        };
        support().unwrap_or_default()
    }

    /// A tool's annotations, which are not to be trusted.
    pub fn annotations(&self) -> Option<ToolAnnotations> {
        Raw::from_validated(self.member("annotations")?).decode().ok()
    }
}

fn upstream_tool<'a>(
    name: String,
    tool: Object<'a>,
    mut changes: Vec<(&'static str, Option<Cow<'a, str>>)>,
) -> Definition {
    let [input, output, execution] = tool.get_many(["inputSchema", "outputSchema", "execution"]);
    let common = changes.clone();
    let sound = input.and_then(repair_required);
    let mended = sound.is_some();
    if let Some(sound) = sound {
        changes.push(("inputSchema", Some(Cow::Owned(sound))));
    }
    if execution.is_some() {
        changes.push(("execution", None));
    }
    let newest = rewrite_members(tool, &changes);
    let (lowered, lowered_output) =
        (input.and_then(lower_input_schema), output.and_then(lower_output_schema));
    let differs = lowered.is_some() || lowered_output.is_some();
    let mut older = common;
    if let Some(lowered) = lowered {
        older.push(("inputSchema", Some(Cow::Owned(lowered))));
    }
    let mut structured = older.clone();
    if let Some(lowered) = lowered_output {
        structured.push(("outputSchema", Some(Cow::Owned(lowered))));
    }
    older.extend([("outputSchema", None), ("execution", None)]);
    let tasked = execution.map(|_| rewrite_members(tool, &structured));
    structured.push(("execution", None));
    let handshake = differs.then(|| rewrite_members(tool, &structured));
    let unstructured = output.map(|_| rewrite_members(tool, &older));
    Definition::from_texts(
        name,
        DefinitionTexts { newest, handshake, unstructured, with_task_support: tasked },
        mended,
    )
}

/// The object with these members rewritten; the same text if there are none.
fn rewrite_members(object: Object<'_>, changes: &MemberRewrites<'_>) -> Box<str> {
    if changes.is_empty() {
        return object.text().into();
    }
    let mut out = Vec::with_capacity(object.text().len() + 64);
    out.push(b'{');
    for (name, value) in object.members() {
        match changes.iter().find(|(changed, _)| *changed == name) {
            None => write_foreign_member(&mut out, &name, value),
            Some((_, Some(new))) => write_foreign_member(&mut out, &name, new),
            Some((_, None)) => {}
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    fn text(definition: &Definition, revision: Revision) -> &str {
        definition.text(revision.rules())
    }

    #[test]
    fn an_ordinary_tool_stays_as_it_was_written_in_every_revision() {
        let tool = r#"{ "x": 1e400, "name":"a", "inputSchema":{"type":"object"} }"#;
        let definition = Definition::from_upstream(ListKind::Tools, tool, None).unwrap();
        for revision in Revision::ALL {
            assert_eq!(text(&definition, revision), tool);
        }
        assert_eq!(definition.name(), "a");
    }

    #[test]
    fn only_the_name_is_replaced() {
        let tool = r#"{"z":[1.0],"name":"a","inputSchema":{"type":"object"}}"#;
        let definition = Definition::from_upstream(ListKind::Tools, tool, Some("up.\"a")).unwrap();
        let renamed = r#"{"z":[1.0],"name":"up.\"a","inputSchema":{"type":"object"}}"#;
        assert_eq!(text(&definition, Revision::V2026_07_28), renamed);
        assert_eq!(definition.name(), "up.\"a");
    }

    #[test]
    fn each_revision_gets_the_members_that_it_knows() {
        let tool = r#"{"name":"a","inputSchema":{"properties":{"p":true}},"outputSchema":{"type":"number"},"execution":{"taskSupport":"required"}}"#;
        let definition = Definition::from_upstream(ListKind::Tools, tool, None).unwrap();
        assert_eq!(definition.task_support(), TaskSupport::Required);
        assert!(!text(&definition, Revision::V2026_07_28).contains("execution"));
        assert!(text(&definition, Revision::V2026_07_28).contains(r#"{"p":true}"#));
        let newer = text(&definition, Revision::V2025_11_25);
        assert!(newer.contains("execution") && newer.contains(r#"{"p":{}}"#), "{newer}");
        assert!(newer.contains(r#""required":["result"]"#), "{newer}");
        let middle = text(&definition, Revision::V2025_06_18);
        assert!(!middle.contains("execution") && middle.contains("outputSchema"), "{middle}");
        let older = text(&definition, Revision::V2024_11_05);
        assert!(!older.contains("execution") && !older.contains("outputSchema"), "{older}");
        assert!(older.contains(r#"{"p":{}}"#), "{older}");
    }

    #[test]
    fn another_name_changes_nothing_else_in_any_revision() {
        let tool = r#"{"name":"a","inputSchema":{"properties":{"p":true}},"outputSchema":{"type":"number"},"execution":{"taskSupport":"optional"}}"#;
        let definition = Definition::from_upstream(ListKind::Tools, tool, None).unwrap();
        let renamed = definition.with_name(ListKind::Tools, "up__a").unwrap();
        assert_eq!(renamed.task_support(), TaskSupport::Optional);
        for revision in Revision::ALL {
            let expected =
                text(&definition, revision).replace(r#""name":"a""#, r#""name":"up__a""#);
            assert_eq!(text(&renamed, revision), expected);
        }
    }

    #[test]
    fn an_item_without_its_key_is_dropped() {
        for item in ["[]", "{}", r#"{"name":""}"#, r#"{"name":1}"#, r#"{"uri":"a"}"#] {
            assert!(Definition::from_upstream(ListKind::Tools, item, None).is_none(), "{item}");
        }
        assert!(Definition::from_upstream(ListKind::Resources, r#"{"uri":"a:b"}"#, None).is_some());
    }
}
