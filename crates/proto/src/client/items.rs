//! Pages of lists, made of the items as the server wrote them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use crate::model::{CacheHints, Definition, ListKind};
use crate::op::{Page, Payload};
use crate::revision::Rules;
use crate::wire::Object;

/// Reads a page of a list. An item without what it is found by is left out: nobody could ask for it.
pub(super) fn read_page(kind: ListKind, result: Object<'_>, rules: &Rules) -> Result<Page, String> {
    let member = kind.member();
    let items = result.array(member).map_err(|error| format!("{error}"))?;
    let items = items.ok_or_else(|| format!("the server's list has no `{member}`"))?;
    let items = items.into_iter().filter_map(|item| Definition::relayed(kind, item, None));
    Ok(Page {
        kind,
        items: items.map(Arc::new).collect(),
        next: result.string("nextCursor").ok().flatten().map(Cow::into_owned),
        cache: CacheHints::read(result, rules),
    })
}

/// Reads a page of what is directly in a directory: resources, without a word on freshness.
pub(super) fn read_directory(result: Object<'_>, rules: &Rules) -> Result<Page, String> {
    Ok(Page { cache: CacheHints::NONE, ..read_page(ListKind::Resources, result, rules)? })
}

/// Reads one skill.
pub(super) fn read_skill(result: Object<'_>, rules: &Rules) -> Result<Payload, String> {
    let skill =
        result.get("skill").and_then(|skill| Definition::relayed(ListKind::Skills, skill, None));
    let skill = skill.ok_or("the server's answer has no `skill` with a uri")?;
    Ok(Payload::Skill(Arc::new(skill), CacheHints::read(result, rules)))
}
