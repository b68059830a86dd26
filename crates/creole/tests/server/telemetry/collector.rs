//! A reader that collects the records of calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use creole::internal::telemetry::{CallRecord, CallStart, Detail, RecordReader};
use tokio::sync::Notify;

/// Collects the records of ended calls.
pub(super) struct EndedRecords {
    detail: Detail,
    pub(super) started: AtomicUsize,
    ended: Mutex<Vec<Arc<CallRecord>>>,
    is_ended: Notify,
}

impl EndedRecords {
    pub(super) fn new(detail: Detail) -> Arc<Self> {
        Arc::new(Self {
            detail,
            started: AtomicUsize::new(0),
            ended: Mutex::default(),
            is_ended: Notify::new(),
        })
    }

    pub(super) fn records(&self) -> Vec<Arc<CallRecord>> {
        self.ended.lock().unwrap().clone()
    }

    /// The next record of this method that ended, which is removed.
    pub(super) async fn next(&self, method: &str) -> Arc<CallRecord> {
        loop {
            let ended = self.is_ended.notified();
            let found = {
                let mut records = self.ended.lock().unwrap();
                let position = records.iter().position(|record| record.method == method);
                position.map(|index| records.remove(index))
            };
            match found {
                Some(record) => return record,
                None => ended.await,
            }
        }
    }
}

impl RecordReader for EndedRecords {
    fn wants(&self, _: &CallStart<'_>) -> Detail {
        self.detail
    }

    fn call_started(&self, record: &Arc<CallRecord>) {
        assert!(record.end().is_none());
        self.started.fetch_add(1, Ordering::SeqCst);
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        assert!(record.end().is_some());
        self.ended.lock().unwrap().push(Arc::clone(record));
        self.is_ended.notify_waiters();
    }

    fn reads_frames(&self) -> bool {
        self.detail == Detail::Frames
    }
}
