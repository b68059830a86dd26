//! The state of an upstream, for operators.

use creole::internal::sync::Mutex;
use std::time::Duration;

use creole::proto::client::NegotiationResult;
use creole::proto::fault::Fault;
use creole::proto::model::{ExcludedItem, ListKind, ServerCapabilities};
use creole::proto::operation::ServerInfo;
use creole::proto::revision::Rules;

/// The state of one upstream at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// The name of the upstream in the configuration.
    pub name: String,
    /// Whether it is usable.
    pub state: UpstreamState,
    /// Its transport: `stdio` or `http`.
    pub transport: &'static str,
    /// The negotiated protocol version, once the upstream has responded.
    pub revision: Option<String>,
    /// The lists that it declares, in the order of tools, resources, resource templates, prompts.
    pub lists: Vec<ListStatus>,
    /// Items that are excluded from its lists, each with the reason.
    pub excluded: Vec<String>,
    /// The same items with their lists.
    pub excluded_items: Vec<(ListKind, ExcludedItem)>,
    /// How long its last response to a list request took.
    pub latency: Option<Duration>,
    /// The last error of any kind. It may be resolved already.
    pub last_error: Option<UpstreamError>,
}

impl UpstreamStatus {
    /// The number of items in a list; 0 for a list that the upstream does not have.
    pub fn items(&self, kind: ListKind) -> usize {
        self.lists.iter().find(|list| list.kind == kind).map_or(0, |list| list.items)
    }

    /// The lists whose last fetch failed.
    pub fn failed_lists(&self) -> impl Iterator<Item = (ListKind, &str)> {
        self.lists.iter().filter_map(|list| Some((list.kind, list.failure.as_deref()?)))
    }
}

/// Whether an upstream is usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamState {
    /// It has not started: it waits for other upstreams or for its only caller.
    Waiting,
    /// It starts for the first time.
    Starting,
    /// It is ready. Single lists may have failed.
    Ready,
    /// It is unreachable for this reason.
    Failed(String),
}

/// One list of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListStatus {
    /// Which list.
    pub kind: ListKind,
    /// The number of its items without excluded ones.
    pub items: usize,
    /// Why the last fetch failed, if it did. The items are those of an earlier fetch then.
    pub failure: Option<String>,
}

/// An error of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamError {
    /// The message.
    pub message: String,
    /// The last lines that its program wrote to standard error, if there are any.
    pub stderr: Option<String>,
}

impl From<&Fault> for UpstreamError {
    fn from(fault: &Fault) -> Self {
        Self { message: fault_message(fault), stderr: fault.trace.clone() }
    }
}

/// The status data of an upstream besides its lists.
#[derive(Default)]
pub(super) struct StatusRecord(Mutex<StatusData>);

#[derive(Clone, Default)]
pub(super) struct StatusData {
    pub(super) revision: Option<String>,
    pub(super) declared: Vec<ListKind>,
    pub(super) latency: Option<Duration>,
    pub(super) last_error: Option<UpstreamError>,
    pub(super) server: Option<UpstreamServer>,
}

/// What an upstream says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamServer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// The rules of its revision.
    pub rules: &'static Rules,
}

impl StatusRecord {
    pub(super) fn set_error(&self, fault: &Fault) {
        let error = UpstreamError::from(fault);
        self.update(|known| {
            // During the reconnect pause each attempt repeats the last failure without the standard error lines.
            let is_repeated = |last: &UpstreamError| error.message.contains(&last.message);
            if error.stderr.is_some() || !known.last_error.as_ref().is_some_and(is_repeated) {
                known.last_error = Some(error);
            }
        });
    }

    pub(super) fn set_latency(&self, latency: Duration) {
        self.update(|known| known.latency = Some(latency));
    }

    /// Records what the upstream says about itself, and the lists that it declares.
    pub(super) fn set_server(&self, greeting: &NegotiationResult, declared: Vec<ListKind>) {
        let ServerInfo { identity, capabilities, .. } = &greeting.server_info;
        let server = UpstreamServer {
            name: identity.name.to_string(),
            version: identity.version.to_string(),
            capabilities: *capabilities,
            rules: greeting.rules,
        };
        self.update(|known| {
            known.revision = Some(greeting.version.clone());
            known.declared = declared;
            known.server = Some(server);
        });
    }

    /// Whether the upstream declares this list.
    pub(super) fn declares(&self, kind: ListKind) -> bool {
        self.0.lock().declared.contains(&kind)
    }

    fn update(&self, change: impl FnOnce(&mut StatusData)) {
        change(&mut self.0.lock());
    }

    pub(super) fn snapshot(&self) -> StatusData {
        self.0.lock().clone()
    }
}

/// One excluded item as a line of text.
pub(super) fn excluded_line((kind, item): &(ListKind, ExcludedItem)) -> String {
    format!("{} {item}", kind.member())
}

/// The text of a fault. Some upstreams send errors without a message.
pub(super) fn fault_message(fault: &Fault) -> String {
    match (fault.detail.is_empty(), fault.subject.is_empty()) {
        (false, _) => fault.detail.clone(),
        (true, false) => format!("{:?}: {}", fault.kind, fault.subject),
        (true, true) => format!("{:?}", fault.kind),
    }
}
