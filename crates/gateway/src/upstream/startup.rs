//! The startup of an upstream: how long callers wait for it, and which clients fetched lists before it was ready.

use std::sync::atomic::Ordering;

use creole::Context;
use creole::proto::fault::{Fault, FaultKind};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Affinity, Upstream};
use crate::upstream::lists::list_sync::StartupStatus;

impl Upstream {
    /// Whether the upstream is ready.
    pub fn is_ready(&self) -> bool {
        *self.status.borrow() == StartupStatus::Ready
    }

    /// Whether the upstream is neither ready nor failed.
    pub(crate) fn is_starting(&self) -> bool {
        *self.status.borrow() == StartupStatus::Starting
    }

    /// Whether the upstream has not started although it waits for no caller.
    pub(crate) fn is_queued(&self) -> bool {
        self.settings.affinity != Affinity::Single && self.starting_since().is_none()
    }

    /// Starts the upstream.
    pub(crate) fn start_now(&self) {
        self.start_time.send_if_modified(|since| {
            let is_first = since.is_none();
            since.get_or_insert_with(Instant::now);
            is_first
        });
    }

    /// When the start of the upstream began.
    pub(crate) fn starting_since(&self) -> Option<Instant> {
        *self.start_time.borrow()
    }

    /// Whether no other server provides items.
    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    /// Waits until the upstream is ready or has failed, at most for its startup timeout.
    pub async fn wait_until_ready(&self, context: &Context) -> Result<(), Fault> {
        if self.is_ready() {
            return Ok(());
        }
        self.start_for_caller(context);
        let until =
            self.starting_since().unwrap_or_else(Instant::now) + self.settings.startup_timeout;
        let mut status = self.status.subscribe();
        let reached = status.wait_for(|status| *status != StartupStatus::Starting);
        match timeout_at(until, reached).await {
            Ok(Ok(status)) => match &*status {
                StartupStatus::Failed(fault) => Err(fault.clone()),
                _ => Ok(()),
            },
            _ => {
                let (name, seconds) = (self.name(), self.settings.startup_timeout.as_secs());
                let detail = format!("`{name}` did not respond within {seconds} s");
                Err(Fault::new(FaultKind::BackendUnavailable, detail).with_subject(name))
            }
        }
    }

    /// Waits until the upstream is ready or has failed, unless it waits for its only caller.
    pub(crate) async fn wait_until_tried(&self) {
        if self.settings.affinity != Affinity::Single {
            let mut status = self.status.subscribe();
            let reached = status.wait_for(|status| *status != StartupStatus::Starting);
            // The swap happens in either case.
            _ = timeout(self.settings.startup_timeout, reached).await;
        }
    }

    /// Waits until the upstream is ready or has failed, at most for its startup timeout.
    pub(crate) async fn wait_until_settled(&self) {
        let mut status = self.status.subscribe();
        let settled = status.wait_for(|status| *status != StartupStatus::Starting);
        // Its status records the result.
        _ = timeout(self.settings.startup_timeout, settled).await;
    }

    /// Starts an upstream that waits for its only caller.
    pub(crate) fn start_for_caller(&self, context: &Context) {
        if self.settings.affinity == Affinity::Single && self.starting_since().is_none() {
            self.sessions.set_only_caller(context);
            self.start_now();
        }
    }

    pub(super) async fn wait_for_start(&self) {
        // The sender lives as long as `self`.
        _ = self.start_time.subscribe().wait_for(Option::is_some).await;
    }

    /// Records that a client fetched lists without those of this upstream. It is notified when they arrive.
    pub(crate) fn mark_missed(&self) {
        // An exchange, as in `take_missed`: the second of the two sees everything that happened before the first.
        self.lists_missed.swap(true, Ordering::AcqRel);
    }

    /// Whether a client fetched lists without those of this upstream.
    pub(super) fn take_missed(&self) -> bool {
        self.lists_missed.swap(false, Ordering::AcqRel)
    }

    /// Offers lists of each kind before the upstream declares which it has: a client that opens a session receives the
    /// capabilities only once.
    pub(crate) fn offer_lists(&self) {
        self.source().offer_lists();
    }
}
