//! Fetches the lists of an upstream and converts their items to registry items with local names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use creole::Context;
use creole::internal::chain::Endpoint;
use creole::internal::client::Connection;
use creole::internal::registry::RemoteItem;
use creole::internal::telemetry::{CallOutcome, RecordGuard};
use creole::proto::client::CallRequest;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::http::MirroredHeader;
use creole::proto::model::{
    CacheHints, ClientCapabilities, Definition, ExcludedItem, ListKind, ServerCapabilities,
    TaskSupport,
};
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::Rules;

use crate::layers::Hints;
use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::observed_request::ObservedRequest;
use crate::upstream::relay;
use crate::upstream::settings::{Naming, UpstreamSettings};
use crate::upstream::upstream_metrics::{RequestMeter, UpstreamMetrics};

/// The maximum number of pages and items of one list.
const MAX_PAGES: usize = 1000;
const MAX_ITEMS: usize = 100_000;

/// Whether an upstream declares a capability.
type CapabilityCheck = fn(&ServerCapabilities) -> bool;

/// The kinds of lists, and the capability that each requires.
pub(crate) const LISTS: [(ListKind, CapabilityCheck); 4] = [
    (ListKind::Tools, |has| has.tools),
    (ListKind::Resources, |has| has.resources),
    (ListKind::Templates, |has| has.resources),
    (ListKind::Prompts, |has| has.prompts),
];

/// One complete list of an upstream.
pub(crate) struct FetchedList {
    pub(crate) items: Vec<Arc<Definition>>,
    /// Items whose definitions break the rules of their kind.
    pub(crate) excluded: Vec<ExcludedItem>,
    /// The cache hints of the list.
    pub(crate) cache: CacheHints,
}

/// Fetches lists in one session.
pub(crate) struct ListFetcher<'a> {
    pub(super) connection: &'a Connection,
    /// The capabilities that each request declares, if the upstream keeps no session.
    pub(super) capabilities: Option<Arc<ClientCapabilities>>,
    /// The caller, if it responds to the upstream's input requests meanwhile.
    pub(super) caller: Option<(&'a mut UpstreamLease, &'a Context)>,
    pub(super) settings: &'a UpstreamSettings,
    /// Measures the requests, if metrics are counted.
    pub(super) metrics: Option<&'a UpstreamMetrics>,
    /// What the requests are recorded for.
    pub(super) purpose: FetchPurpose<'a>,
}

/// What a list is fetched for.
pub(super) enum FetchPurpose<'a> {
    /// The request of a caller.
    Caller(&'a Context),
    /// The gateway itself.
    Gateway(Option<RecordGuard>),
}

impl<'a> ListFetcher<'a> {
    /// Fetches lists for the gateway itself.
    pub(crate) fn for_gateway(
        connection: &'a Connection,
        settings: &'a UpstreamSettings,
        metrics: Option<&'a UpstreamMetrics>,
        kind: ListKind,
    ) -> Self {
        let (method, rules) = (Operation::List(kind, None).method(), connection.greeting().rules);
        let work = settings.telemetry.start_work(method, settings.name(), rules, None);
        let purpose = FetchPurpose::Gateway(work);
        Self { connection, capabilities: None, caller: None, settings, metrics, purpose }
    }

    fn observe(&self, operation: &Operation) -> ObservedRequest {
        let rules = self.connection.greeting().rules;
        match &self.purpose {
            FetchPurpose::Caller(context) => {
                ObservedRequest::for_call(self.settings, context, operation, rules)
            }
            FetchPurpose::Gateway(work) => {
                ObservedRequest::for_gateway(self.settings, work.as_ref(), operation, rules)
            }
        }
    }

    /// The list is fetched, or not.
    fn end(&mut self, fetched: &Result<FetchedList, Fault>) {
        if let FetchPurpose::Gateway(work) = &mut self.purpose
            && let Some(work) = work.take()
        {
            work.finish(match fetched {
                Ok(_) => CallOutcome::Success,
                Err(fault) => CallOutcome::Fault(fault.kind, fault.foreign_code),
            });
        }
    }

