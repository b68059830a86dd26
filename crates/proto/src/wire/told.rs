//! Which members a `result` and its `_meta` have, of those by which one is changed for another reader.
//!
//! The scan passes them anyway; noting them saves most results that are passed on a second walk.

use super::inside::Note;
use crate::meta;

/// What was seen in a `result`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// `resultType`.
    pub kind: bool,
    /// `content`.
    pub content: bool,
    /// `structuredContent`.
    pub data: bool,
    /// `structuredContent` that is no object.
    pub bare_data: bool,
    /// `ttlMs`.
    pub age: bool,
    /// `cacheScope`.
    pub scope: bool,
    /// A `_meta` that is no object.
    pub odd_meta: bool,
    /// `_meta`: who the server is.
    pub server: bool,
    /// `_meta`: the task that it belongs to.
    pub task: bool,
}

impl<'a> Note<'a> for Told {
    fn note(&mut self, name: &[u8], value: &'a str, is_meta: bool) {
        let is_object = value.as_bytes().first() == Some(&b'{');
        match (is_meta, name) {
            (true, name) if name == meta::SERVER_INFO.as_bytes() => self.server = true,
            (true, name) if name == meta::RELATED_TASK.as_bytes() => self.task = true,
            (true, _) => {}
            (false, b"resultType") => self.kind = true,
            (false, b"content") => self.content = true,
            (false, b"structuredContent") => {
                self.data = true;
                self.bare_data |= !is_object;
            }
            (false, b"ttlMs") => self.age = true,
            (false, b"cacheScope") => self.scope = true,
            (false, b"_meta") => self.odd_meta |= !is_object,
            (false, _) => {}
        }
    }
}
