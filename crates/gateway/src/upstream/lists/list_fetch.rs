//! What a server has, listed here under the names that it has here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use creole::RemoteItem;
use creole::chain::Endpoint;
use creole::proto::client::CallRequest;
use creole::proto::fault::Fault;
use creole::proto::http::MirroredHeader;
use creole::proto::model::{
    CacheHints, Definition, ExcludedItem, ListKind, ServerCapabilities, TaskSupport,
};
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::{Era, Revision};

use crate::layers::Hints;
use crate::upstream::lists::caller_session::ListFetcher;
use crate::upstream::lists::naming::Naming;

/// The most pages and items of one list.
const MAX_PAGES: usize = 1000;
const MAX_ITEMS: usize = 100_000;

/// Whether a server has something.
type CapabilityCheck = fn(&ServerCapabilities) -> bool;

/// The lists that servers have, and the capability that each belongs to.
pub(crate) const LISTS: [(ListKind, CapabilityCheck); 4] = [
    (ListKind::Tools, |has| has.tools),
    (ListKind::Resources, |has| has.resources),
    (ListKind::Templates, |has| has.resources),
    (ListKind::Prompts, |has| has.prompts),
];

/// All of one list, as a server has it.
pub(crate) struct FetchedList {
    pub(crate) items: Vec<Arc<Definition>>,
    /// Items that break the rules of their kind.
    pub(crate) excluded: Vec<ExcludedItem>,
    /// How long it may be kept.
    pub(crate) cache: CacheHints,
}

/// Fetches a whole list.
pub(crate) async fn fetch(
    asker: &mut ListFetcher<'_>,
    kind: ListKind,
) -> Result<FetchedList, Fault> {
    let cache = CacheHints { ttl_ms: u64::MAX, public: true };
    let mut listed = FetchedList { items: Vec::new(), excluded: Vec::new(), cache };
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let request = CallRequest::new(Operation::List(kind, cursor.clone()));
        let page = match asker.send(request).await {
            Outcome::Complete(Payload::Page(page)) => page,
            Outcome::Fail(fault) => return Err(fault),
            _ => {
                return Err(crate::upstream::internal_fault(
                    "a list was answered with something else",
                ));
            }
        };
        listed.items.extend(page.items.iter().cloned());
        listed.excluded.extend(page.excluded.into_vec());
        listed.cache.ttl_ms = listed.cache.ttl_ms.min(page.cache.ttl_ms);
        listed.cache.public &= page.cache.public;
        let count = listed.items.len() + listed.excluded.len();
        let is_more = page.next.is_some() && page.next != cursor && count < MAX_ITEMS;
        if !is_more {
            listed.items.truncate(MAX_ITEMS);
            return Ok(listed);
        }
        cursor = page.next;
    }
    Ok(listed)
}

/// Names what a server lists, and says who answers for it; what cannot be named is left out, and it is told why. A
/// server that decides by itself which calls become tasks says nothing of that in its lists.
pub(crate) fn remote_items(
    kind: ListKind,
    items: &[Arc<Definition>],
    naming: &Naming,
    endpoint: &Arc<dyn Endpoint>,
    decides: bool,
) -> (Vec<RemoteItem>, Vec<ExcludedItem>) {
    let (mut remotes, mut left_out) = (Vec::with_capacity(items.len()), Vec::new());
    for item in items {
        let here = match kind {
            ListKind::Tools | ListKind::Prompts => naming.local_name(item.name()),
            // A uri is an address and keeps its form; of templates only the name is a name.
            _ => Ok(item.name().to_owned()),
        };
        match here {
            Ok(here) => remotes.push(RemoteItem {
                definition: renamed_definition(kind, item, &here),
                name: item_key(kind, item),
                endpoint: Arc::clone(endpoint),
                task_support: task_support(item, decides),
                decides_task: decides,
            }),
            Err(why) => {
                let (name, reason) = (item.name().to_owned(), why.to_string());
                left_out.push(ExcludedItem { name, reason });
            }
        }
    }
    (remotes, left_out)
}

/// The definition under the name that it has here; nothing where it cannot be named.
pub(crate) fn named_definition(
    kind: ListKind,
    item: &Arc<Definition>,
    naming: &Naming,
) -> Option<Arc<Definition>> {
    let here = match kind {
        ListKind::Tools | ListKind::Prompts => naming.local_name(item.name()).ok()?,
        _ => return Some(Arc::clone(item)),
    };
    match here == item.name() {
        true => Some(Arc::clone(item)),
        false => Some(Arc::new(renamed_definition(kind, item, &here))),
    }
}

/// The definition under another name.
fn renamed_definition(kind: ListKind, item: &Definition, name: &str) -> Definition {
    let changed = (name != item.name()).then(|| item.with_name(kind, name));
    changed.flatten().unwrap_or_else(|| item.clone())
}

/// A definition as JSON, in the newest shape.
pub(crate) fn newest_json(item: &Definition) -> &str {
    item.text(Revision::newest(Era::Stateless).rules())
}

/// What an item is asked for by: its name, its uri, or its uri template.
pub(crate) fn item_key(kind: ListKind, item: &Definition) -> String {
    let template = item.text_member("uriTemplate").filter(|_| kind == ListKind::Templates);
    template.map_or_else(|| item.name().to_owned(), std::borrow::Cow::into_owned)
}

/// Whether a tool runs as a task here: one that must do so there is followed to its end for those who cannot.
fn task_support(item: &Definition, decides: bool) -> TaskSupport {
    match item.task_support() {
        TaskSupport::Forbidden if !decides => TaskSupport::Forbidden,
        _ => TaskSupport::Optional,
    }
}

/// What has to be known of tools to call them: which arguments are repeated in headers, which only run as tasks, and
/// which say that calling them twice is the same as once.
#[derive(Default)]
pub(crate) struct ToolIndex {
    mirrored_headers: HashMap<String, Arc<[MirroredHeader]>>,
    task_support: HashMap<String, TaskSupport>,
    idempotent: HashSet<String>,
}

impl ToolIndex {
    pub(crate) fn of<'a>(items: impl IntoIterator<Item = &'a Arc<Definition>>) -> Self {
        let mut callable = Self::default();
        for item in items {
            let mirrors = item.mirrored_headers().unwrap_or_default();
            if !mirrors.is_empty() {
                callable.mirrored_headers.insert(item.name().to_owned(), mirrors.into());
            }
            if item.task_support() != TaskSupport::Forbidden {
                callable.task_support.insert(item.name().to_owned(), item.task_support());
            }
            if Hints::of(item).idempotent {
                callable.idempotent.insert(item.name().to_owned());
            }
        }
        callable
    }

    pub(crate) fn mirrored_headers(&self, tool: &str) -> Option<&Arc<[MirroredHeader]>> {
        self.mirrored_headers.get(tool)
    }

    /// Whether the tool says that calling it twice is the same as once.
    pub(crate) fn is_idempotent(&self, tool: &str) -> bool {
        self.idempotent.contains(tool)
    }

    pub(crate) fn task_support(&self, tool: &str) -> TaskSupport {
        self.task_support.get(tool).copied().unwrap_or_default()
    }
}
