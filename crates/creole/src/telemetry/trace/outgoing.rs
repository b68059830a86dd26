//! The trace context that an upstream gets, or the client with an input request.

use std::borrow::Cow;
use std::sync::Arc;

use creole_proto::http::request_headers::HeaderField;
use creole_proto::wire::{Object, Raw, quote};

use super::baggage::select_members;
use super::context::TraceContext;
use super::incoming::{BAGGAGE, TRACEPARENT, TRACESTATE, TraceFields, TraceHeaders, has_fields};

/// What of a trace context an upstream gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Propagation {
    /// Whether it gets any. A server of another company may have to know nothing of our traces.
    pub is_enabled: bool,
    /// The names of the baggage members that it gets.
    pub baggage: Arc<[Box<str>]>,
}

impl Default for Propagation {
    fn default() -> Self {
        Self { is_enabled: true, baggage: Arc::default() }
    }
}

/// The trace context of a request to an upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutgoingTrace {
    /// The extra members of `_meta`.
    pub meta: Option<Raw>,
    /// The headers, for transports that have headers. None if tracing is off: then only what the client sent goes on.
    pub headers: Vec<HeaderField>,
}

/// The context that a call received, and the span of the request to the upstream.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivedTrace<'a> {
    /// The extra members of `_meta`, as the client sent them.
    pub meta: Option<&'a Raw>,
    /// The trace headers of the client's request.
    pub headers: Option<&'a TraceHeaders>,
    /// Whether tracing is on.
    pub is_tracing: bool,
    /// The span of the request to the upstream and its `tracestate`, if the call is sampled.
    pub span: Option<(TraceContext, Option<&'a str>)>,
}

impl ReceivedTrace<'_> {
    /// What goes to an upstream.
    pub fn to_upstream(self, propagation: &Propagation) -> OutgoingTrace {
        let has_context = self.span.is_some()
            || self.headers.is_some()
            || self.is_tracing
            || self.meta.is_some_and(|meta| has_fields(meta.as_str()));
        if !has_context {
            return OutgoingTrace { meta: self.meta.cloned(), headers: Vec::new() };
        }
        let in_meta = self.meta.map(TraceFields::of_meta).unwrap_or_default();
        let in_headers = self.headers.map(TraceFields::of_headers).unwrap_or_default();
        let baggage = in_meta.baggage.as_ref().or(in_headers.baggage.as_ref());
        let baggage = baggage.and_then(|text| select_members(text, &propagation.baggage));
        let received = if in_meta.parent.is_some() { &in_meta } else { &in_headers };
        let mut parts = self.parent_and_state(received);
        parts.extend(baggage.map(|text| (BAGGAGE, Cow::from(text))));
        parts.retain(|_| propagation.is_enabled);
        let meta = write_meta(self.meta, &parts);
        let own =
            |(name, text): TracePart<'_>| (Cow::Borrowed(name), Cow::Owned(text.into_owned()));
        let headers = match self.is_tracing {
            true => parts.into_iter().map(own).collect(),
            false => Vec::new(),
        };
        OutgoingTrace { meta, headers }
    }

    /// The members of `_meta` that go to the client with an input request of the call: the span of the request, else the
    /// context of the call as it was received. `None` if there is no context.
    pub fn to_client(self) -> Option<Raw> {
        let has_context = self.span.is_some()
            || self.headers.is_some()
            || self.meta.is_some_and(|meta| has_fields(meta.as_str()));
        if !has_context {
            return None;
        }
        let in_meta = self.meta.map(TraceFields::of_meta).unwrap_or_default();
        let in_headers = self.headers.map(TraceFields::of_headers).unwrap_or_default();
        let received = if in_meta.parent.is_some() { &in_meta } else { &in_headers };
        write_meta(None, &self.parent_and_state(received))
    }

    /// The span, else what was received, with its `tracestate`.
    fn parent_and_state<'b>(&'b self, received: &'b TraceFields<'_>) -> Vec<TracePart<'b>> {
        let (parent, state) = match self.span {
            Some((span, state)) => (Some(Cow::from(span.to_text())), state),
            None => {
                let parent = received.parent.as_ref().map(|(_, text)| Cow::from(&**text));
                (parent, received.tracestate.as_deref())
            }
        };
        let parts = [(TRACEPARENT, parent), (TRACESTATE, state.map(Cow::from))];
        parts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

/// A member of a trace context, with its text.
type TracePart<'a> = (&'static str, Cow<'a, str>);

