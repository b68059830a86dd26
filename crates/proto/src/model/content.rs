//! Content blocks of tool results and prompt messages, and the contents of resources.

use alloc::string::String;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::wire::Raw;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints for clients about a block or resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whom it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<alloc::vec::Vec<Role>>,
    /// How important it is, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it last changed, as ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// One block of content.
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
    /// A picture.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Its bytes in base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// Sound.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// Its bytes in base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// A resource, embedded.
    Resource {
        /// What it holds.
        resource: Contents,
    },
    /// A resource, linked.
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        /// Where it is.
        uri: String,
        /// Its name.
        name: String,
        /// What it is.
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

/// The members of all kinds of blocks. A block is read through this and not by its tag, because a tagged
/// value is kept in between in a form that raw JSON does not survive.
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
        block.ok_or_else(|| D::Error::custom("no content block of a known kind"))
    }
}

/// What a resource holds: text, or bytes in base64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// Where it is.
    pub uri: String,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Facts for programs.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl Contents {
    /// Contents that are text.
    pub fn text(uri: impl Into<String>, mime_type: &str, text: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// Contents that are bytes, given in base64.
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