    async fn send(&mut self, mut request: CallRequest) -> Outcome {
        if let Some(capabilities) = &self.capabilities {
            request.options.capabilities = Arc::clone(capabilities);
        }
        let observed = self.observe(&request.operation);
        let trace = observed.own_trace(self.settings);
        (request.options.meta, request.options.trace_headers) = (trace.meta, trace.headers);
        let (rules, operation) = (self.connection.greeting().rules, request.operation.clone());
        let meter = self.metrics.map(|metrics| RequestMeter::start(metrics, rules, &operation));
        let mut call =
            self.connection.start_recorded_call(request, [].into(), observed.frame_tap());
        let outcome = match &mut self.caller {
            None => call.outcome(drop).await,
            Some((lease, context)) => relay::relay_call(&mut call, lease, context).await,
        };
        if let Some(meter) = meter {
            meter.end_own(&outcome);
        }
        observed.end(&outcome);
        outcome
    }
}

/// Fetches a whole list.
pub(crate) async fn fetch(
    fetcher: &mut ListFetcher<'_>,
    kind: ListKind,
) -> Result<FetchedList, Fault> {
    let fetched = fetch_pages(fetcher, kind).await;
    fetcher.end(&fetched);
    fetched
}

async fn fetch_pages(fetcher: &mut ListFetcher<'_>, kind: ListKind) -> Result<FetchedList, Fault> {
    let cache = CacheHints { ttl_ms: u64::MAX, public: true };
    let mut listed = FetchedList { items: Vec::new(), excluded: Vec::new(), cache };
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let request = CallRequest::new(Operation::List(kind, cursor.clone()));
        let page = match fetcher.send(request).await {
            Outcome::Complete(Payload::Page(page)) => page,
            Outcome::Fail(fault) => return Err(fault),
            _ => {
                return Err(Fault::new(
                    FaultKind::Internal,
                    "the upstream's response is not a list",
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

/// Names the items of an upstream and attaches its endpoint. An item that cannot be named is excluded with the reason.
/// An upstream that decides which calls become tasks states nothing about tasks in its lists.
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
            // A URI is an address and stays as it is. Of a template only the name is a name.
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
            Err(error) => {
                let (name, reason) = (item.name().to_owned(), error.to_string());
                left_out.push(ExcludedItem { name, reason });
            }
        }
    }
    (remotes, left_out)
}

/// The definition under its local name. `None` if it cannot be named.
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

/// A definition as JSON in the newest revision's shape.
pub(crate) fn newest_json(item: &Definition) -> &str {
    item.text(Rules::CANONICAL)
}

/// The key of an item in requests: its name, its URI, or its URI template.
pub(crate) fn item_key(kind: ListKind, item: &Definition) -> String {
    let template = item.text_member("uriTemplate").filter(|_| kind == ListKind::Templates);
    template.map_or_else(|| item.name().to_owned(), std::borrow::Cow::into_owned)
}

/// The task support of a tool here. A tool that requires a task is followed to its end for callers without task
/// support.
fn task_support(item: &Definition, decides: bool) -> TaskSupport {
    match item.task_support() {
        TaskSupport::Forbidden if !decides => TaskSupport::Forbidden,
        _ => TaskSupport::Optional,
    }
}

/// The properties of tools that calls need: which arguments have mirrored headers, which tools run only as tasks, and
/// which declare that they are idempotent.
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

    /// Whether the tool declares that it is idempotent.
    pub(crate) fn is_idempotent(&self, tool: &str) -> bool {
        self.idempotent.contains(tool)
    }

    pub(crate) fn task_support(&self, tool: &str) -> TaskSupport {
        self.task_support.get(tool).copied().unwrap_or_default()
    }
}
