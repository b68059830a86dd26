//! The startup of an upstream: how long callers wait for it, and which clients fetched lists before it was ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole::proto::fault::{Fault, FaultKind};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::upstream::phase_history::{PhaseHistory, UpstreamPhase};
use crate::upstream::settings::{Affinity, UpstreamSettings};

/// The startup status of an upstream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum StartupStatus {
    /// It has not been reached yet.
    #[default]
    Starting,
    /// It was reached, and its lists were fetched.
    Ready,
    /// It is unreachable for this reason. Its lists are those of the last session.
    Failed(Fault),
}

/// Whether an upstream has started.
pub(crate) struct Startup {
    settings: Arc<UpstreamSettings>,
    status: watch::Sender<StartupStatus>,
    /// When the start of the upstream began. `None` while it waits for its only caller or for other upstreams.
    start_time: watch::Sender<Option<Instant>>,
    /// Whether a client fetched lists before the upstream was ready.
    lists_missed: AtomicBool,
    history: PhaseHistory,
}

impl Startup {
    pub(super) fn new(settings: Arc<UpstreamSettings>) -> Self {
        Self {
            settings,
            status: watch::Sender::default(),
            start_time: watch::Sender::default(),
            lists_missed: AtomicBool::new(false),
            history: PhaseHistory::new(),
        }
    }

    /// The status now.
    pub(super) fn status(&self) -> watch::Ref<'_, StartupStatus> {
        self.status.borrow()
    }

    /// Its last phases.
    pub(super) fn history(&self) -> &PhaseHistory {
        &self.history
    }

    /// Whether the upstream is ready.
    pub(crate) fn is_ready(&self) -> bool {
        *self.status() == StartupStatus::Ready
    }

    /// Whether the upstream is neither ready nor failed.
    pub(crate) fn is_starting(&self) -> bool {
        *self.status() == StartupStatus::Starting
    }

    /// Whether the upstream has not started although it waits for no caller.
    pub(crate) fn is_queued(&self) -> bool {
        self.settings.affinity != Affinity::Single && self.since().is_none()
    }

    /// Whether the upstream waits for its only caller.
    pub(super) fn waits_for_caller(&self) -> bool {
        self.settings.affinity == Affinity::Single && self.since().is_none()
    }

    /// Starts the upstream.
    pub(crate) fn start_now(&self) {
        self.start_time.send_if_modified(|since| {
            let is_first = since.is_none();
            if is_first {
                self.history.enter(UpstreamPhase::Starting);
            }
            since.get_or_insert_with(Instant::now);
            is_first
        });
    }

    /// When the start of the upstream began.
    pub(crate) fn since(&self) -> Option<Instant> {
        *self.start_time.borrow()
    }

    /// When the start of the upstream began, once it has.
    pub(super) fn start_time(&self) -> watch::Receiver<Option<Instant>> {
        self.start_time.subscribe()
    }

    /// Records that the upstream is ready. Returns whether it is for the first time.
    pub(super) fn set_ready(&self) -> bool {
        self.history.enter(UpstreamPhase::Ready);
        self.status.send_replace(StartupStatus::Ready) == StartupStatus::Starting
    }

    /// Records that the upstream is unreachable.
    pub(super) fn set_failed(&self, fault: Fault) {
        self.history.enter(UpstreamPhase::Backoff);
        self.status.send_replace(StartupStatus::Failed(fault));
    }

    /// Waits until the upstream is ready or has failed, at most for its startup timeout.
    pub(super) async fn wait_until_ready(&self) -> Result<(), Fault> {
        let until = self.since().unwrap_or_else(Instant::now) + self.settings.startup_timeout;
        let mut status = self.status.subscribe();
        let reached = status.wait_for(|status| *status != StartupStatus::Starting);
        match timeout_at(until, reached).await {
            Ok(Ok(status)) => match &*status {
                StartupStatus::Failed(fault) => Err(fault.clone()),
                _ => Ok(()),
            },
            _ => {
                let (name, seconds) =
                    (self.settings.name(), self.settings.startup_timeout.as_secs());
                let detail = format!("`{name}` did not respond within {seconds} s");
                Err(Fault::new(FaultKind::BackendUnavailable, detail).with_subject(name))
            }
        }
    }

    /// Waits until the upstream is ready or has failed, unless it waits for its only caller.
    pub(crate) async fn wait_until_tried(&self) {
        if self.settings.affinity != Affinity::Single {
            self.wait_until_settled().await;
        }
    }

    /// Waits until the upstream is ready or has failed, at most for its startup timeout.
    pub(crate) async fn wait_until_settled(&self) {
        let mut status = self.status.subscribe();
        let settled = status.wait_for(|status| *status != StartupStatus::Starting);
        // Its status records the result.
        _ = timeout(self.settings.startup_timeout, settled).await;
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
}
