//! The readers of call records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::revision::Rules;

use super::CallRecord;
use super::reader_events::{PayloadView, RefusedClientRequest};
use crate::principal::Principal;
use crate::sync::RwLock;
use crate::telemetry::facts::{Transport, Via};
use crate::telemetry::outcome::CallEnd;
use crate::telemetry::trace::CallTrace;

/// Reads finished calls.
///
/// It runs on the thread of the call, and may run while the connection of the call is locked. So it must neither block
/// nor do I/O nor call into the server.
pub trait RecordReader: Send + Sync {
    /// What the reader wants to know about a call.
    fn wants(&self, start: &CallStart<'_>) -> Detail;

    /// A call that the reader wants has started.
    fn call_started(&self, _record: &Arc<CallRecord>) {}

    /// A call that the reader wants has ended.
    fn call_ended(&self, record: &Arc<CallRecord>);

    /// Whether the reader wants a call that it did not want at its start, now that it has ended. The record then has no
    /// steps.
    fn wants_late(&self, _end: &CallEnd) -> bool {
        false
    }

    /// The duration from which on the reader may [want a call at its end](Self::wants_late) that did not fail. `None`: it
    /// never wants a call at its end, not even one that failed. Asked once, when it subscribes.
    fn late_after(&self) -> Option<Duration> {
        None
    }

    /// Whether the reader may ever [want](Self::wants) a call that is not sampled. Asked once, when it subscribes.
    /// Without such a reader, a call that is not sampled costs less.
    fn reads_unsampled(&self) -> bool {
        true
    }

    /// Whether the reader is also asked about notifications of clients. They end when they arrive.
    fn reads_notifications(&self) -> bool {
        false
    }

    /// Whether the reader may ever want [`Detail::Frames`]. Asked once, when it subscribes. Without such a reader, the
    /// messages of clients are not kept until it is known what they are.
    fn reads_frames(&self) -> bool {
        false
    }

    /// A client was refused before it could call something.
    fn request_refused(&self, _request: &RefusedClientRequest<'_>) {}

    /// A person looked at the messages of a call.
    fn payloads_viewed(&self, _view: &PayloadView<'_>) {}
}

/// How much a reader wants to know about a call. Each detail includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing: the reader does not hear of the call.
    None,
    /// The call and its end.
    Summary,
    /// Also its steps.
    Steps,
    /// Also its messages.
    Frames,
}

/// What is known of a call when it starts.
#[derive(Clone, Copy, Debug)]
pub struct CallStart<'a> {
    /// The name of the server. Empty for work of the gateway itself.
    pub server: &'a str,
    /// The method.
    pub method: &'static str,
    /// The tool, prompt or URI. It is the client's text. Empty if the method has none.
    pub target: &'a str,
    /// The rules of the client's revision.
    pub rules: &'static Rules,
    /// The client's transport.
    pub transport: Transport,
    /// Who calls.
    pub principal: &'a Principal,
    /// Where the call comes from.
    pub via: Via,
    /// The place in a trace, if calls are traced.
    pub trace: Option<&'a CallTrace>,
}

/// Keeps a reader subscribed. A call that started before it was dropped is still reported to the reader.
pub struct ReaderGuard {
    unsubscribe: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl ReaderGuard {
    pub(in crate::telemetry) fn new(unsubscribe: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { unsubscribe: Some(Box::new(unsubscribe)) }
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        if let Some(unsubscribe) = self.unsubscribe.take() {
            unsubscribe();
        }
    }
}

impl fmt::Debug for ReaderGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReaderGuard").finish_non_exhaustive()
    }
}

/// The readers of a process.
#[derive(Default)]
pub(in crate::telemetry) struct Readers {
    list: RwLock<ReaderList>,
}

#[derive(Default)]
struct ReaderList {
    next_number: u64,
    readers: Vec<(u64, Arc<dyn RecordReader>)>,
}

impl Readers {
    /// Adds a reader and returns its number.
    pub(in crate::telemetry) fn add(&self, reader: Arc<dyn RecordReader>) -> u64 {
        let mut list = self.list.write();
        let number = list.next_number;
        list.next_number += 1;
        list.readers.push((number, reader));
        number
    }

    pub(in crate::telemetry) fn remove(&self, number: u64) {
        self.list.write().readers.retain(|(each, _)| *each != number);
    }

    /// Shows all readers, while none is added or removed.
    pub(in crate::telemetry) fn inspect(&self, look: impl FnOnce(&[&dyn RecordReader])) {
        let list = self.list.write();
        let readers: Vec<_> = list.readers.iter().map(|(_, reader)| &**reader).collect();
        look(&readers);
    }

    /// All readers.
    pub(in crate::telemetry) fn all(&self) -> Vec<Arc<dyn RecordReader>> {
        self.list.read().readers.iter().map(|(_, reader)| Arc::clone(reader)).collect()
    }

    /// The readers that want a call, and the most that one of them wants.
    pub(in crate::telemetry) fn interested(
        &self,
        start: &CallStart<'_>,
    ) -> (Vec<Arc<dyn RecordReader>>, Detail) {
        interested(self.list.read().readers.iter().map(|(_, reader)| reader), start)
    }
}

impl Readers {
    /// The same for a notification.
    pub(in crate::telemetry) fn interested_in_notification(
        &self,
        start: &CallStart<'_>,
    ) -> (Vec<Arc<dyn RecordReader>>, Detail) {
        let list = self.list.read();
        let readers = list.readers.iter().map(|(_, reader)| reader);
        interested(readers.filter(|reader| reader.reads_notifications()), start)
    }

    /// The readers that want a call at its end.
    pub(in crate::telemetry) fn interested_late(
        &self,
        end: &CallEnd,
    ) -> Vec<Arc<dyn RecordReader>> {
        let list = self.list.read();
        let readers = list.readers.iter().map(|(_, reader)| reader);
        readers.filter(|reader| reader.wants_late(end)).cloned().collect()
    }
}

/// Those of the readers that want a call, and the most that one of them wants.
pub(super) fn interested<'a>(
    readers: impl Iterator<Item = &'a Arc<dyn RecordReader>>,
    start: &CallStart<'_>,
) -> (Vec<Arc<dyn RecordReader>>, Detail) {
    let mut most = Detail::None;
    let mut interested = Vec::new();
    for reader in readers {
        let detail = reader.wants(start);
        if detail > Detail::None {
            most = most.max(detail);
            interested.push(Arc::clone(reader));
        }
    }
    (interested, most)
}
