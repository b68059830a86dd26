//! Converts an upstream's content blocks for peers that do not support their kind. All other blocks keep their text.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::content::describe_link;
use crate::revision::Rules;
use crate::wire::{Object, quote};

/// Converts an array of blocks for the peer; `None` if nothing changes. `more` is a text block to append.
pub fn lower_raw_blocks(blocks: &[&str], more: Option<&str>, rules: &Rules) -> Option<String> {
    if more.is_none() && blocks.iter().all(|block| is_known(block, rules)) {
        return None;
    }
    let mut out = Vec::from(b"[");
    let mut part = |text: &str| {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(text.as_bytes());
    };
    for (position, block) in blocks.iter().enumerate() {
        part(lower_raw_block(block, position, rules).as_deref().unwrap_or(block));
    }
    if let Some(more) = more {
        part(&text_block(more));
    }
    out.push(b']');
    String::from_utf8(out).ok()
}

/// Converts one block for the peer; `None` if nothing changes. The position distinguishes it from other blocks of its
/// kind.
pub fn lower_raw_block(block: &str, position: usize, rules: &Rules) -> Option<String> {
    if is_known(block, rules) {
        return None;
    }
    let block = Object::new(block)?;
    let text = |name: &str| block.string(name).ok().flatten();
    if block_type(block).as_deref() == Some("audio") {
        let (data, mime) = (block.get("data").unwrap_or("\"\""), block.get("mimeType"));
        let mime = mime.map(|mime| format!(r#","mimeType":{mime}"#)).unwrap_or_default();
        let uri = format!("mcp-audio://{position}");
        let resource = format!(r#"{{"uri":"{uri}"{mime},"blob":{data}}}"#);
        return Some(format!(r#"{{"type":"resource","resource":{resource}}}"#));
    }
    let (uri, name) = (text("uri").unwrap_or_default(), text("name").unwrap_or_default());
    Some(text_block(&describe_link(&uri, &name, text("description").as_deref())))
}

/// Whether a block is a text block.
pub fn is_text(block: &str) -> bool {
    Object::new(block).and_then(block_type).as_deref() == Some("text")
}

/// Whether a peer supports the blocks of all revisions.
pub fn supports_all_blocks(rules: &Rules) -> bool {
    rules.audio && rules.resource_links
}

fn is_known(block: &str, rules: &Rules) -> bool {
    match Object::new(block).and_then(block_type).as_deref() {
        Some("audio") => rules.audio,
        Some("resource_link") => rules.resource_links,
        _ => true,
    }
}

pub(super) fn block_type(block: Object<'_>) -> Option<alloc::borrow::Cow<'_, str>> {
    block.string("type").ok().flatten()
}

pub(super) fn text_block(text: &str) -> String {
    let mut out = Vec::from(br#"{"type":"text","text":"#);
    quote(&mut out, text);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}
