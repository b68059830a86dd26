//! The rewrite layer: changes the definitions and the arguments of tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};
use creole_proto::wire::{Object, Raw};

use crate::layers::definitions::json_edit::{Edit, edit_members, quoted, with_member};

/// The changes of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRewrite {
    /// Another title.
    pub title: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Default values of missing arguments.
    pub defaults: BTreeMap<String, Raw>,
    /// Arguments that are hidden from clients, with their fixed values.
    pub fixed: BTreeMap<String, Raw>,
}

/// A layer that changes the definitions and the arguments of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// The changes by tool name.
    pub tools: BTreeMap<String, ToolRewrite>,
}

impl ToolRewrite {
    fn rewrite_definition(&self, text: &str) -> Option<String> {
        let mut text = edit_members(text, |key, value| match key {
            "inputSchema" => self.rewrite_schema(value).map_or(Edit::Keep, Edit::Set),
            _ => Edit::Keep,
        })?;
        if let Some(title) = &self.title {
            text = with_member(&text, "title", &quoted(title))?;
        }
        match &self.description {
            Some(description) => with_member(&text, "description", &quoted(description)),
            None => Some(text),
        }
    }

    /// The schema without fixed arguments and with defaults.
    fn rewrite_schema(&self, schema: &str) -> Option<String> {
        edit_members(schema, |key, value| match key {
            "properties" => self.rewrite_properties(value).map_or(Edit::Keep, Edit::Set),
            "required" => self.rewrite_required(value).map_or(Edit::Keep, Edit::Set),
            _ => Edit::Keep,
        })
    }

    fn rewrite_properties(&self, properties: &str) -> Option<String> {
        edit_members(properties, |name, property| {
            if self.fixed.contains_key(name) {
                return Edit::Drop;
            }
            let assumed = self.defaults.get(name);
            let shown = assumed.and_then(|value| with_member(property, "default", value.as_str()));
            shown.map_or(Edit::Keep, Edit::Set)
        })
    }

    fn rewrite_required(&self, names: &str) -> Option<String> {
        let names: Vec<String> = serde_json::from_str(names).ok()?;
        let is_asked =
            |name: &String| !self.fixed.contains_key(name) && !self.defaults.contains_key(name);
        let requests: Vec<String> = names.into_iter().filter(is_asked).collect();
        serde_json::to_string(&requests).ok()
    }

    /// The arguments with the fixed values, and with defaults for missing ones.
    fn rewrite_arguments(&self, given: Option<&Raw>) -> Option<Raw> {
        let mut text = given.map_or("{}", Raw::as_str).to_owned();
        for (name, value) in &self.defaults {
            if Object::new(&text)?.get(name).is_none() {
                text = with_member(&text, name, value.as_str())?;
            }
        }
        for (name, value) in &self.fixed {
            text = with_member(&text, name, value.as_str())?;
        }
        Raw::parse(&text).ok()
    }
}

impl Middleware for Rewrite {
    fn kind(&self) -> &'static str {
        "rewrite"
    }

    fn handle<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if let Operation::CallTool { name, arguments } = &mut call.operation
            && let Some(changed) = self.tools.get(name)
            && let Some(completed) = changed.rewrite_arguments(arguments.as_ref())
        {
            if call.context.observes_layers() && arguments.as_ref() != Some(&completed) {
                call.context.record_change();
            }
            *arguments = Some(completed);
        }
        next.call(call)
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        let changed = self.tools.get(item.name()).filter(|_| kind == ListKind::Tools);
        let Some(changed) = changed else { return Some(item) };
        item.map_texts(item.name(), |text| changed.rewrite_definition(text)).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{FlakyTools, call, definition};
    use creole_proto::fault::{Fault, FaultKind};
    use serde_json::json;

    fn raws(values: &[(&str, &str)]) -> BTreeMap<String, Raw> {
        let raw = |(name, value): &(&str, &str)| ((*name).to_owned(), Raw::parse(value).unwrap());
        values.iter().map(raw).collect()
    }

    fn changed() -> ToolRewrite {
        ToolRewrite {
            title: Some("Scribe".to_owned()),
            description: Some("Writes \"it\"".to_owned()),
            defaults: raws(&[("a", "7")]),
            fixed: raws(&[("token", r#""t""#)]),
        }
    }

    #[tokio::test]
    async fn tools_get_rewritten_descriptions_and_fixed_arguments() {
        let rewrite = Rewrite { tools: BTreeMap::from([("write".to_owned(), changed())]) };
        let (service, flaky) = FlakyTools::serve(rewrite, Fault::new(FaultKind::Internal, ""), 0);
        let listed = definition(&service, "write").await;
        assert_eq!(
            (&listed["title"], &listed["description"]),
            (&json!("Scribe"), &json!("Writes \"it\""))
        );
        let properties = &listed["inputSchema"]["properties"];
        assert_eq!(*properties, json!({"a": {"type": "integer", "default": 7}}));
        call(&service, "a", "write", "{}").await;
        assert_eq!(flaky.last_arguments(), json!({"a": 7, "token": "t"}));
        call(&service, "a", "write", r#"{"a":1,"token":"mine"}"#).await;
        assert_eq!(flaky.last_arguments(), json!({"a": 1, "token": "t"}));
        call(&service, "a", "read", "{}").await;
        assert_eq!(flaky.last_arguments(), json!({}));
    }

    #[test]
    fn a_fixed_or_defaulted_argument_is_not_required() {
        let schema = r#"{"type":"object","required":["a","token","b"],"properties":{"token":{}}}"#;
        let expected = r#"{"type":"object","required":["b"],"properties":{}}"#;
        assert_eq!(changed().rewrite_schema(schema).unwrap(), expected);
    }
}
