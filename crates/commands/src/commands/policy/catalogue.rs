//! The items of a server, from a file.

use std::path::Path;

use creole_policy::{Policy, TargetKind};
use serde_json::Value;

use crate::failure::Failure;

/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The items of a server, as `creole list --json` prints them.
pub(super) struct Catalogue(Option<Value>);

impl Catalogue {
    pub(super) fn load(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else { return Ok(Self(None)) };
        let value = read_json(file)?;
        if !value.is_object() {
            let message = format!("`{}` is not what `creole list --json` prints", file.display());
            return Err(Failure::Usage(message));
        }
        Ok(Self(Some(value)))
    }

    /// The annotations of a tool. A tool without them has none.
    pub(super) fn annotations(&self, tool: &str) -> Option<&Value> {
        let tools = self.0.as_ref()?.get("tools")?.as_array()?;
        tools.iter().find(|item| item["name"] == tool)?.get("annotations")
    }

    /// The items, or the patterns of the rules.
    pub(super) fn items(&self, policy: &Policy) -> Vec<(TargetKind, String)> {
        const KINDS: [(TargetKind, &str, &str); 4] = [
            (TargetKind::Tool, "tools", "name"),
            (TargetKind::Resource, "resources", "uri"),
            (TargetKind::Resource, "resourceTemplates", "uriTemplate"),
            (TargetKind::Prompt, "prompts", "name"),
        ];
        let Some(lists) = &self.0 else {
            let kinds = [TargetKind::Tool, TargetKind::Resource, TargetKind::Prompt];
            let of = |kind| policy.patterns(kind).into_iter().map(move |it| (kind, it.to_owned()));
            return kinds.into_iter().flat_map(of).collect();
        };
        let mut items = Vec::new();
        for (kind, list, key) in KINDS {
            let list = lists.get(list).and_then(Value::as_array).into_iter().flatten();
            let names = list.filter_map(|item| item[key].as_str());
            items.extend(names.map(|name| (kind, name.to_owned())));
        }
        items
    }
}

/// A JSON file.
pub(super) fn read_json(file: &Path) -> Result<Value, Failure> {
    let failure = |reason: String| Failure::Usage(format!("`{}`: {reason}", file.display()));
    let length = std::fs::metadata(file).map_err(|error| failure(error.to_string()))?.len();
    if length > MAX_BYTES {
        return Err(failure(format!("it is larger than {MAX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failure(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failure(error.to_string()))
}
