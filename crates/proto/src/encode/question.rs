//! Questions to the client: as requests of the server, or inside `input_required`.

use alloc::string::String;
use alloc::vec::Vec;

use super::{foreign_key, key, raw_member, text_member};
use crate::model::{Ask, Question};
use crate::revision::{Elicitation, Rules};

/// The params of a question.
pub(crate) fn params(question: &Question, rules: &Rules) -> Option<String> {
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
            if rules.elicitation == Elicitation::FormAndNamedUrl {
                text_member(&mut out, "elicitationId", id);
            }
        }
        Question::Sample { params } => return Some(params.as_str().into()),
        Question::Roots => return None,
    }
    out.push(b'}');
    String::from_utf8(out).ok()
}

/// Writes the members of an `input_required` result.
pub(crate) fn input_required(out: &mut Vec<u8>, asks: &[Ask], state: Option<&str>, rules: &Rules) {
    text_member(out, "resultType", "input_required");
    if !asks.is_empty() {
        key(out, "inputRequests");
        out.push(b'{');
        asks.iter().for_each(|ask| input_request(out, ask, rules));
        out.push(b'}');
    }
    if let Some(state) = state {
        text_member(out, "requestState", state);
    }
}

fn input_request(out: &mut Vec<u8>, ask: &Ask, rules: &Rules) {
    foreign_key(out, &ask.key);
    out.push(b'{');
    text_member(out, "method", ask.question.method());
    if let Some(params) = params(&ask.question, rules) {
        raw_member(out, "params", &params);
    }
    out.push(b'}');
}
