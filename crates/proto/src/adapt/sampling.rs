//! Sampling for peers whose messages have one block each and know no tools: those before 2025-11-25.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::blocks::{kind, text_block};
use crate::encode::foreign_member;
use crate::wire::{Object, Raw};

/// The params of a question to such a client, if they differ: a message of several blocks becomes as many messages
/// of the same role.
pub fn lower_sampling(params: Object<'_>) -> Option<String> {
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
                blocks.into_iter().for_each(|block| part(&mut list, &with_content(message, block)));
            }
            None => part(&mut list, raw),
        }
    }
    list.push(b']');
    Some(with(params, "messages", &String::from_utf8(list).ok()?))
}

/// Whether a question has to do with tools, which such a peer knows nothing of.
pub fn samples_with_tools(params: Object<'_>) -> bool {
    let given = |name| params.get(name).is_some_and(|value| value != "null");
    let messages = params.array("messages").ok().flatten().unwrap_or_default();
    given("tools")
        || given("toolChoice")
        || messages.into_iter().filter_map(Object::new).any(|message| match blocks(message) {
            Some(blocks) => blocks.into_iter().any(is_of_tools),
            None => message.get("content").is_some_and(is_of_tools),
        })
}

/// What a model answered, as such a server can be told it: one block. `None` if that cannot be said.
pub fn lower_sampled(result: &Raw) -> Option<Raw> {
    let object = result.object()?;
    let Some(blocks) = blocks(object) else {
        let is_sayable = !object.get("content").is_some_and(is_of_tools);
        return is_sayable.then(|| result.clone());
    };
    let block = match blocks[..] {
        [block] if !is_of_tools(block) => String::from(block),
        _ => text_block(&joined(&blocks)?),
    };
    Some(Raw::trusted(&with_content(object, &block)))
}

/// The texts of blocks that are nothing else.
fn joined(blocks: &[&str]) -> Option<String> {
    let texts: Option<Vec<_>> = blocks.iter().map(|block| text(block)).collect();
    Some(texts?.join("\n"))
}

fn text(block: &str) -> Option<Cow<'_, str>> {
    let block = Object::new(block).filter(|block| kind(*block).as_deref() == Some("text"))?;
    block.string("text").ok().flatten()
}

/// The blocks of a message that has a list of them.
fn blocks<'a>(message: Object<'a>) -> Option<Vec<&'a str>> {
    message.array("content").ok().flatten()
}

fn is_of_tools(block: &str) -> bool {
    let kind = Object::new(block).and_then(kind);
    matches!(kind.as_deref(), Some("tool_use" | "tool_result"))
}

fn with_content(message: Object<'_>, content: &str) -> String {
    with(message, "content", content)
}

/// The same object with another value of one member.
fn with(object: Object<'_>, name: &str, value: &str) -> String {
    let mut out = Vec::from(b"{");
    for (member, old) in object.members() {
        foreign_member(&mut out, &member, if member == name { value } else { old });
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn part(list: &mut Vec<u8>, text: &str) {
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
        let lowered = lower_sampled(&Raw::parse(&result).unwrap())?;
        Some(String::from(lowered.object().unwrap().get("content").unwrap()))
    }

    const TEXT: &str = r#"{"type":"text","text":"a"}"#;
    const IMAGE: &str = r#"{"type":"image","data":"","mimeType":"image/png"}"#;
    const USE: &str = r#"{"type":"tool_use","id":"1","name":"t","input":{}}"#;

    #[test]
    fn several_blocks_become_messages_of_the_same_role_and_the_rest_stays() {
        let params = alloc::format!(
            r#"{{"messages":[{{"role":"user","content":[{TEXT},{IMAGE}]}},{{"role":"assistant","content":{TEXT}}}],"maxTokens":5}}"#
        );
        let expected = alloc::format!(
            r#"{{"messages":[{{"role":"user","content":{TEXT}}},{{"role":"user","content":{IMAGE}}},{{"role":"assistant","content":{TEXT}}}],"maxTokens":5}}"#
        );
        assert_eq!(lower_sampling(object(&params)), Some(expected.clone()));
        assert_eq!(lower_sampling(object(&expected)), None, "what is lowered stays as it is");
        assert_eq!(lower_sampling(object(r#"{"maxTokens":5}"#)), None);
    }

    #[test]
    fn an_answer_has_one_block_and_what_cannot_be_said_is_not() {
        assert_eq!(sampled(TEXT).as_deref(), Some(TEXT));
        assert_eq!(sampled(&alloc::format!("[{IMAGE}]")).as_deref(), Some(IMAGE));
        let two = alloc::format!("[{TEXT},{TEXT}]");
        assert_eq!(sampled(&two).as_deref(), Some(r#"{"type":"text","text":"a\na"}"#));
        assert_eq!(sampled("[]").as_deref(), Some(r#"{"type":"text","text":""}"#));
        for unsayable in [alloc::format!("[{TEXT},{IMAGE}]"), alloc::format!("[{USE}]"), USE.into()]
        {
            assert_eq!(sampled(&unsayable), None, "{unsayable}");
        }
    }

    #[test]
    fn tools_are_found_where_they_are_offered_and_where_they_were_used() {
        let used = alloc::format!(r#"{{"messages":[{{"role":"assistant","content":[{USE}]}}]}}"#);
        for params in [r#"{"messages":[],"tools":[]}"#, r#"{"toolChoice":{}}"#, &used] {
            assert!(samples_with_tools(object(params)), "{params}");
        }
        let plain =
            alloc::format!(r#"{{"messages":[{{"role":"user","content":{TEXT}}}],"tools":null}}"#);
        assert!(!samples_with_tools(object(&plain)));
    }
}
