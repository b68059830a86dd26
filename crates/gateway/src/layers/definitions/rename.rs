//! The rename layer: gives items other names.

use std::collections::BTreeMap;
use std::sync::Arc;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::model::{Definition, ListKind, Reference};
use creole_proto::operation::{Operation, Outcome};

use crate::layers::definitions::assigned_names::AssignedNames;
use crate::layers::definitions::json_edit::{quoted, with_member};
use crate::layers::operation_item::{item_of, unknown_item_fault};

/// The settings of the rename layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenameSettings {
    /// The lists whose items are renamed: tools, prompts or both.
    pub kinds: Vec<ListKind>,
    /// New names by old names. The new names are unique.
    pub names: BTreeMap<String, String>,
    /// The prefix to remove from other names.
    pub strip: String,
    /// The prefix to add to other names, or to those from which a prefix was removed.
    pub add: String,
}

/// A layer that renames items in lists and maps the names back in calls. Two items never get the same name: the second
/// is excluded.
#[derive(Debug)]
pub struct Rename {
    settings: RenameSettings,
    /// The item that each assigned name stands for.
    assigned: AssignedNames,
}

impl Rename {
    /// A layer with these settings.
    pub fn new(settings: RenameSettings) -> Self {
        Self { settings, assigned: AssignedNames::default() }
    }

    /// The new name of an item.
    fn new_name(&self, name: &str) -> String {
        let RenameSettings { names, strip, add, .. } = &self.settings;
        if let Some(new) = names.get(name) {
            return new.clone();
        }
        match name.strip_prefix(strip.as_str()) {
            Some(rest) => format!("{add}{rest}"),
            None => name.to_owned(),
        }
    }

    /// The original name for a name that a client uses.
    fn own_name(&self, kind: ListKind, name: &str) -> Option<String> {
        // The name was not assigned. If the layer would not change it, it stands for itself.
        let own = || (self.new_name(name) == name).then(|| name.to_owned());
        self.assigned.own_name(kind, name).or_else(own)
    }

    /// Assigns the name to an item, unless another one has it.
    fn assign(&self, kind: ListKind, name: &str, own: &str) -> bool {
        match self.assigned.assign(kind, name, own) {
            Ok(()) => true,
            Err(holder) => {
                tracing::warn!(
                    item = own,
                    name,
                    holder,
                    "item excluded: another item has this name"
                );
                false
            }
        }
    }
}

fn rename(operation: &mut Operation, own: String) {
    match operation {
        Operation::CallTool { name, .. } | Operation::GetPrompt { name, .. } => *name = own,
        Operation::Complete(request) => request.reference = Reference::Prompt(own),
        _ => {}
    }
}

impl Middleware for Rename {
    fn kind(&self) -> &'static str {
        "rename"
    }

    fn handle<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let subject = item_of(&call.operation);
        let Some((kind, name)) = subject.filter(|(kind, _)| self.settings.kinds.contains(kind))
        else {
            return next.call(call);
        };
        let Some(own) = self.own_name(kind, name) else {
            let fault = unknown_item_fault(&call.operation);
            return Box::pin(async move { fault.into() });
        };
        if own == name {
            return next.call(call);
        }
        let name = name.to_owned();
        rename(&mut call.operation, own.clone());
        call.context.record_change();
        Box::pin(async move {
            match next.call(call).await {
                Outcome::Fail(fault) if fault.subject == own => fault.with_subject(&name).into(),
                outcome => outcome,
            }
        })
    }

    fn reassign_names(&self, kind: ListKind) -> bool {
        self.assigned.start_round(kind);
        self.settings.kinds.contains(&kind)
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        if !self.settings.kinds.contains(&kind) {
            return Some(item);
        }
        let name = self.new_name(item.name());
        if !self.assign(kind, &name, item.name()) {
            return None;
        }
        if name == item.name() {
            return Some(item);
        }
        item.map_texts(&name, |text| with_member(text, "name", &quoted(&name))).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{FlakyTools, call, fault, listed_names, text};
    use creole_proto::fault::{Fault, FaultKind};

    fn serve(names: &[(&str, &str)], strip: &str, add: &str) -> creole::Service {
        let names = names.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned()));
        let rename = Rename::new(RenameSettings {
            kinds: vec![ListKind::Tools],
            names: names.collect(),
            strip: strip.to_owned(),
            add: add.to_owned(),
        });
        FlakyTools::serve(rename, Fault::new(FaultKind::ToolFailed, "no").with_subject("read"), 0).0
    }

    #[tokio::test]
    async fn new_names_are_listed_and_called_and_old_ones_are_unknown() {
        let service = serve(&[("read", "look")], "", "x_");
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["look", "x_write"]);
        assert_eq!(text(&call(&service, "a", "look", "{}").await), "done");
        assert_eq!(text(&call(&service, "a", "x_write", "{}").await), "done");
        for old in ["read", "write", "x_read", "x_look"] {
            let fault = fault(call(&service, "a", old, "{}").await);
            assert_eq!((fault.kind, fault.subject.as_str()), (FaultKind::UnknownTool, old));
        }
    }

    #[tokio::test]
    async fn a_prefix_is_exchanged_where_it_is() {
        let service = serve(&[], "re", "unre");
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["unread", "write"]);
        assert_eq!(text(&call(&service, "a", "unread", "{}").await), "done");
        assert_eq!(text(&call(&service, "a", "write", "{}").await), "done");
        fault(call(&service, "a", "read", "{}").await);
    }

    #[tokio::test]
    async fn two_tools_never_get_one_name() {
        let service = serve(&[("read", "write")], "", "");
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["write"]);
        assert_eq!(text(&call(&service, "a", "write", "{}").await), "done");
    }

    #[tokio::test]
    async fn a_tool_takes_over_the_name_of_a_removed_one() {
        let service = serve(&[("read", "write")], "", "");
        let registry = service.registry();
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["write"]);
        registry.remove_tool("read");
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["write"], "the other one");
        assert_eq!(text(&call(&service, "a", "write", "{}").await), "done");
        registry.remove_tool("write");
        assert!(listed_names(&service, ListKind::Tools).await.is_empty());
        fault(call(&service, "a", "write", "{}").await);
    }

    #[tokio::test]
    async fn faults_contain_the_name_of_the_caller() {
        let rename = RenameSettings {
            kinds: vec![ListKind::Tools],
            names: BTreeMap::from([("read".to_owned(), "look".to_owned())]),
            ..RenameSettings::default()
        };
        let broken = Fault::new(FaultKind::ToolFailed, "no").with_subject("read");
        let (service, _) = FlakyTools::serve(Rename::new(rename), broken, 1);
        assert_eq!(fault(call(&service, "a", "look", "{}").await).subject, "look");
    }
}
