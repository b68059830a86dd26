//! The members of `params` and of its `_meta` that most methods read.
//!
//! The scan visits them anyway. Recording their positions saves every request a second and a third walk.

use crate::wire::meta;

/// Raw JSON texts; `None` means absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamMembers<'a> {
    /// `_meta`.
    pub meta: Option<&'a str>,
    /// `name`: the tool or prompt.
    pub name: Option<&'a str>,
    /// `arguments`.
    pub arguments: Option<&'a str>,
    /// `inputResponses`: the client's input responses on a retry (2026-07-28 schema, `InputResponseRequestParams`).
    pub input_responses: Option<&'a str>,
    /// `requestState`: the request state on a retry.
    pub request_state: Option<&'a str>,
    /// `task`: the request to run the call as a task (2025-11-25 schema, `TaskAugmentedRequestParams`).
    pub task: Option<&'a str>,
    /// `_meta`: the protocol version.
    pub protocol_version: Option<&'a str>,
    /// `_meta`: the client's capabilities.
    pub capabilities: Option<&'a str>,
    /// `_meta`: the client's `Implementation`.
    pub client_info: Option<&'a str>,
    /// `_meta`: the minimum level of log messages.
    pub log_level: Option<&'a str>,
    /// `_meta`: the progress token.
    pub progress_token: Option<&'a str>,
    /// Whether `params`, and its `_meta`, have other members than these.
    pub has_extra: [bool; 2],
}

/// Records the members of an object and of its `_meta` during a scan.
pub(super) trait MemberVisitor<'a> {
    /// Visits a member with the raw text of its value.
    fn visit_member(&mut self, name: &[u8], value: &'a str, is_meta: bool);
}

impl<'a> MemberVisitor<'a> for ParamMembers<'a> {
    fn visit_member(&mut self, name: &[u8], value: &'a str, is_meta: bool) {
        match self.slot(name, is_meta) {
            Some(slot) => _ = slot.get_or_insert(value),
            None => self.has_extra[usize::from(is_meta)] = true,
        }
    }
}

impl<'a> ParamMembers<'a> {
    /// Whether this is the name of one of the recorded members of `params`.
    pub(crate) fn is_known_member(name: &str) -> bool {
        Self::default().slot(name.as_bytes(), false).is_some()
    }

    /// The field for a member of `params`, or of its `_meta`.
    fn slot(&mut self, key: &[u8], is_meta: bool) -> Option<&mut Option<&'a str>> {
        let is = |name: &str| key == name.as_bytes();
        match is_meta {
            false if is("name") => Some(&mut self.name),
            false if is("arguments") => Some(&mut self.arguments),
            false if is("_meta") => Some(&mut self.meta),
            false if is("inputResponses") => Some(&mut self.input_responses),
            false if is("requestState") => Some(&mut self.request_state),
            false if is("task") => Some(&mut self.task),
            true if is(meta::PROTOCOL_VERSION) => Some(&mut self.protocol_version),
            true if is(meta::CLIENT_CAPABILITIES) => Some(&mut self.capabilities),
            true if is(meta::CLIENT_INFO) => Some(&mut self.client_info),
            true if is(meta::LOG_LEVEL) => Some(&mut self.log_level),
            true if is(meta::PROGRESS_TOKEN) => Some(&mut self.progress_token),
            _ => None,
        }
    }
}
