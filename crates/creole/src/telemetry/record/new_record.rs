//! Makes the records of calls that start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use creole_proto::model::Implementation;
use creole_proto::revision::Rules;

use super::guards::RecordGuard;
use super::reader::{CallStart, Detail, RecordReader, interested};
use super::{CallProgress, CallRecord, EarlierCall};
use crate::principal::Principal;
use crate::random::random_bytes;
use crate::telemetry::facts::{RequestFacts, Via};
use crate::telemetry::frames::FrameRedactor;
use crate::telemetry::trace::CallTrace;

/// The maximum length of a target, in characters. It is the client's text.
const MAX_TARGET_CHARS: usize = 1024;

/// What a new record is made of.
pub(crate) struct NewRecord<'a, C> {
    pub(crate) server: &'a Arc<str>,
    pub(crate) method: &'static str,
    pub(crate) target: &'a str,
    pub(crate) rules: &'static Rules,
    pub(crate) principal: &'a Principal,
    pub(crate) facts: &'a RequestFacts,
    pub(crate) trace: Option<CallTrace>,
    pub(crate) client: C,
    pub(crate) earlier: Option<EarlierCall>,
    pub(crate) redactor: Option<&'a FrameRedactor>,
}

impl<C: FnOnce() -> Option<Implementation>> NewRecord<'_, C> {
    pub(in crate::telemetry) fn start(&self) -> CallStart<'_> {
        CallStart {
            server: self.server,
            method: self.method,
            target: self.target,
            rules: self.rules,
            transport: self.facts.transport,
            principal: self.principal,
            via: self.facts.via,
            trace: self.trace.as_ref(),
        }
    }

    pub(in crate::telemetry) fn into_record(
        self,
        readers: Vec<Arc<dyn RecordReader>>,
        detail: Detail,
    ) -> Arc<CallRecord> {
        Arc::new(CallRecord {
            id: new_id(),
            server: Arc::clone(self.server),
            method: self.method,
            target: self.target.chars().take(MAX_TARGET_CHARS).collect::<String>().into(),
            rules: self.rules,
            transport: self.facts.transport,
            request_id: self.facts.request_id.clone(),
            principal: self.principal.clone(),
            session: self.facts.session,
            remote: self.facts.remote,
            client: (self.client)(),
            via: self.facts.via,
            started_at: SystemTime::now(),
            trace: self.trace,
            started: Instant::now(),
            redactor: self.redactor.filter(|_| detail >= Detail::Frames).cloned(),
            detail,
            readers,
            progress: CallProgress {
                earlier: self.earlier.map(OnceLock::from).unwrap_or_default(),
                ..CallProgress::default()
            },
        })
    }
}

impl<C: FnOnce() -> Option<Implementation>> NewRecord<'_, C> {
    /// The record of a call that has ended now.
    pub(in crate::telemetry) fn into_late_record(
        self,
        readers: Vec<Arc<dyn RecordReader>>,
        duration: Duration,
    ) -> Arc<CallRecord> {
        let mut record = self.into_record(readers, Detail::Summary);
        if let Some(record) = Arc::get_mut(&mut record) {
            let earlier = record.started_at.checked_sub(duration);
            record.started_at = earlier.unwrap_or(record.started_at);
        }
        record
    }
}

impl CallRecord {
    /// The record of the work on a task that this call created, if a reader wants it.
    pub(crate) fn start_task(&self) -> Option<RecordGuard> {
        self.start_follow_up(self.via)
    }

    /// The record of work that the gateway does for itself because of this call, if a reader wants it.
    pub fn start_work(&self) -> Option<RecordGuard> {
        self.start_follow_up(Via::Gateway)
    }

    fn start_follow_up(&self, via: Via) -> Option<RecordGuard> {
        let facts = RequestFacts {
            transport: self.transport,
            remote: self.remote,
            session: self.session,
            via,
            ..RequestFacts::default()
        };
        let new = NewRecord {
            server: &self.server,
            method: self.method,
            target: &self.target,
            rules: self.rules,
            principal: &self.principal,
            facts: &facts,
            trace: self.trace.as_ref().and_then(CallTrace::follow_up),
            client: || self.client.clone(),
            earlier: Some(self.as_earlier()),
            redactor: self.redactor.as_ref(),
        };
        let (readers, detail) = interested(self.readers.iter(), &new.start());
        (!readers.is_empty()).then(|| RecordGuard::start(new.into_record(readers, detail)))
    }
}

/// A new record id.
fn new_id() -> u128 {
    /// The random part of the ids of this process.
    static PROCESS: LazyLock<u128> = LazyLock::new(|| {
        random_bytes::<16>().map_or_else(|_| u128::from(process_number()), u128::from_ne_bytes)
    });
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    // An odd factor: no two numbers give the same product.
    let spread = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    PROCESS.wrapping_add(spread)
}

/// A number that two processes hardly share, for a system without random bytes.
fn process_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(SystemTime::now())
}
