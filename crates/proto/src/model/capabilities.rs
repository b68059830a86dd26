//! The capabilities of servers and clients.

use crate::revision::{ElicitationSupport, Rules};
use crate::wire::{Object, Raw};

/// The extension that defines tasks in 2026-07-28 (SEP-2663, extension identifier).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The extension for clients that log in with their own credentials (SEP-1046).
pub const CLIENT_CREDENTIALS_EXTENSION: &str = "io.modelcontextprotocol/oauth-client-credentials";

/// The extension for clients that log in by a company's identity provider (SEP-990).
pub const ENTERPRISE_AUTHORIZATION_EXTENSION: &str =
    "io.modelcontextprotocol/enterprise-managed-authorization";

/// Whether an extension belongs to one connection: each client declares its own use of it, and none passes on the
/// declaration of another.
pub fn is_connection_extension(name: &str) -> bool {
    [TASKS_EXTENSION, CLIENT_CREDENTIALS_EXTENSION, ENTERPRISE_AUTHORIZATION_EXTENSION]
        .contains(&name)
}

/// A server's capabilities (2026-07-28 schema, `ServerCapabilities`). Their encoding depends on the revision and the
/// dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// It has tools.
    pub tools: bool,
    /// It has resources or templates.
    pub resources: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It completes arguments.
    pub completions: bool,
    /// It sends log messages.
    pub logging: bool,
    /// Its lists can change while it runs.
    pub list_changed: bool,
    /// Its resources can be subscribed to.
    pub subscribe: bool,
    /// It has tools that run as tasks.
    pub tasks: bool,
    /// It has skills, and their directories can be read.
    pub skills: bool,
}

/// A client's capabilities (2026-07-28 schema, `ClientCapabilities`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientCapabilities {
    /// It supports elicitation forms.
    pub elicitation_form: bool,
    /// It supports URL elicitations.
    pub elicitation_url: bool,
    /// It samples from its model.
    pub sampling: bool,
    /// It lists its roots.
    pub roots: bool,
    /// It supports tasks that the server creates for its calls (SEP-2663, capability negotiation).
    pub tasks: bool,
    /// The capabilities as received.
    pub raw: Option<Raw>,
}

impl ClientCapabilities {
    /// Whether it supports any input request.
    pub fn accepts_input_requests(&self) -> bool {
        self.elicitation_form || self.elicitation_url || self.sampling || self.roots
    }

    /// Whether it supports sampling with tools (2025-11-25 client/sampling, capabilities).
    pub fn samples_with_tools(&self) -> bool {
        let declared = self.raw.as_ref().and_then(Raw::as_object);
        let sampling = declared.and_then(|value| value.get("sampling")).and_then(Object::new);
        let tools = sampling.and_then(|sampling| sampling.get("tools"));
        self.sampling && tools.is_some_and(|text| text != "false" && text != "null")
    }

    /// The capabilities as far as a revision has them. Where elicitation has no modes, it means forms.
    #[must_use]
    pub fn in_revision(mut self, rules: &Rules) -> Self {
        if rules.elicitation == ElicitationSupport::Form {
            self.elicitation_form |= self.elicitation_url;
            self.elicitation_url = false;
        }
        self
    }

    /// Reads a capabilities object. `true` counts as `{}` and `false` as absent, because hand-written clients send
    /// booleans.
    pub fn read(object: Object<'_>) -> Self {
        let given = object.get_many(["elicitation", "sampling", "roots", "extensions"]);
        let [elicitation, sampling, roots, extensions] =
            given.map(|text| text.filter(|text| *text != "false" && *text != "null"));
        let modes = elicitation.and_then(Object::new);
        let has_mode = |mode| modes.is_some_and(|modes| modes.get(mode).is_some());
        let url = has_mode("url");
        Self {
            // An empty object means forms only, as in 2025-06-18 (2025-11-25 client/elicitation, capabilities).
            elicitation_form: elicitation.is_some() && (has_mode("form") || !url),
            elicitation_url: url,
            sampling: sampling.is_some(),
            roots: roots.is_some(),
            tasks: extensions.and_then(Object::new).is_some_and(declares_tasks),
            raw: Some(Raw::from_validated(object.text())),
        }
    }
}

fn declares_tasks(extensions: Object<'_>) -> bool {
    extensions.get(TASKS_EXTENSION).is_some_and(|text| text != "false" && text != "null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    fn read(text: &str) -> ClientCapabilities {
        ClientCapabilities::read(Object::new(text).unwrap())
    }

    #[test]
    fn an_empty_elicitation_means_forms() {
        let client = read(r#"{"elicitation":{},"roots":{"listChanged":true}}"#);
        assert!(
            client.elicitation_form && !client.elicitation_url && client.roots && !client.sampling
        );
    }

    #[test]
    fn only_the_named_modes_are_offered() {
        let client = read(r#"{"elicitation":{"url":{}}}"#);
        assert!(!client.elicitation_form && client.elicitation_url);
    }

    #[test]
    fn a_revision_without_modes_has_forms_only() {
        let declared = r#"{"elicitation":{"url":{}}}"#;
        let older = read(declared).in_revision(Revision::V2025_06_18.rules());
        assert!(older.elicitation_form && !older.elicitation_url);
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            assert_eq!(read(declared).in_revision(revision.rules()), read(declared));
        }
    }

    #[test]
    fn tasks_are_an_extension_among_others() {
        assert!(read(r#"{"extensions":{"a/b":{},"io.modelcontextprotocol/tasks":{}}}"#).tasks);
        assert!(!read(r#"{"extensions":{"a/b":{}},"tasks":{}}"#).tasks);
        assert!(!read(r#"{"extensions":true}"#).tasks);
    }

    #[test]
    fn sampling_with_tools_is_declared_of_its_own() {
        assert!(read(r#"{"sampling":{"tools":{}}}"#).samples_with_tools());
        assert!(!read(r#"{"sampling":{}}"#).samples_with_tools());
        assert!(!read(r#"{"sampling":{"tools":false}}"#).samples_with_tools());
    }

    #[test]
    fn booleans_are_accepted_as_objects() {
        let client = read(r#"{"sampling":true,"roots":false}"#);
        assert!(client.sampling && !client.roots);
    }
}
