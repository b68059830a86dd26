//! The members of `params` and of its `_meta` that most methods look at.
//!
//! The scan passes them anyway; noting where they are saves every request a second and third walk.

use crate::meta;

/// Raw JSON texts; `None` is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamMembers<'a> {
    /// `_meta`.
    pub meta: Option<&'a str>,
    /// `name`: the tool or prompt.
    pub name: Option<&'a str>,
    /// `arguments`.
    pub arguments: Option<&'a str>,
    /// `inputResponses`: answers of the client when it calls again.
    pub input_responses: Option<&'a str>,
    /// `requestState`: what it hands back then.
    pub request_state: Option<&'a str>,
    /// `task`: the wish that the call becomes one.
    pub task: Option<&'a str>,
    /// `_meta`: the protocol version.
    pub protocol_version: Option<&'a str>,
    /// `_meta`: what the client can be asked for.
    pub capabilities: Option<&'a str>,
    /// `_meta`: who the client says it is.
    pub client_info: Option<&'a str>,
    /// `_meta`: the least serious log messages that are wanted.
    pub log_level: Option<&'a str>,
    /// `_meta`: the token that progress is reported under.
    pub progress_token: Option<&'a str>,
    /// Whether `params`, and its `_meta`, have members that are none of these.
    pub has_extra: [bool; 2],
}

/// Keeps what the scan shows it of an object and its `_meta`.
pub(super) trait MemberVisitor<'a> {
    /// Takes a member; the raw text is that of its value.
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
    /// Whether this is the name of one of the members of `params` that are noted.
    pub(crate) fn is_known_member(name: &str) -> bool {
        Self::default().slot(name.as_bytes(), false).is_some()
    }

    /// The place of a member of `params`, or of its `_meta`.
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
