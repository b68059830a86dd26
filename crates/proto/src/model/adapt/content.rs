//! Converts content blocks and structured results for peers whose revision lacks them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::model::{Content, Contents};
use crate::revision::{Rules, StructuredContent};
use crate::wire::Raw;

/// The blocks, with unsupported ones converted to supported ones.
pub fn lower_blocks<'a>(blocks: &'a [Content], rules: &Rules) -> Cow<'a, [Content]> {
    if blocks.iter().all(|block| is_known(block, rules)) {
        return Cow::Borrowed(blocks);
    }
    let lowered = blocks.iter().enumerate().map(|(position, block)| lower(block, position, rules));
    Cow::Owned(lowered.collect())
}

/// The structured result in the form that the peer's revision allows, if any.
pub fn lower_structured_content<'a>(value: &'a Raw, rules: &Rules) -> Option<Cow<'a, str>> {
    let is_object = value.as_object().is_some();
    match rules.structured_content {
        StructuredContent::Absent => None,
        // The tool's announced output schema is wrapped in the same way.
        StructuredContent::Object if !is_object => {
            Some(format!(r#"{{"result":{}}}"#, value.as_str()).into())
        }
        StructuredContent::Object | StructuredContent::Any => Some(value.as_str().into()),
    }
}

fn is_known(block: &Content, rules: &Rules) -> bool {
    match block {
        Content::Audio { .. } => rules.audio,
        Content::ResourceLink { .. } => rules.resource_links,
        Content::Text { .. } | Content::Image { .. } | Content::Resource { .. } => true,
    }
}

fn lower(block: &Content, position: usize, rules: &Rules) -> Content {
    match block {
        Content::Audio { data, mime_type } if !rules.audio => Content::Resource {
            resource: Contents::blob(format!("mcp-audio://{position}"), mime_type, data.clone()),
        },
        Content::ResourceLink { uri, name, description, .. } if !rules.resource_links => {
            Content::text(describe_link(uri, name, description.as_deref()))
        }
        known => known.clone(),
    }
}

pub(super) fn describe_link(uri: &str, name: &str, description: Option<&str>) -> String {
    let mut parts = Vec::from([name, uri]);
    parts.extend(description);
    parts.join(" - ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    #[test]
    fn the_oldest_revision_gets_sound_as_a_resource_and_links_as_text() {
        let blocks = [
            Content::Audio { data: "AAAA".into(), mime_type: "audio/wav".into() },
            Content::ResourceLink {
                uri: "file:///a".into(),
                name: "a".into(),
                description: Some("first".into()),
                mime_type: None,
            },
        ];
        let lowered = lower_blocks(&blocks, Revision::V2024_11_05.rules());
        assert!(matches!(&lowered[0], Content::Resource { resource } if resource.blob.is_some()));
        assert_eq!(lowered[1], Content::text("a - file:///a - first"));
        assert!(matches!(lower_blocks(&blocks, Revision::V2025_06_18.rules()), Cow::Borrowed(_)));
    }

    #[test]
    fn data_that_is_no_object_is_wrapped_where_only_objects_are_known() {
        let list = Raw::parse("[1]").unwrap();
        let lowered = |revision: Revision| lower_structured_content(&list, revision.rules());
        assert_eq!(lowered(Revision::V2025_03_26), None);
        assert_eq!(lowered(Revision::V2025_11_25).unwrap(), r#"{"result":[1]}"#);
        assert_eq!(lowered(Revision::V2026_07_28).unwrap(), "[1]");
    }
}
