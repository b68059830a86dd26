//! Records which result members the scan has seen, so that a relayed result that needs no rewriting is not parsed a
//! second time.

use super::param_members::MemberVisitor;
use crate::wire::meta;

/// The members seen in a `result` and its `_meta`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultMembers {
    /// `resultType`.
    pub result_type: bool,
    /// `content`.
    pub content: bool,
    /// `structuredContent`.
    pub structured_content: bool,
    /// `structuredContent` that is not an object.
    pub non_object_structured_content: bool,
    /// `ttlMs`.
    pub ttl_ms: bool,
    /// `cacheScope`.
    pub cache_scope: bool,
    /// A `_meta` that is not an object.
    pub non_object_meta: bool,
    /// `_meta`: the server's `Implementation`.
    pub server_info: bool,
    /// `_meta`: the related task.
    pub related_task: bool,
}

impl<'a> MemberVisitor<'a> for ResultMembers {
    fn visit_member(&mut self, name: &[u8], value: &'a str, is_meta: bool) {
        let is_object = value.as_bytes().first() == Some(&b'{');
        match (is_meta, name) {
            (true, name) if name == meta::SERVER_INFO.as_bytes() => self.server_info = true,
            (true, name) if name == meta::RELATED_TASK.as_bytes() => self.related_task = true,
            (true, _) => {}
            (false, b"resultType") => self.result_type = true,
            (false, b"content") => self.content = true,
            (false, b"structuredContent") => {
                self.structured_content = true;
                self.non_object_structured_content |= !is_object;
            }
            (false, b"ttlMs") => self.ttl_ms = true,
            (false, b"cacheScope") => self.cache_scope = true,
            (false, b"_meta") => self.non_object_meta |= !is_object,
            (false, _) => {}
        }
    }
}
