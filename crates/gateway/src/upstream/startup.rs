//! When a server is there: who waits for it and how long, and who looked before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use creole::call::Context;
use creole::proto::fault::{Fault, FaultKind};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Affinity, Upstream};
use crate::upstream::forward::upstream_request;
use crate::upstream::lists::list_sync::StartupStatus;

impl Upstream {
    /// Whether the server was reached.
    pub fn is_ready(&self) -> bool {
        *self.status.borrow() == StartupStatus::Ready
    }

    /// Whether it was neither reached yet nor found out why it cannot be.
    pub(crate) fn is_starting(&self) -> bool {
        *self.status.borrow() == StartupStatus::Starting
    }

    /// Whether its start has not begun although it waits for no caller.
    pub(crate) fn is_queued(&self) -> bool {
        self.settings.affinity != Affinity::Single && self.starting_since().is_none()
    }

    /// Begins to reach the server.
    pub(crate) fn start_now(&self) {
        self.start_time.send_if_modified(|since| {
            let is_first = since.is_none();
            since.get_or_insert_with(Instant::now);
            is_first
        });
    }

    /// Since when it is being reached.
    pub(crate) fn starting_since(&self) -> Option<Instant> {
        *self.start_time.borrow()
    }

    /// Whether nobody else has anything to offer.
    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    /// Waits until the server was reached or could not be, but not longer than its time to start.
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
                let detail = format!("{name} did not answer within {seconds} s");
                Err(Fault::new(FaultKind::BackendUnavailable, detail).with_subject(name))
            }
        }
    }

    /// Waits until the server was reached or could not be, unless it waits for its only caller itself.
    pub(crate) async fn wait_until_tried(&self) {
        if self.settings.affinity != Affinity::Single {
            let mut status = self.status.subscribe();
            let reached = status.wait_for(|status| *status != StartupStatus::Starting);
            // Whether it was or not, the successor takes the place.
            _ = timeout(self.settings.startup_timeout, reached).await;
        }
    }

    /// Waits until the upstream was reached or failed, but not longer than its time to start.
    pub(crate) async fn wait_until_settled(&self) {
        let mut status = self.status.subscribe();
        let settled = status.wait_for(|status| *status != StartupStatus::Starting);
        // Its status tells which it was.
        _ = timeout(self.settings.startup_timeout, settled).await;
    }

    /// Lets a server be reached that waited for its only caller.
    pub(crate) fn start_for_caller(&self, context: &Context) {
        if self.settings.affinity == Affinity::Single && self.starting_since().is_none() {
            // What a client of the stateless era can do is said with each call, and may be something else each time.
            let stays = context.session_name().is_some();
            let capabilities = match self.settings.interactive && stays {
                true => upstream_request::caller_capabilities(context),
                false => Arc::default(),
            };
            _ = self.gateway_capabilities.set(capabilities);
            if let Some(session) = context.client_session() {
                _ = self.only_session.set(session);
            }
            _ = self.only_era.set(context.caller().rules.era);
            self.start_now();
        }
    }

    pub(super) async fn wait_for_start(&self) {
        // The sender lives as long as we do.
        _ = self.start_time.subscribe().wait_for(Option::is_some).await;
    }

    /// Notes that somebody sees lists without those of this server, who is to be told when they come.
    pub(crate) fn mark_missed(&self) {
        // An exchange, as below: of the two, the second one sees all that was done before the first.
        self.lists_missed.swap(true, Ordering::AcqRel);
    }

    /// Whether somebody saw lists without those of this server.
    pub(super) fn take_missed(&self) -> bool {
        self.lists_missed.swap(false, Ordering::AcqRel)
    }

    /// Offers lists of each kind before it is known which the server has: whoever opens a conversation is told
    /// only once what there is.
    pub(crate) fn offer_lists(&self) {
        self.source().offer_lists();
    }
}
