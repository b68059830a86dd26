//! Content blocks of tool results and prompt messages, and the contents of resources.

use alloc::string::String;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::wire::Raw;

/// The role of a message's author (2025-11-25 schema, `Role`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Hints for clients about a block or resource (2025-11-25 schema, `Annotations`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The intended audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<alloc::vec::Vec<Role>>,
    /// The importance, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// The time of the last change, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// One block of content (2025-11-25 schema, `ContentBlock`).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Hints for clients.
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<Annotations>,
    },
    /// An image.
    #[serde(rename_all = "camelCase")]
    Image {
        /// The bytes in base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// Audio.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// The bytes in base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// An embedded resource (2025-11-25 schema, `EmbeddedResource`).
    Resource {
        /// The contents.
        resource: Contents,
    },
    /// A link to a resource (2025-11-25 schema, `ResourceLink`).
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        /// Its URI.
        uri: String,
        /// Its name.
        name: String,
        /// Its description.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), annotations: None }
    }
}

/// The members of all kinds of blocks. Serde buffers internally tagged values in a form that raw JSON does not survive,
/// so a block is decoded through this type instead.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    annotations: Option<Annotations>,
    data: Option<String>,
    mime_type: Option<String>,
    resource: Option<Contents>,
    uri: Option<String>,
    name: Option<String>,
    description: Option<String>,
}

impl AnyBlock {
    fn block(self) -> Option<Content> {
        let mime_type = self.mime_type;
        Some(match self.kind.as_str() {
            "text" => Content::Text { text: self.text?, annotations: self.annotations },
            "image" => Content::Image { data: self.data?, mime_type: mime_type? },
            "audio" => Content::Audio { data: self.data?, mime_type: mime_type? },
            "resource" => Content::Resource { resource: self.resource? },
            "resource_link" => {
                let (uri, name, description) = (self.uri?, self.name?, self.description);
                Content::ResourceLink { uri, name, description, mime_type }
            }
            _ => return None,
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let block = AnyBlock::deserialize(deserializer)?.block();
        block.ok_or_else(|| D::Error::custom("not a known kind of content block"))
    }
}

/// The contents of a resource: text, or bytes in base64
/// (2025-11-25 schema, `TextResourceContents` and `BlobResourceContents`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// Its URI.
    pub uri: String,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl Contents {
    /// Text contents.
    pub fn text(uri: impl Into<String>, mime_type: &str, text: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// Binary contents, given in base64.
    pub fn blob(uri: impl Into<String>, mime_type: &str, base64: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            blob: Some(base64.into()),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_kind_of_block_is_read_as_it_was_written() {
        let meta = Some(Raw::parse(r#"{"a":1.0}"#).unwrap());
        let resource = Contents { meta, ..Contents::text("test://a", "text/plain", "t") };
        let blocks = vec![
            Content::text("t"),
            Content::Image { data: "AA==".into(), mime_type: "image/png".into() },
            Content::Audio { data: "AA==".into(), mime_type: "audio/wav".into() },
            Content::Resource { resource },
            Content::ResourceLink {
                uri: "test://a".into(),
                name: "a".into(),
                description: None,
                mime_type: Some("text/plain".into()),
            },
        ];
        assert_eq!(Raw::from_value(&blocks).decode::<Vec<Content>>().unwrap(), blocks);
    }
}
