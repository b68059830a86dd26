//! The size of results, and whether they report an error.

use creole_proto::model::{Content, Contents, PromptMessage, ToolResult};
use creole_proto::operation::Payload;
use creole_proto::wire::Raw;

/// The size in bytes of a result of a tool, a resource or a prompt, without its envelope.
pub(crate) fn result_size(payload: &Payload) -> Option<usize> {
    Some(match payload {
        Payload::Tool(result) => size_of_tool(result),
        Payload::Contents(contents, _) => contents.iter().map(size_of_contents).sum(),
        Payload::Prompt(result) => {
            let words = result.description.as_ref().map_or(0, String::len);
            let said = |message: &PromptMessage| size_of_block(&message.content);
            words + result.messages.iter().map(said).sum::<usize>()
        }
        Payload::Relayed(relayed) => relayed.result().as_str().len(),
        _ => return None,
    })
}

/// Whether a tool result reports an error.
pub(crate) fn is_error_result(payload: &Payload) -> bool {
    match payload {
        Payload::Tool(result) => result.is_error,
        Payload::Relayed(relayed) => relayed.is_error(),
        _ => false,
    }
}

fn size_of_tool(result: &ToolResult) -> usize {
    let raw = |raw: &Option<Raw>| raw.as_ref().map_or(0, |raw| raw.as_str().len());
    let blocks: usize = result.content.iter().map(size_of_block).sum();
    blocks + raw(&result.structured) + raw(&result.meta)
}

fn size_of_block(block: &Content) -> usize {
    match block {
        Content::Text { text, .. } => text.len(),
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
            data.len() + mime_type.len()
        }
        Content::Resource { resource } => size_of_contents(resource),
        Content::ResourceLink { uri, name, description, .. } => {
            uri.len() + name.len() + description.as_ref().map_or(0, String::len)
        }
    }
}

fn size_of_contents(contents: &Contents) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let meta = contents.meta.as_ref().map_or(0, |meta| meta.as_str().len());
    contents.uri.len() + text(&contents.text) + text(&contents.blob) + meta
}
