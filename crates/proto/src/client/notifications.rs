//! Handles the server's notifications.

use alloc::borrow::Cow;
use alloc::sync::Arc;

use super::outbox::{ClientEvent, Outbox, ProtocolViolation};
use super::receive::{MessageOrigin, shorten};
use super::results::read_filter;
use super::tasks::read_task;
use super::{CallKey, Machine};
use crate::model::{Level, ListKind};
use crate::operation::{Change, Event, Outcome, Payload};
use crate::revision::InputRequestStyle;
use crate::wire::meta;
use crate::wire::{Id, Object, Raw};

impl Machine {
    /// Handles a notification. An unknown one is a protocol violation.
    pub(super) fn take_notification(
        &mut self,
        method: &str,
        params: Object<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) {
        let understood = match method {
            "notifications/progress" => self.take_progress(params, arrival, out),
            "notifications/message" => self.take_log(params, arrival, out),
            "notifications/cancelled" => self.take_cancellation(params, out),
            "notifications/subscriptions/acknowledged" => {
                self.take_acknowledgement(params, arrival, out)
            }
            "notifications/elicitation/complete" => take_elicitation_complete(params, out),
            _ => match self.read_change(method, params) {
                Some(change) => self.take_change(change, params, arrival, out),
                None => None,
            },
        };
        if understood.is_none() {
            self.report_violation(ProtocolViolation::UnknownNotification(shorten(method)), out);
        }
    }

    /// Handles progress. Progress of a finished call is ignored, and values must increase (every revision, progress).
    fn take_progress(
        &mut self,
        params: Object<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) -> Option<()> {
        let token = params.get("progressToken")?.parse::<u64>().ok()?;
        let progress = parse_finite(params.get("progress")?)?;
        if !self.calls.was_minted(token) {
            return None;
        }
        let call = CallKey(token);
        let Some(pending) = self.calls.get_mut(call) else { return Some(()) };
        if progress <= pending.last_progress {
            return Some(());
        }
        pending.last_progress = progress;
        pending.reset_idle_deadline(arrival.now);
        if pending.progress {
            let total = params.get("total").and_then(parse_finite);
            let message = params.string("message").ok().flatten().map(Cow::into_owned);
            out.push_event(ClientEvent::CallEvent(
                call,
                Event::Progress { progress, total, message },
            ));
        }
        Some(())
    }

    /// Handles a log message. It belongs to the call whose channel it came on, or to the only call in flight that
    /// requested log messages. Calls without that request do not get it.
    fn take_log(
        &mut self,
        params: Object<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) -> Option<()> {
        let level = Level::from_name(&params.string("level").ok().flatten()?)?;
        let logger = params.string("logger").ok().flatten().map(Cow::into_owned);
        let data = Raw::from_validated(params.get("data").unwrap_or("null"));
        let origin = arrival.call.filter(|call| self.is_open(*call));
        let call = origin.or_else(|| {
            self.calls.single_matching(|pending| pending.is_sent && pending.log.is_some())
        });
        let event = Event::Log { level, logger, data };
        match call.and_then(|call| self.calls.get_mut(call).zip(Some(call))) {
            Some((pending, call)) => {
                pending.reset_idle_deadline(arrival.now);
                if pending.log.is_some_and(|min_level| level >= min_level) {
                    out.push_event(ClientEvent::CallEvent(call, event));
                }
            }
            None => out.push_event(ClientEvent::UnattributedLog(event)),
        }
        Some(())
    }

    /// Handles a cancellation: the server withdraws an input request
    /// (2025-11-25 basic/utilities/cancellation, behavior requirements), or ends a listener
    /// (2026-07-28 basic/patterns/cancellation, behavior requirements).
    fn take_cancellation(&mut self, params: Object<'_>, out: &mut Outbox) -> Option<()> {
        let id = params.get("requestId")?;
        match self.rules.input_request_style {
            InputRequestStyle::Inline => {
                self.withdraw_input_request(&Id::parse_number(id).ok()?, out)
            }
            InputRequestStyle::MultiRoundTrip => {
                let call = CallKey(id.parse().ok()?);
                if !self.calls.get(call)?.is_listening {
                    return None;
                }
                self.calls.remove(call);
                out.push_event(ClientEvent::ListenerEnded(call, None));
            }
        }
        Some(())
    }

    /// Handles the first message of a subscription (2026-07-28 basic/patterns/subscriptions, acknowledgment).
    fn take_acknowledgement(
        &mut self,
        params: Object<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) -> Option<()> {
        let call = self.find_listener(params, arrival)?;
        let pending = self.calls.get_mut(call)?;
        if !pending.is_listening {
            pending.is_listening = true;
            let payload = Payload::Listening(read_filter(params));
            out.push_event(ClientEvent::CallDone(call, Outcome::Complete(payload)));
        }
        Some(())
    }

    fn take_change(
        &mut self,
        change: Change,
        params: Object<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) -> Option<()> {
        let listener = match self.rules.unsolicited_changes {
            true => None,
            false => Some(self.find_listener(params, arrival)?),
        };
        let listens = |call| self.calls.get(call).is_some_and(|pending| pending.is_listening);
        if listener.is_some_and(|call| !listens(call)) {
            return None;
        }
        out.push_event(ClientEvent::Changed { listener, change });
        Some(())
    }

    /// The listener that a notification belongs to: the one it names, or the one whose channel it came on.
    fn find_listener(&self, params: Object<'_>, arrival: MessageOrigin) -> Option<CallKey> {
        let about = params.get("_meta").and_then(Object::new);
        let text = about.and_then(|about| about.get(meta::SUBSCRIPTION_ID));
        let call = match text {
            Some(id) => CallKey(id.parse().ok()?),
            None => arrival.call?,
        };
        let is_listener = self.calls.get(call)?.expected == super::calls::ExpectedResult::Listen;
        is_listener.then_some(call)
    }

    fn read_change(&self, method: &str, params: Object<'_>) -> Option<Change> {
        Some(match method {
            "notifications/tools/list_changed" => Change::List(ListKind::Tools),
            "notifications/prompts/list_changed" => Change::List(ListKind::Prompts),
            "notifications/resources/list_changed" => Change::List(ListKind::Resources),
            "notifications/resources/updated" => {
                Change::Resource(params.string("uri").ok().flatten()?.into_owned())
            }
            "notifications/tasks" | "notifications/tasks/status" => {
                let max = self.profile.limits.max_input_requests;
                Change::Task(Arc::new(read_task(params, self.rules, &self.profile.dialect, max)?))
            }
            _ => return None,
        })
    }
}

fn take_elicitation_complete(params: Object<'_>, out: &mut Outbox) -> Option<()> {
    let id = params.string("elicitationId").ok().flatten()?;
    out.push_event(ClientEvent::ElicitationCompleted(id.into_owned()));
    Some(())
}

/// Parses a finite number. Infinities are not valid progress.
fn parse_finite(raw: &str) -> Option<f64> {
    raw.parse::<f64>().ok().filter(|number| number.is_finite())
}
