//! Tools that return each kind of content, and small media samples.

use creole::{Content, Contents, Tool, ToolResult};
use serde_json::Value;

use crate::packs::{NO_ARGUMENTS, tool};

/// A PNG with one red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// A WAV with one sample of silence.
pub(crate) const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

/// The tools; the first one is the simplest.
pub(crate) fn tools() -> Vec<Tool> {
    let fixed = |name, about, content: fn() -> Vec<Content>| {
        tool(name, about, NO_ARGUMENTS, move |_: Value| async move { content() }).read_only()
    };
    vec![
        fixed("test_simple_text", "Returns one text", || vec![simple_text()]),
        fixed("test_image_content", "Returns one picture", || vec![image()]),
        fixed("test_audio_content", "Returns one sound", || vec![audio()]),
        fixed("test_embedded_resource", "Returns one embedded resource", || {
            vec![embedded_resource()]
        }),
        fixed("test_multiple_content_types", "Returns a text, a picture and a resource", mixed),
        fixed("test_resource_link", "Returns a link to a resource", || vec![resource_link()]),
        tool("test_error_handling", "Fails, always", NO_ARGUMENTS, fail).read_only(),
    ]
}

fn simple_text() -> Content {
    Content::text("This is a simple text response for testing.")
}

/// The image as a content block.
pub(crate) fn image() -> Content {
    Content::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() }
}

fn audio() -> Content {
    Content::Audio { data: WAV.to_owned(), mime_type: "audio/wav".to_owned() }
}

fn embedded_resource() -> Content {
    let text = "This is an embedded resource content.";
    Content::Resource { resource: Contents::text("test://embedded-resource", "text/plain", text) }
}

fn mixed() -> Vec<Content> {
    let data = r#"{"test":"data","value":123}"#;
    let resource = Contents::text("test://mixed-content-resource", "application/json", data);
    vec![Content::text("Multiple content types test:"), image(), Content::Resource { resource }]
}

fn resource_link() -> Content {
    Content::ResourceLink {
        uri: "test://static-text".to_owned(),
        name: "static-text".to_owned(),
        description: Some("A fixed text".to_owned()),
        mime_type: Some("text/plain".to_owned()),
    }
}

async fn fail(_: Value) -> ToolResult {
    ToolResult::error("This tool intentionally returns an error for testing")
}
