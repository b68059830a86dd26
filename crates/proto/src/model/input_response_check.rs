//! Checks the general shape of input responses. The requested form or sampling result is checked by the code that sent
//! the input request.

use super::InputRequest;
use crate::wire::Object;

impl InputRequest {
    /// Checks whether a value is a valid response to this input request.
    ///
    /// # Errors
    /// Describes the required shape.
    pub fn check_response(&self, response: Object<'_>) -> Result<(), &'static str> {
        match self {
            Self::Form { .. } => {
                let content = response.get("content").filter(|content| *content != "null");
                let is_object = content.is_none_or(|content| Object::new(content).is_some());
                match check_action(response)? {
                    true if !is_object => Err("`content` must be an object"),
                    _ => Ok(()),
                }
            }
            Self::Url { .. } => check_action(response).map(|_| ()),
            Self::Sample { .. } => check_message(response),
            Self::Roots => check_roots(response),
        }
    }
}

/// Whether the user accepted (2025-06-18 client/elicitation, response actions).
fn check_action(response: Object<'_>) -> Result<bool, &'static str> {
    match response.string("action").ok().flatten().as_deref() {
        Some("accept") => Ok(true),
        Some("decline" | "cancel") => Ok(false),
        _ => Err("`action` must be one of `accept`, `decline` and `cancel`"),
    }
}

/// Checks a message of a model: its role, and one block or a list of blocks (2025-11-25 schema, `CreateMessageResult`).
fn check_message(response: Object<'_>) -> Result<(), &'static str> {
    if !matches!(response.string("role").ok().flatten().as_deref(), Some("user" | "assistant")) {
        return Err("`role` must be `user` or `assistant`");
    }
    let is_block = |block: &&str| Object::new(block).is_some();
    let is_content = match response.array("content") {
        Ok(Some(blocks)) => blocks.iter().all(is_block),
        _ => response.get("content").as_ref().is_some_and(is_block),
    };
    is_content.then_some(()).ok_or("`content` must be a block or a list of blocks")
}

fn check_roots(response: Object<'_>) -> Result<(), &'static str> {
    let names_it = |root: &str| {
        Object::new(root).is_some_and(|root| matches!(root.string("uri"), Ok(Some(_))))
    };
    let roots = response.array("roots").ok().flatten();
    let are_named = roots.is_some_and(|roots| roots.into_iter().all(names_it));
    are_named.then_some(()).ok_or("`roots` must be a list of objects with a `uri`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Raw;

    fn is_one(input_request: &InputRequest, answer: &str) -> bool {
        input_request.check_response(Object::new(answer).unwrap()).is_ok()
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
        for (input_request, right, invalid) in rows {
            for answer in right {
                assert!(is_one(input_request, answer), "{input_request:?}: {answer}");
            }
            for answer in invalid {
                assert!(!is_one(input_request, answer), "{input_request:?}: {answer}");
            }
        }
    }
}
