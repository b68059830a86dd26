//! The state of an upstream, for operators.

use creole::internal::sync::Mutex;
use std::time::Duration;

use creole::client::Address;
use creole::proto::fault::Fault;
use creole::proto::model::{ExcludedItem, ListKind};

use super::Upstream;
use crate::upstream::lists::list_fetch::LISTS;
use crate::upstream::lists::list_sync::StartupStatus;

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
struct StatusData {
    revision: Option<String>,
    declared: Vec<ListKind>,
    latency: Option<Duration>,
    last_error: Option<UpstreamError>,
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

    /// Records the server information of the upstream.
    pub(super) fn set_greeting(&self, greeting: &creole::proto::client::NegotiationResult) {
        let has = greeting.server_info.capabilities;
        let declared = LISTS.iter().filter(|(_, is_declared)| is_declared(&has));
        self.update(|known| {
            known.revision = Some(greeting.version.clone());
            known.declared = declared.map(|(kind, _)| *kind).collect();
        });
    }

    /// Whether the upstream declares this list.
    pub(super) fn declares(&self, kind: ListKind) -> bool {
        self.0.lock().declared.contains(&kind)
    }

    fn update(&self, change: impl FnOnce(&mut StatusData)) {
        change(&mut self.0.lock());
    }

    fn snapshot(&self) -> StatusData {
        self.0.lock().clone()
    }
}

/// One excluded item as a line of text.
fn excluded_line((kind, item): &(ListKind, ExcludedItem)) -> String {
    format!("{} {item}", kind.member())
}

impl Upstream {
    /// The state of this upstream now.
    pub fn status(&self) -> UpstreamStatus {
        let StatusData { revision, declared, latency, last_error } = self.status_record.snapshot();
        let list = |kind: &ListKind| ListStatus {
            kind: *kind,
            items: self.lists.count(*kind),
            failure: self.list_failures.fault(*kind).as_ref().map(fault_message),
        };
        UpstreamStatus {
            name: self.name().to_owned(),
            state: match &*self.status.borrow() {
                StartupStatus::Starting if self.starting_since().is_none() => {
                    UpstreamState::Waiting
                }
                StartupStatus::Starting => UpstreamState::Starting,
                StartupStatus::Ready => UpstreamState::Ready,
                StartupStatus::Failed(fault) => {
                    UpstreamState::Failed(self.settings.with_address(&fault_message(fault)))
                }
            },
            transport: match self.settings.address {
                Address::Child(_) => "stdio",
                Address::Http(_) => "http",
            },
            revision,
            lists: declared.iter().map(list).collect(),
            excluded: self.excluded_items.all().iter().map(excluded_line).collect(),
            latency,
            last_error: last_error.map(|error| UpstreamError {
                message: self.settings.with_address(&error.message),
                stderr: error.stderr,
            }),
        }
    }
}

/// The text of a fault. Some upstreams send errors without a message.
fn fault_message(fault: &Fault) -> String {
    match (fault.detail.is_empty(), fault.subject.is_empty()) {
        (false, _) => fault.detail.clone(),
        (true, false) => format!("{:?}: {}", fault.kind, fault.subject),
        (true, true) => format!("{:?}", fault.kind),
    }
}
