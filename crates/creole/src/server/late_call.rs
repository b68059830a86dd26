//! What is kept of a call that no reader wants at its start, for readers that want it if it fails or is slow.

use std::borrow::Cow;
use std::sync::Arc;

use creole_proto::operation::Caller;

use crate::telemetry::facts::RequestFacts;
use crate::telemetry::trace::{CallTrace, IncomingTrace, TraceSettings};

/// What is kept of a call that has no record.
pub(crate) struct LateCall {
    /// The method on the wire.
    pub(super) method: &'static str,
    pub(super) target: KeptTarget,
    /// The client's id of the request, as JSON.
    request_id: Arc<str>,
    /// What else is known of the request. `None`: it came through a pipe, where nothing is.
    facts: Option<Box<RequestFacts>>,
}

impl LateCall {
    /// The call of this target, whose request has this method and id.
    #[inline]
    pub(crate) fn new(
        (method, request_id): (&'static str, Arc<str>),
        target: &str,
        facts: Option<RequestFacts>,
    ) -> Self {
        Self { method, target: KeptTarget::from(target), request_id, facts: facts.map(Box::new) }
    }

    /// What is known of the request.
    pub(super) fn facts(&self) -> Cow<'_, RequestFacts> {
        match self.facts.as_deref() {
            Some(facts) => Cow::Borrowed(facts),
            None => Cow::Owned(RequestFacts {
                method: Some(self.method),
                request_id: Some(Arc::clone(&self.request_id)),
                ..RequestFacts::default()
            }),
        }
    }

    /// The place of the call in the trace of its client, if it is in one.
    pub(super) fn trace(
        &self,
        caller: &Caller,
        settings: &TraceSettings,
        is_known: bool,
    ) -> Option<CallTrace> {
        let meta = caller.extra.as_ref().and_then(|extra| extra.meta.as_ref());
        let headers = self.facts.as_ref().and_then(|facts| facts.trace_headers.as_deref());
        let received = IncomingTrace::read(meta, headers);
        settings.late_call(received, is_known)
    }
}

/// The maximum length of a target that needs no allocation.
const MAX_SHORT: usize = 38;

/// The target of a call. Most calls end without being reported, and most targets are short names of tools: these are
/// kept without an allocation.
pub(super) enum KeptTarget {
    Short(u8, [u8; MAX_SHORT]),
    Long(Box<str>),
}

impl From<&str> for KeptTarget {
    #[inline]
    fn from(target: &str) -> Self {
        let mut bytes = [0; MAX_SHORT];
        match (bytes.get_mut(..target.len()), u8::try_from(target.len())) {
            (Some(short), Ok(length)) => {
                short.copy_from_slice(target.as_bytes());
                Self::Short(length, bytes)
            }
            _ => Self::Long(target.into()),
        }
    }
}

impl KeptTarget {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Short(length, bytes) => {
                let text = bytes.get(..usize::from(*length)).unwrap_or_default();
                str::from_utf8(text).unwrap_or_default()
            }
            Self::Long(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_of_any_length_is_kept_as_it_is() {
        for length in [0, 1, MAX_SHORT - 2, MAX_SHORT - 1, MAX_SHORT, 300] {
            let target = format!("{}é", "a".repeat(length));
            assert_eq!(KeptTarget::from(&*target).as_str(), target);
        }
        assert_eq!(KeptTarget::from("").as_str(), "");
    }
}
