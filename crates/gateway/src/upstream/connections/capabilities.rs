//! The capabilities of a caller that the gateway declares to an upstream.

use std::sync::Arc;

use creole::Context;
use creole::proto::model::{ClientCapabilities, is_connection_extension};
use creole::proto::revision::ElicitationSupport;
use creole::proto::wire::{Object, Raw};

/// The capabilities that the upstream may use for this caller, limited by the rules of the caller's revision.
pub(crate) fn caller_capabilities(context: &Context) -> Arc<ClientCapabilities> {
    let caller = context.caller();
    let given = &caller.capabilities;
    let has_forms = given.elicitation_form || given.elicitation_url;
    match caller.rules.elicitation {
        // A revision without forms cannot carry one, whatever its client declares.
        ElicitationSupport::Absent if has_forms => Arc::new(ClientCapabilities {
            elicitation_form: false,
            elicitation_url: false,
            ..ClientCapabilities::clone(given)
        }),
        _ => Arc::clone(given),
    }
}

/// What a caller that accepts no input requests declares: its extensions except those that belong to its
/// connection to the gateway, such as tasks. `None` if it declares no other extension.
pub(crate) fn extensions_only(
    capabilities: &ClientCapabilities,
) -> Option<Arc<ClientCapabilities>> {
    let message = capabilities.raw.as_ref().and_then(Raw::as_object)?;
    let named = message.get("extensions").and_then(Object::new)?;
    if named.members().all(|(name, _)| is_connection_extension(&name)) {
        return None;
    }
    let raw = Raw::parse(&format!(r#"{{"extensions":{}}}"#, named.text())).ok()?;
    Some(Arc::new(ClientCapabilities { raw: Some(raw), ..ClientCapabilities::default() }))
}

/// The declared capabilities, as a part of the key of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredInputs {
    pub(crate) form: bool,
    pub(crate) url: bool,
    pub(crate) sampling: bool,
    pub(crate) roots: bool,
    pub(crate) raw: Option<String>,
}

impl DeclaredInputs {
    pub(crate) fn of(capabilities: &ClientCapabilities) -> Self {
        Self {
            form: capabilities.elicitation_form,
            url: capabilities.elicitation_url,
            sampling: capabilities.sampling,
            roots: capabilities.roots,
            raw: capabilities.raw.as_ref().map(|raw| raw.as_str().to_owned()),
        }
    }
}
