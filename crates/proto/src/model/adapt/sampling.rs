//! Converts sampling for peers before 2025-11-25, whose messages have one block each and which do not support tools.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::raw_blocks::{block_type, text_block};
use crate::wire::{Object, Raw, write_foreign_member};

/// Converts the params of a sampling request; `None` if nothing changes. A message with several blocks becomes several
/// messages of the same role (2025-06-18 schema, `SamplingMessage`).
pub fn lower_sampling_params(params: Object<'_>) -> Option<String> {
    let messages = params.array("messages").ok().flatten()?;
    let messages: Vec<_> = messages.into_iter().map(|raw| (raw, Object::new(raw))).collect();
    let has_list = |message: &Object<'_>| blocks(*message).is_some();
    if !messages.iter().filter_map(|(_, message)| message.as_ref()).any(has_list) {
        return None;
    }
    let mut list = Vec::from(b"[");
    for (raw, message) in messages {
        match message.and_then(|message| Some((message, blocks(message)?))) {
            Some((message, blocks)) => {
                blocks
                    .into_iter()
                    .for_each(|block| push_element(&mut list, &with_content(message, block)));
            }
            None => push_element(&mut list, raw),
        }
    }
    list.push(b']');
    Some(with_member(params, "messages", &String::from_utf8(list).ok()?))
}

/// Whether a sampling request uses tools, which such a peer does not support.
pub fn sampling_uses_tools(params: Object<'_>) -> bool {
    let given = |name| params.get(name).is_some_and(|value| value != "null");
    let messages = params.array("messages").ok().flatten().unwrap_or_default();
    given("tools")
        || given("toolChoice")
        || messages.into_iter().filter_map(Object::new).any(|message| match blocks(message) {
            Some(blocks) => blocks.into_iter().any(is_tool_block),
            None => message.get("content").is_some_and(is_tool_block),
        })
}

/// Converts a sampling result to one block; `None` if that is impossible (2025-06-18 schema, `CreateMessageResult`).
pub fn lower_sampling_result(result: &Raw) -> Option<Raw> {
    let object = result.as_object()?;
    let Some(blocks) = blocks(object) else {
        let is_supported = !object.get("content").is_some_and(is_tool_block);
        return is_supported.then(|| result.clone());
    };
    let block = match blocks[..] {
        [block] if !is_tool_block(block) => String::from(block),
        _ => text_block(&join_texts(&blocks)?),
    };
    Some(Raw::from_validated(&with_content(object, &block)))
}

/// The joined texts, if all blocks are text blocks.
fn join_texts(blocks: &[&str]) -> Option<String> {
    let texts: Option<Vec<_>> = blocks.iter().map(|block| text(block)).collect();
    Some(texts?.join("\n"))
}

fn text(block: &str) -> Option<Cow<'_, str>> {
    let block = Object::new(block).filter(|block| block_type(*block).as_deref() == Some("text"))?;
    block.string("text").ok().flatten()
}

/// The blocks of a message that has an array of them.
fn blocks<'a>(message: Object<'a>) -> Option<Vec<&'a str>> {
    message.array("content").ok().flatten()
}

fn is_tool_block(block: &str) -> bool {
    let kind = Object::new(block).and_then(block_type);
    matches!(kind.as_deref(), Some("tool_use" | "tool_result"))
}

fn with_content(message: Object<'_>, content: &str) -> String {
    with_member(message, "content", content)
}

/// The same object with one member replaced.
fn with_member(object: Object<'_>, name: &str, value: &str) -> String {
    let mut out = Vec::from(b"{");
    for (member, old) in object.members() {
        write_foreign_member(&mut out, &member, if member == name { value } else { old });
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn push_element(list: &mut Vec<u8>, text: &str) {
    if list.len() > 1 {
        list.push(b',');
    }
    list.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object<'_> {
        Object::new(text).unwrap()
    }

    fn sampled(content: &str) -> Option<String> {
        let result = alloc::format!(r#"{{"role":"assistant","content":{content},"model":"m"}}"#);
        let lowered = lower_sampling_result(&Raw::parse(&result).unwrap())?;
        Some(String::from(lowered.as_object().unwrap().get("content").unwrap()))
    }

    const TEXT: &str = r#"{"type":"text","text":"a"}"#;
    const IMAGE: &str = r#"{"type":"image","data":"","mimeType":"image/png"}"#;
    const USE: &str = r#"{"type":"tool_use","id":"1","name":"t","input":{}}"#;

    #[test]
    fn several_blocks_become_messages_of_the_same_role_and_the_rest_is_unchanged() {
        let params = alloc::format!(
            r#"{{"messages":[{{"role":"user","content":[{TEXT},{IMAGE}]}},{{"role":"assistant","content":{TEXT}}}],"maxTokens":5}}"#
        );
        let expected = alloc::format!(
            r#"{{"messages":[{{"role":"user","content":{TEXT}}},{{"role":"user","content":{IMAGE}}},{{"role":"assistant","content":{TEXT}}}],"maxTokens":5}}"#
        );
        assert_eq!(lower_sampling_params(object(&params)), Some(expected.clone()));
        assert_eq!(
            lower_sampling_params(object(&expected)),
            None,
            "what is lowered stays as it is"
        );
        assert_eq!(lower_sampling_params(object(r#"{"maxTokens":5}"#)), None);
    }

    #[test]
    fn a_response_has_one_block_and_unsupported_ones_are_dropped() {
        assert_eq!(sampled(TEXT).as_deref(), Some(TEXT));
        assert_eq!(sampled(&alloc::format!("[{IMAGE}]")).as_deref(), Some(IMAGE));
        let two = alloc::format!("[{TEXT},{TEXT}]");
        assert_eq!(sampled(&two).as_deref(), Some(r#"{"type":"text","text":"a\na"}"#));
        assert_eq!(sampled("[]").as_deref(), Some(r#"{"type":"text","text":""}"#));
        for unsupported in
            [alloc::format!("[{TEXT},{IMAGE}]"), alloc::format!("[{USE}]"), USE.into()]
        {
            assert_eq!(sampled(&unsupported), None, "{unsupported}");
        }
    }

    #[test]
    fn tools_are_detected_in_offers_and_in_messages() {
        let used = alloc::format!(r#"{{"messages":[{{"role":"assistant","content":[{USE}]}}]}}"#);
        for params in [r#"{"messages":[],"tools":[]}"#, r#"{"toolChoice":{}}"#, &used] {
            assert!(sampling_uses_tools(object(params)), "{params}");
        }
        let plain =
            alloc::format!(r#"{{"messages":[{{"role":"user","content":{TEXT}}}],"tools":null}}"#);
        assert!(!sampling_uses_tools(object(&plain)));
    }
}
