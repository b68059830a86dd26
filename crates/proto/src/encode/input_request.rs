//! Encodes input requests: as requests of the server, or inside `input_required`.

use alloc::string::String;
use alloc::vec::Vec;

use super::result_target::write_related_task;
use super::{write_foreign_key, write_key, write_raw_member, write_text_member};
use crate::model::adapt::lower_sampling_params;
use crate::model::{InputRequest, KeyedInputRequest};
use crate::revision::{ElicitationSupport, Rules};
use crate::wire::Object;

/// The params of an input request.
pub(crate) fn input_request_params(
    input_request: &InputRequest,
    rules: &Rules,
    related_task: Option<&str>,
) -> Option<String> {
    let mut out = Vec::new();
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
            match related_task.and(Object::new(params)) {
                None => return Some(params.into()),
                Some(params) => {
                    for (name, value) in params.members().filter(|(name, _)| name != "_meta") {
                        write_foreign_key(&mut out, &name);
                        out.extend_from_slice(value.as_bytes());
                    }
                }
            }
        }
        InputRequest::Roots if related_task.is_none() => return None,
        InputRequest::Roots => {}
    }
    if let Some(id) = related_task {
        write_key(&mut out, "_meta");
        out.push(b'{');
        write_related_task(&mut out, id);
        out.push(b'}');
    }
    out.push(b'}');
    String::from_utf8(out).ok()
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
    if let Some(params) = input_request_params(&ask.question, rules, None) {
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
            let params = input_request_params(&input_request, revision.rules(), None).unwrap();
            let is_named = params.contains(r#""elicitationId":"7""#);
            let has_names = revision.rules().elicitation != ElicitationSupport::FormAndUrl;
            assert_eq!(is_named, has_names, "{revision:?} {params}");
        }
    }
}
