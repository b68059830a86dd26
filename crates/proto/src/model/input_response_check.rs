//! Checks the general shape of input responses. The requested form or sampling result is checked by the code that sent
//! the input request.

use super::InputRequest;
use crate::wire::Object;

impl InputRequest {
    /// Checks whether a value is a valid response to this input request.
    ///
    /// # Errors
    /// Describes the required shape.
    pub fn check_response(&self, answer: Object<'_>) -> Result<(), &'static str> {
        match self {
            Self::Form { .. } => {
                let content = answer.get("content").filter(|content| *content != "null");
                let is_object = content.is_none_or(|content| Object::new(content).is_some());
                match check_action(answer)? {
                    true if !is_object => Err("`content` must be an object"),
                    _ => Ok(()),
                }
            }
            Self::Url { .. } => check_action(answer).map(|_| ()),
            Self::Sample { .. } => check_message(answer),
            Self::Roots => check_roots(answer),
        }
    }
}

/// Whether the user accepted (2025-06-18 client/elicitation, response actions).
fn check_action(answer: Object<'_>) -> Result<bool, &'static str> {
    match answer.string("action").ok().flatten().as_deref() {
        Some("accept") => Ok(true),
        Some("decline" | "cancel") => Ok(false),
        _ => Err("`action` must be one of `accept`, `decline` and `cancel`"),
    }
}

/// Checks a message of a model: its role, and one block or a list of blocks (2025-11-25 schema, `CreateMessageResult`).
fn check_message(answer: Object<'_>) -> Result<(), &'static str> {
    if !matches!(answer.string("role").ok().flatten().as_deref(), Some("user" | "assistant")) {
        return Err("`role` must be `user` or `assistant`");
    }
    let is_block = |block: &&str| Object::new(block).is_some();
    let is_content = match answer.array("content") {
        Ok(Some(blocks)) => blocks.iter().all(is_block),
        _ => answer.get("content").as_ref().is_some_and(is_block),
    };
    is_content.then_some(()).ok_or("`content` must be a block or a list of blocks")
}

fn check_roots(answer: Object<'_>) -> Result<(), &'static str> {
    let names_it = |root: &str| {
        Object::new(root).is_some_and(|root| matches!(root.string("uri"), Ok(Some(_))))
    };
    let roots = answer.array("roots").ok().flatten();
    let are_named = roots.is_some_and(|roots| roots.into_iter().all(names_it));
    are_named.then_some(()).ok_or("`roots` must be a list of objects with a `uri`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Raw;

    fn is_one(question: &InputRequest, answer: &str) -> bool {
        question.check_response(Object::new(answer).unwrap()).is_ok()
    }

    #[test]
    fn an_input_response_has_the_shape_of_its_request() {
        let raw = Raw::parse("{}").unwrap();
        let form = InputRequest::Form { message: "m".into(), schema: raw.clone() };
        let page = InputRequest::Url { message: "m".into(), url: "u".into(), id: "i".into() };
        let model = InputRequest::Sample { params: raw };
        let rows: [(&InputRequest, &[&str], &[&str]); 4] = [
            (
                &form,
                &[
                    r#"{"action":"accept","content":{"n":1}}"#,
                    r#"{"action":"accept"}"#,
                    r#"{"action":"decline"}"#,
                    r#"{"action":"cancel","content":null}"#,
                ],
                &[
                    r#"{"action":"maybe"}"#,
                    r#"{"action":true}"#,
                    r#"{"action":"accept","content":[1]}"#,
                    r#"{"content":{}}"#,
                    "{}",
                ],
            ),
            (&page, &[r#"{"action":"accept"}"#], &["{}", r#"{"action":"Accept"}"#]),
            (
                &model,
                &[
                    r#"{"role":"assistant","content":{"type":"text"},"model":"m"}"#,
                    r#"{"role":"user","content":[{"type":"text"}]}"#,
                ],
                &[
                    r#"{"role":"assistant"}"#,
                    r#"{"role":"assistant","content":"text"}"#,
                    r#"{"role":"assistant","content":["text"]}"#,
                    r#"{"content":{}}"#,
                    r#"{"action":"accept"}"#,
                ],
            ),
            (
                &InputRequest::Roots,
                &[r#"{"roots":[]}"#, r#"{"roots":[{"uri":"file:///a"}]}"#],
                &["{}", r#"{"roots":{}}"#, r#"{"roots":["file:///a"]}"#, r#"{"roots":[{}]}"#],
            ),
        ];
        for (question, right, wrong) in rows {
            for answer in right {
                assert!(is_one(question, answer), "{question:?}: {answer}");
            }
            for answer in wrong {
                assert!(!is_one(question, answer), "{question:?}: {answer}");
            }
        }
    }
}
