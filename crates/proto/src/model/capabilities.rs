//! What each side can do.

use crate::wire::{Object, Raw};

/// What a server has to offer; how it is written depends on revision and dialect.
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
}

/// What a client can be asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientCapabilities {
    /// It shows forms.
    pub elicitation_form: bool,
    /// It opens pages.
    pub elicitation_url: bool,
    /// It samples from its model.
    pub sampling: bool,
    /// It tells its roots.
    pub roots: bool,
    /// What it said, as it said it.
    pub raw: Option<Raw>,
}

impl ClientCapabilities {
    /// Reads a capabilities object; a capability given as `true` counts as `{}` and `false` as absent,
    /// because hand-written clients send booleans.
    pub fn read(object: Object<'_>) -> Self {
        let given = object.pick(["elicitation", "sampling", "roots"]);
        let [elicitation, sampling, roots] =
            given.map(|text| text.filter(|text| *text != "false" && *text != "null"));
        let modes = elicitation.and_then(Object::new);
        let has_mode = |mode| modes.is_some_and(|modes| modes.get(mode).is_some());
        let url = has_mode("url");
        Self {
            // An empty object means forms only: that was the capability's first shape.
            elicitation_form: elicitation.is_some() && (has_mode("form") || !url),
            elicitation_url: url,
            sampling: sampling.is_some(),
            roots: roots.is_some(),
            raw: Some(Raw::trusted(object.text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn booleans_are_taken_for_objects() {
        let client = read(r#"{"sampling":true,"roots":false}"#);
        assert!(client.sampling && !client.roots);
    }
}
