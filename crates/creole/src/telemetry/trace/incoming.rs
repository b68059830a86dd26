//! The trace context of a request, in `_meta` and in the headers.

use std::borrow::Cow;

use creole_proto::wire::{Raw, unquote};

use super::baggage::is_baggage;
use super::context::{Link, TraceContext, is_tracestate};

/// The names of the members of `_meta` and of the headers.
pub(super) const TRACEPARENT: &str = "traceparent";
pub(super) const TRACESTATE: &str = "tracestate";
pub(super) const BAGGAGE: &str = "baggage";

/// The trace headers of an HTTP request, as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeaders {
    /// `traceparent`.
    pub traceparent: Option<Box<str>>,
    /// `tracestate`, several headers joined.
    pub tracestate: Option<Box<str>>,
    /// `baggage`, several headers joined.
    pub baggage: Option<Box<str>>,
}

/// The valid parts of a context that one place of a request has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TraceFields<'a> {
    /// The context and its text.
    pub(super) parent: Option<(TraceContext, Cow<'a, str>)>,
    /// `tracestate`, if there is a parent.
    pub(super) tracestate: Option<Cow<'a, str>>,
    pub(super) baggage: Option<Cow<'a, str>>,
    /// Whether a part was malformed.
    pub(super) is_malformed: bool,
}

impl<'a> TraceFields<'a> {
    /// The context in `_meta`.
    pub(super) fn of_meta(meta: &'a Raw) -> Self {
        // Most requests have none.
        if !has_fields(meta.as_str()) {
            return Self::default();
        }
        let mut found = [None, None, None];
        for (name, value) in meta.as_object().map(|meta| meta.members()).into_iter().flatten() {
            let position = [TRACEPARENT, TRACESTATE, BAGGAGE].iter().position(|it| **it == name);
            if let Some(position) = position {
                // A value that is no string is malformed, as the empty text is.
                found[position] = Some(unquote(value).unwrap_or_default());
            }
        }
        Self::checked(found)
    }

    /// The context in the headers.
    pub(super) fn of_headers(headers: &'a TraceHeaders) -> Self {
        let TraceHeaders { traceparent, tracestate, baggage } = headers;
        Self::checked([traceparent, tracestate, baggage].map(|text| text.as_deref().map(Cow::from)))
    }

    /// Keeps the valid parts.
    fn checked([traceparent, tracestate, baggage]: [Option<Cow<'a, str>>; 3]) -> Self {
        let mut is_malformed = false;
        let mut keep = |text: Option<Cow<'a, str>>, is_valid: fn(&str) -> bool| {
            let kept = text.as_ref().is_none_or(|text| is_valid(text));
            is_malformed |= !kept;
            text.filter(|_| kept)
        };
        let traceparent = keep(traceparent, |text| TraceContext::parse(text.as_bytes()).is_some());
        let tracestate = keep(tracestate, is_tracestate);
        let baggage = keep(baggage, is_baggage);
        let parent =
            traceparent.and_then(|text| Some((TraceContext::parse(text.as_bytes())?, text)));
        let tracestate = tracestate.filter(|_| parent.is_some());
        Self { parent, tracestate, baggage, is_malformed }
    }
}

/// Whether the text of `_meta` may have members of a trace context.
pub(super) fn has_fields(meta: &str) -> bool {
    meta.contains("\"trace") || meta.contains("\"baggage\"")
}

/// The trace context of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IncomingTrace {
    /// The context that the call belongs to: that of `_meta`, else that of the headers.
    pub parent: Option<TraceContext>,
    /// `tracestate` of the same place.
    pub tracestate: Option<Box<str>>,
    /// The context of the headers, if it differs from that of `_meta`.
    pub other: Option<Link>,
    /// Whether a part was malformed. It counts as absent.
    pub is_malformed: bool,
}

impl IncomingTrace {
    /// Reads the context of a request.
    #[inline]
    pub fn read(meta: Option<&Raw>, headers: Option<&TraceHeaders>) -> Self {
        // Most requests have none.
        match (meta, headers) {
            (None, None) => Self::default(),
            (meta, headers) => Self::read_fields(meta, headers),
        }
    }

    fn read_fields(meta: Option<&Raw>, headers: Option<&TraceHeaders>) -> Self {
        let meta = meta.map(TraceFields::of_meta).unwrap_or_default();
        let headers = headers.map(TraceFields::of_headers).unwrap_or_default();
        let is_malformed = meta.is_malformed || headers.is_malformed;
        let mut places = [meta, headers].into_iter().filter_map(|place| {
            let (context, _) = place.parent?;
            Some((context, place.tracestate))
        });
        let Some((parent, tracestate)) = places.next() else {
            return Self { is_malformed, ..Self::default() };
        };
        let other = places.next().map(|(context, _)| context).filter(|other| *other != parent);
        let tracestate = tracestate.map(|text| text.into());
        Self { parent: Some(parent), tracestate, other, is_malformed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const HEADER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

    fn raw(text: &str) -> Raw {
        Raw::parse(text).unwrap()
    }

    fn headers(traceparent: &str) -> TraceHeaders {
        TraceHeaders { traceparent: Some(traceparent.into()), ..TraceHeaders::default() }
    }

    #[test]
    fn meta_is_the_parent_and_a_different_header_a_link() {
        let meta = raw(&format!(r#"{{"a":1,"traceparent":"{META}","tracestate":"a=1"}}"#));
        let [in_meta, in_header] = [META, HEADER].map(|it| TraceContext::parse(it.as_bytes()));
        let both = IncomingTrace::read(Some(&meta), Some(&headers(HEADER)));
        assert_eq!((both.parent, both.other), (in_meta, in_header));
        assert_eq!(both.tracestate.as_deref(), Some("a=1"));
        let same = IncomingTrace::read(Some(&meta), Some(&headers(META)));
        assert_eq!((same.parent, same.other), (in_meta, None));
        let header = IncomingTrace::read(Some(&raw("{}")), Some(&headers(HEADER)));
        assert_eq!((header.parent, header.other, header.tracestate), (in_header, None, None));
        assert_eq!(IncomingTrace::read(None, None), IncomingTrace::default());
    }

    #[test]
    fn a_malformed_context_counts_as_absent() {
        let cases = [
            r#"{"traceparent":["a"]}"#.to_owned(),
            r#"{"traceparent":null}"#.to_owned(),
            format!(r#"{{"traceparent":"{}"}}"#, META.to_uppercase()),
            format!(r#"{{"traceparent":"{META}\n"}}"#),
            r#"{"tracestate":"A"}"#.to_owned(),
            r#"{"baggage":{}}"#.to_owned(),
        ];
        for text in cases {
            let read = IncomingTrace::read(Some(&raw(&text)), None);
            assert_eq!(read, IncomingTrace { is_malformed: true, ..IncomingTrace::default() });
            let read = IncomingTrace::read(Some(&raw(&text)), Some(&headers(HEADER)));
            assert_eq!(read.parent, TraceContext::parse(HEADER.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_malformed_tracestate_leaves_the_parent() {
        let meta = raw(&format!(r#"{{"traceparent":"{META}","tracestate":"?"}}"#));
        let read = IncomingTrace::read(Some(&meta), None);
        assert!(read.parent.is_some() && read.tracestate.is_none() && read.is_malformed);
        let alone = IncomingTrace::read(Some(&raw(r#"{"tracestate":"a=1"}"#)), None);
        assert_eq!(alone, IncomingTrace::default());
    }
}
