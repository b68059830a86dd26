//! Questions to the client: as requests of the server, or inside `input_required`.

use alloc::string::String;
use alloc::vec::Vec;

use super::result::write_related_task;
use super::{foreign_key, key, raw_member, text_member};
use crate::adapt::lower_sampling;
use crate::model::{Ask, Question};
use crate::revision::{Elicitation, Rules};
use crate::wire::Object;

/// The params of a question.
pub(crate) fn params(
    question: &Question,
    rules: &Rules,
    related_task: Option<&str>,
) -> Option<String> {
    let mut out = Vec::new();
    out.push(b'{');
    match question {
        Question::Form { message, schema } => {
            if rules.elicitation != Elicitation::Form {
                text_member(&mut out, "mode", "form");
            }
            text_member(&mut out, "message", message);
            raw_member(&mut out, "requestedSchema", schema.as_str());
        }
        Question::Url { message, url, id } => {
            text_member(&mut out, "mode", "url");
            text_member(&mut out, "message", message);
            text_member(&mut out, "url", url);
            // Also where a client declares more than its revision has: the mode came with the id.
            if rules.elicitation != Elicitation::FormAndUrl {
                text_member(&mut out, "elicitationId", id);
            }
        }
        Question::Sample { params } => {
            let lowered = params.object().filter(|_| !rules.sampling_details);
            let lowered = lowered.and_then(lower_sampling);
            let params = lowered.as_deref().unwrap_or(params.as_str());
            match related_task.and(Object::new(params)) {
                None => return Some(params.into()),
                Some(params) => {
                    for (name, value) in params.members().filter(|(name, _)| name != "_meta") {
                        foreign_key(&mut out, &name);
                        out.extend_from_slice(value.as_bytes());
                    }
                }
            }
        }
        Question::Roots if related_task.is_none() => return None,
        Question::Roots => {}
    }
    if let Some(id) = related_task {
        key(&mut out, "_meta");
        out.push(b'{');
        write_related_task(&mut out, id);
        out.push(b'}');
    }
    out.push(b'}');
    String::from_utf8(out).ok()
}

/// Writes the members of an `input_required` result.
pub(crate) fn input_required(out: &mut Vec<u8>, asks: &[Ask], state: Option<&str>, rules: &Rules) {
    text_member(out, "resultType", "input_required");
    if !asks.is_empty() {
        input_requests(out, asks, rules);
    }
    if let Some(state) = state {
        text_member(out, "requestState", state);
    }
}

/// Writes questions by their keys.
pub(super) fn input_requests(out: &mut Vec<u8>, asks: &[Ask], rules: &Rules) {
    key(out, "inputRequests");
    out.push(b'{');
    asks.iter().for_each(|ask| input_request(out, ask, rules));
    out.push(b'}');
}

fn input_request(out: &mut Vec<u8>, ask: &Ask, rules: &Rules) {
    foreign_key(out, &ask.key);
    out.push(b'{');
    text_member(out, "method", ask.question.method());
    if let Some(params) = params(&ask.question, rules, None) {
        raw_member(out, "params", &params);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    #[test]
    fn a_page_to_visit_is_named_until_names_were_removed() {
        let (message, url, id) = ("m".into(), "https://a.example/".into(), "7".into());
        let question = Question::Url { message, url, id };
        for revision in Revision::ALL {
            let params = params(&question, revision.rules(), None).unwrap();
            let is_named = params.contains(r#""elicitationId":"7""#);
            let has_names = revision.rules().elicitation != Elicitation::FormAndUrl;
            assert_eq!(is_named, has_names, "{revision:?} {params}");
        }
    }
}
