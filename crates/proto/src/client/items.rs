//! Reads pages of lists. The items keep the text of the server.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::model::{CacheHints, Definition, ListKind};
use crate::operation::{Page, Payload};
use crate::revision::Rules;
use crate::wire::Object;

/// Reads a page of a list. An item that breaks the rules of its kind is excluded: clients would reject the whole list.
pub(super) fn read_page(kind: ListKind, result: Object<'_>, rules: &Rules) -> Result<Page, String> {
    let member = kind.member();
    let items = result.array(member).map_err(|error| format!("{error}"))?;
    let items = items.ok_or_else(|| format!("the server's list has no `{member}`"))?;
    let (mut found, mut excluded) = (Vec::with_capacity(items.len()), Vec::new());
    for (index, item) in items.into_iter().enumerate() {
        match Definition::from_untrusted(kind, item, index) {
            Ok(item) => found.push(Arc::new(item)),
            Err(item) => excluded.push(item),
        }
    }
    Ok(Page {
        kind,
        items: found.into_iter().collect(),
        excluded: excluded.into(),
        next: result.string("nextCursor").ok().flatten().map(Cow::into_owned),
        cache: CacheHints::read(result, rules),
    })
}

/// Reads a page of a directory's direct children: resources, without cache hints (SEP-2640, reading directories).
pub(super) fn read_directory(result: Object<'_>, rules: &Rules) -> Result<Page, String> {
    Ok(Page { cache: CacheHints::NONE, ..read_page(ListKind::Resources, result, rules)? })
}

/// Reads one skill (SEP-2640, getting a skill).
pub(super) fn read_skill(result: Object<'_>, rules: &Rules) -> Result<Payload, String> {
    let skill = result
        .get("skill")
        .and_then(|skill| Definition::from_upstream(ListKind::Skills, skill, None));
    let skill = skill.ok_or("the server's response has no `skill` with a `uri`")?;
    Ok(Payload::Skill(Arc::new(skill), CacheHints::read(result, rules)))
}
