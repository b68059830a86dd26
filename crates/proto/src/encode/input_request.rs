//! Encodes input requests: as requests of the server, or inside `input_required`.

use alloc::string::String;
use alloc::vec::Vec;

use super::result_target::write_related_task;
use super::{write_foreign_key, write_key, write_raw_member, write_text_member};
use crate::model::adapt::lower_sampling_params;
use crate::model::{InputRequest, KeyedInputRequest};
use crate::revision::{ElicitationSupport, Rules};
use crate::wire::{Object, Raw};

/// The members of `_meta` that are a trace context (2026-07-28 basic, OpenTelemetry trace context).
const TRACE_MEMBERS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// The params of an input request. `trace` has the members of its trace context.
pub(crate) fn input_request_params(
    input_request: &InputRequest,
    rules: &Rules,
    related_task: Option<&str>,
    trace: Option<&Raw>,
) -> Option<String> {
    let trace = trace.and_then(Raw::as_object);
    let has_meta = related_task.is_some() || trace.is_some();
    let (mut out, mut own_meta) = (Vec::new(), None);
    out.push(b'{');
    match input_request {
        InputRequest::Form { message, schema } => {
            if rules.elicitation != ElicitationSupport::Form {
                write_text_member(&mut out, "mode", "form");
            }
            write_text_member(&mut out, "message", message);
            write_raw_member(&mut out, "requestedSchema", schema.as_str());
        }
        InputRequest::Url { message, url, id } => {
            write_text_member(&mut out, "mode", "url");
            write_text_member(&mut out, "message", message);
            write_text_member(&mut out, "url", url);
            // This includes clients that declare more than their revision has: the mode and the id were introduced
            // together (2025-11-25 schema, `ElicitRequestURLParams`).
            if rules.elicitation != ElicitationSupport::FormAndUrl {
                write_text_member(&mut out, "elicitationId", id);
            }
        }
        InputRequest::Sample { params } => {
            let lowered = params.as_object().filter(|_| !rules.sampling_details);
            let lowered = lowered.and_then(lower_sampling_params);
            let params = lowered.as_deref().unwrap_or(params.as_str());
            let Some(params) = Object::new(params).filter(|_| has_meta) else {
                return Some(params.into());
            };
            write_members(&mut out, params, |name| name != "_meta");
            own_meta = params.get("_meta").map(String::from);
        }
        InputRequest::Roots if !has_meta => return None,
        InputRequest::Roots => {}
    }
    if has_meta {
        write_key(&mut out, "_meta");
        out.push(b'{');
        write_meta(&mut out, related_task, own_meta.as_deref(), trace);
        out.push(b'}');
    }
    out.push(b'}');
    String::from_utf8(out).ok()
}

/// Writes the members of `_meta`. The task replaces those of sampling params, and the trace context replaces theirs.
fn write_meta(
    out: &mut Vec<u8>,
    related_task: Option<&str>,
    own: Option<&str>,
    trace: Option<Object<'_>>,
) {
    match related_task {
        Some(id) => write_related_task(out, id),
        None => {
            let own = own.and_then(Object::new).unwrap_or(Object::EMPTY);
            write_members(out, own, |name| !TRACE_MEMBERS.contains(&name));
        }
    }
    write_members(out, trace.unwrap_or(Object::EMPTY), |_| true);
}

/// Writes those members of an object whose names are wanted.
fn write_members(out: &mut Vec<u8>, object: Object<'_>, is_wanted: impl Fn(&str) -> bool) {
    for (name, value) in object.members().filter(|(name, _)| is_wanted(name)) {
        write_foreign_key(out, &name);
        out.extend_from_slice(value.as_bytes());
    }
}

/// Writes the members of an `input_required` result (2026-07-28 schema, `InputRequiredResult`).
pub(crate) fn write_input_required(
    out: &mut Vec<u8>,
    input_requests: &[KeyedInputRequest],
    state: Option<&str>,
    rules: &Rules,
) {
    write_text_member(out, "resultType", "input_required");
    if !input_requests.is_empty() {
        write_input_requests(out, input_requests, rules);
    }
    if let Some(state) = state {
        write_text_member(out, "requestState", state);
    }
}

/// Writes input requests by key (2026-07-28 schema, `InputRequests`).
pub(super) fn write_input_requests(
    out: &mut Vec<u8>,
    input_requests: &[KeyedInputRequest],
    rules: &Rules,
) {
    write_key(out, "inputRequests");
    out.push(b'{');
    input_requests.iter().for_each(|ask| write_input_request(out, ask, rules));
    out.push(b'}');
}

fn write_input_request(out: &mut Vec<u8>, ask: &KeyedInputRequest, rules: &Rules) {
    write_foreign_key(out, &ask.key);
    out.push(b'{');
    write_text_member(out, "method", ask.question.method());
    if let Some(params) = input_request_params(&ask.question, rules, None, None) {
        write_raw_member(out, "params", &params);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    #[test]
    fn a_url_elicitation_has_an_id_in_the_revisions_with_ids() {
        let (message, url, id) = ("m".into(), "https://a.example/".into(), "7".into());
        let input_request = InputRequest::Url { message, url, id };
        for revision in Revision::ALL {
            let rules = revision.rules();
            let params = input_request_params(&input_request, rules, None, None).unwrap();
            let is_named = params.contains(r#""elicitationId":"7""#);
            let has_names = rules.elicitation != ElicitationSupport::FormAndUrl;
            assert_eq!(is_named, has_names, "{revision:?} {params}");
        }
    }

    #[test]
    fn a_trace_context_is_part_of_meta_in_every_kind_of_input_request() {
        let (rules, trace) =
            (Rules::NEWEST_HANDSHAKE, Raw::parse(r#"{"traceparent":"t"}"#).unwrap());
        let sample = |params: &str| InputRequest::Sample { params: Raw::parse(params).unwrap() };
        let schema = Raw::parse("{}").unwrap();
        let rows = [
            (InputRequest::Roots, None, r#"{"_meta":{"traceparent":"t"}}"#),
            (
                InputRequest::Roots,
                Some("7"),
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"7"},"traceparent":"t"}}"#,
            ),
            (
                InputRequest::Form { message: "m".into(), schema },
                None,
                r#"{"mode":"form","message":"m","requestedSchema":{},"_meta":{"traceparent":"t"}}"#,
            ),
            (sample(r#"{"maxTokens":1}"#), None, r#"{"maxTokens":1,"_meta":{"traceparent":"t"}}"#),
            (
                sample(r#"{"_meta":{"k":1,"traceparent":"u","tracestate":"a=1"},"maxTokens":1}"#),
                None,
                r#"{"maxTokens":1,"_meta":{"k":1,"traceparent":"t"}}"#,
            ),
        ];
        for (input_request, task, expected) in rows {
            let params = input_request_params(&input_request, rules, task, Some(&trace));
            assert_eq!(params.as_deref(), Some(expected));
        }
        let unchanged = r#"{"_meta":{"traceparent":"u"},"maxTokens":1}"#;
        let params = input_request_params(&sample(unchanged), rules, None, None);
        assert_eq!(params.as_deref(), Some(unchanged));
        assert_eq!(input_request_params(&InputRequest::Roots, rules, None, None), None);
    }
}
