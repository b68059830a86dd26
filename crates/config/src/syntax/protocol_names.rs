//! Names that a configuration may use and that the protocol defines.

use creole_proto::fault::FaultKind;
use creole_proto::method::Method;
use creole_proto::revision::Revision;

/// The capabilities that a server can declare.
pub(crate) const CAPABILITIES: [&str; 7] =
    ["tools", "resources", "prompts", "completions", "logging", "tasks", "skills"];

/// The names of the revisions that a dialect can be based on.
pub(crate) fn base_revisions() -> Vec<&'static str> {
    let with_handshake = |revision: &Revision| revision.rules().has_handshake();
    Revision::ALL.iter().filter(|each| with_handshake(each)).map(|each| each.rules().name).collect()
}

/// The names of all revisions.
pub(crate) fn revisions() -> Vec<&'static str> {
    Revision::ALL.iter().map(|each| each.rules().name).collect()
}

/// The names of all methods.
pub(crate) fn methods() -> Vec<&'static str> {
    Method::ALL.iter().map(|(_, name)| *name).collect()
}

/// The names of all kinds of faults.
pub(crate) fn fault_kinds() -> Vec<&'static str> {
    FaultKind::ALL.iter().map(|(_, name)| *name).collect()
}