/// The members of `_meta` without the received context, and with this one.
fn write_meta(meta: Option<&Raw>, parts: &[TracePart<'_>]) -> Option<Raw> {
    let mut out = Vec::from(b"{");
    let separate = |out: &mut Vec<u8>| {
        if out.len() > 1 {
            out.push(b',');
        }
    };
    let received = meta.and_then(Raw::as_object).map(Object::members).into_iter().flatten();
    for (name, value) in received {
        if [TRACEPARENT, TRACESTATE, BAGGAGE].contains(&&*name) {
            continue;
        }
        separate(&mut out);
        quote(&mut out, &name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    }
    for (name, text) in parts {
        separate(&mut out);
        quote(&mut out, name);
        out.push(b':');
        quote(&mut out, text);
    }
    out.push(b'}');
    let text = String::from_utf8(out).ok().filter(|text| text.len() > 2)?;
    Raw::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn raw(text: &str) -> Raw {
        Raw::parse(text).unwrap()
    }

    fn meta_of(out: &OutgoingTrace) -> Option<&str> {
        out.meta.as_ref().map(Raw::as_str)
    }

    fn named(names: &[&str]) -> Propagation {
        Propagation {
            baggage: names.iter().map(|name| Box::from(*name)).collect(),
            ..Propagation::default()
        }
    }

    fn header(out: &OutgoingTrace, name: &str) -> Option<String> {
        let found = out.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone().into_owned())
    }

    #[test]
    fn with_tracing_off_the_context_passes_without_baggage_and_nothing_is_added() {
        let meta = format!(
            r#"{{"z":[ 1e400 ],"traceparent":"{PARENT}","tracestate":"a=1","baggage":"b=1"}}"#
        );
        let meta = raw(&meta);
        let received = ReceivedTrace { meta: Some(&meta), ..ReceivedTrace::default() };
        let out = received.to_upstream(&Propagation::default());
        let expected = format!(r#"{{"z":[ 1e400 ],"traceparent":"{PARENT}","tracestate":"a=1"}}"#);
        assert_eq!((meta_of(&out), out.headers.len()), (Some(&*expected), 0));
        let out = received.to_upstream(&named(&["b"]));
        assert!(meta_of(&out).unwrap().ends_with(r#","baggage":"b=1"}"#));
        let plain = raw(r#"{"a":1}"#);
        let received = ReceivedTrace { meta: Some(&plain), ..ReceivedTrace::default() };
        assert_eq!(meta_of(&received.to_upstream(&Propagation::default())), Some(r#"{"a":1}"#));
        let none = ReceivedTrace::default().to_upstream(&Propagation::default());
        assert_eq!(none, OutgoingTrace::default());
    }

    #[test]
    fn a_malformed_context_is_not_forwarded() {
        for text in [r#"{"traceparent":"00-1","tracestate":"a=1"}"#, r#"{"traceparent":[1]}"#] {
            for is_tracing in [false, true] {
                let meta = raw(text);
                let received =
                    ReceivedTrace { meta: Some(&meta), is_tracing, ..ReceivedTrace::default() };
                let out = received.to_upstream(&Propagation::default());
                assert_eq!(out, OutgoingTrace::default(), "{text}");
            }
        }
    }

    #[test]
    fn an_unsampled_context_goes_on_in_both_places() {
        let headers = TraceHeaders {
            traceparent: Some(PARENT.into()),
            tracestate: Some("a=1".into()),
            baggage: Some("tenant=x,secret=y".into()),
        };
        let received =
            ReceivedTrace { headers: Some(&headers), is_tracing: true, ..ReceivedTrace::default() };
        let out = received.to_upstream(&named(&["tenant"]));
        let expected =
            format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1","baggage":"tenant=x"}}"#);
        assert_eq!(meta_of(&out), Some(&*expected));
        assert_eq!(header(&out, TRACEPARENT).as_deref(), Some(PARENT));
        assert_eq!(header(&out, TRACESTATE).as_deref(), Some("a=1"));
        assert_eq!(header(&out, BAGGAGE).as_deref(), Some("tenant=x"));
    }

    #[test]
    fn a_sampled_call_sends_its_own_span() {
        let meta = raw(&format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1","k":"v"}}"#));
        let span = TraceContext::sampled([1; 16], [2; 8]);
        let received = ReceivedTrace {
            meta: Some(&meta),
            is_tracing: true,
            span: Some((span, Some("a=1"))),
            headers: None,
        };
        let out = received.to_upstream(&Propagation::default());
        let text = span.to_text();
        let expected = format!(r#"{{"k":"v","traceparent":"{text}","tracestate":"a=1"}}"#);
        assert_eq!(meta_of(&out), Some(&*expected));
        assert_eq!(header(&out, TRACEPARENT), Some(text));
    }

    #[test]
    fn a_client_gets_the_span_or_the_context_of_its_call_and_nothing_else() {
        let text =
            format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1","baggage":"b=1","k":1}}"#);
        let meta = raw(&text);
        let received = ReceivedTrace { meta: Some(&meta), ..ReceivedTrace::default() };
        let own = format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1"}}"#);
        assert_eq!(received.to_client().as_ref().map(Raw::as_str), Some(&*own));
        let span = TraceContext::sampled([1; 16], [2; 8]);
        let sampled = ReceivedTrace { span: Some((span, None)), is_tracing: true, ..received };
        let own = format!(r#"{{"traceparent":"{}"}}"#, span.to_text());
        assert_eq!(sampled.to_client().as_ref().map(Raw::as_str), Some(&*own));
        let headers = TraceHeaders { traceparent: Some(PARENT.into()), ..TraceHeaders::default() };
        let in_header = ReceivedTrace { headers: Some(&headers), ..ReceivedTrace::default() };
        assert!(in_header.to_client().is_some());
        let other = raw(r#"{"traceparent":"no","k":1}"#);
        let malformed = ReceivedTrace { meta: Some(&other), ..ReceivedTrace::default() };
        assert_eq!(malformed.to_client(), None);
        assert_eq!(ReceivedTrace::default().to_client(), None);
    }

    #[test]
    fn an_upstream_without_propagation_gets_nothing() {
        let meta = raw(&format!(r#"{{"traceparent":"{PARENT}","baggage":"b=1","k":"v"}}"#));
        let received =
            ReceivedTrace { meta: Some(&meta), is_tracing: true, ..ReceivedTrace::default() };
        let out = received.to_upstream(&Propagation { is_enabled: false, ..named(&["b"]) });
        assert_eq!((meta_of(&out), out.headers.len()), (Some(r#"{"k":"v"}"#), 0));
    }
}
