//! Lists and items of upstreams that only one caller sees: those of its own sessions with them.

use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, Items, ListKind};
use creole_proto::operation::{Operation, Outcome};

use super::catalogue::Catalogue;
use super::viewer::Viewer;
use super::{Registry, RegistryState};
use crate::call::{Call, Context};
use crate::chain;
use crate::chain::Endpoint;
use crate::seal::cursor::Position;

/// The lists of an upstream for a caller that has its own session there.
pub trait SessionLists: Send + Sync {
    /// The list of the caller's session, under the names that items have here; `None` if it is the shared one.
    fn list(&self, kind: ListKind, context: &Context) -> Option<SessionList>;

    /// The item that is called `name` here and is not in the shared list, if the upstream may have it.
    fn find(&self, kind: ListKind, name: &str, context: &Context) -> Option<UnlistedItem>;
}

/// The list of one session.
pub type SessionList = Arc<[Arc<Definition>]>;

/// An item that is not in the shared list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedItem {
    /// Its name at the upstream.
    pub name: String,
    /// Whether the caller's session lists it. Otherwise the upstream may still have it.
    pub is_listed: bool,
    /// Whether the upstream may have it and it is withheld from callers: then no other upstream is tried either.
    pub is_refused: bool,
}

/// Session lists by the ranks of their sources.
pub(super) type RankedLists = Vec<(u32, SessionList)>;

impl RegistryState {
    /// The lists of the caller's own sessions.
    pub(super) fn session_lists(&self, kind: ListKind, context: &Context) -> RankedLists {
        let lists = self.remote_servers.iter().filter_map(|(rank, offer)| {
            let list = offer.sessions.as_ref()?.list(kind, context)?;
            Some((*rank, list))
        });
        lists.collect()
    }
}

impl Registry {
    /// Forwards a call of an item that is in no shared list: to the upstream whose session with the caller lists it, or
    /// else to the only upstream that may have it. `None` if there is no such upstream.
    pub(super) async fn call_unlisted(
        &self,
        kind: ListKind,
        operation: impl FnOnce(String) -> Operation,
        name: &str,
        context: Context,
    ) -> Option<Outcome> {
        let (endpoint, there) = self.find_unlisted(kind, name, &context)?;
        let outcome = endpoint.call_owned(Call { operation: operation(there), context }).await;
        Some(match outcome {
            Outcome::Fail(fault) if is_unknown_item(&fault) && fault.foreign_code.is_none() => {
                fault.with_subject(name).into()
            }
            outcome => outcome,
        })
    }

    fn find_unlisted(
        &self,
        kind: ListKind,
        name: &str,
        context: &Context,
    ) -> Option<(Arc<dyn Endpoint>, String)> {
        let offers: Vec<_> = {
            let state = self.read();
            if !chain::admits_unlisted(state.tools.layers(), kind, name) {
                return None;
            }
            let offers = state.remote_servers.values();
            offers
                .map(|remote_server| {
                    (remote_server.sessions.clone(), Arc::clone(&remote_server.endpoint))
                })
                .collect()
        };
        let mut candidates = Vec::new();
        for (sessions, endpoint) in offers {
            let Some(found) = sessions.and_then(|it| it.find(kind, name, context)) else {
                continue;
            };
            if found.is_refused {
                return None;
            }
            if found.is_listed {
                return Some((endpoint, found.name));
            }
            candidates.push((endpoint, found.name));
        }
        // Several may have it, and a guess could call the wrong one.
        (candidates.len() == 1).then(|| candidates.remove(0))
    }
}

fn is_unknown_item(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::UnknownTool | FaultKind::UnknownPrompt)
}

impl<T> Catalogue<T> {
    /// The same as [`page`](Self::page) for a caller with session lists: each replaces its upstream's shared list. An
    /// item whose name another source has is excluded.
    pub(super) fn session_page(
        &self,
        after: Option<&Position>,
        size: usize,
        viewer: &Viewer,
        lists: &RankedLists,
    ) -> (Items, Option<Position>) {
        let all = self.merge_lists(viewer, lists);
        let start = after.map_or(0, |position| {
            let index = all.iter().position(|item| item.name() == position.after);
            index.map_or(position.index.saturating_sub(1), |index| index + 1).min(all.len())
        });
        let rest = &all[start..];
        let page = &rest[..rest.len().min(size)];
        let last = page.last().filter(|_| rest.len() > size);
        let next =
            last.map(|last| Position { index: start + page.len(), after: last.name().to_owned() });
        (page.iter().cloned().collect(), next)
    }

    /// All items that the caller sees, in the order of the sources.
    fn merge_lists(&self, viewer: &Viewer, lists: &RankedLists) -> Vec<Arc<Definition>> {
        let is_own = |rank: u32| lists.iter().any(|(own, _)| *own == rank);
        let shared = self.visible_to(viewer).filter(|(rank, _)| !is_own(*rank));
        let mut all: Vec<_> = shared.map(|(rank, item)| (rank, Arc::clone(item))).collect();
        for (rank, list) in lists {
            let free = list.iter().filter(|item| !self.is_name_taken(*rank, item.name()));
            let shown = free.filter_map(|item| {
                let shown =
                    chain::rewrite_definition(self.layers(), self.kind(), Arc::clone(item))?;
                let is_free = !self.is_visible_in_other(*rank, shown.name());
                let is_usable = (!viewer.mirrors_headers || shown.mirrored_headers().is_ok())
                    && viewer.sees(self.kind(), &shown);
                (is_free && is_usable).then_some((*rank, shown))
            });
            all.extend(shown);
        }
        // Stable, so that items of one source stay in their order.
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, item)| item).collect()
    }
}
