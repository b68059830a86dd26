//! Announcing changes: to sessions of the handshake generation, and to listeners of the stateless one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::calls::Pending;
use super::outbox::{Outbox, Route};
use super::{CallKey, Machine};
use crate::encode::{self, key, write_filter, write_meta};
use crate::meta;
use crate::op::{Change, Filter};
use crate::revision::Rules;
use crate::wire::{Id, Raw, quote};

/// Open streams of notifications.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    open: BTreeMap<CallKey, Listener>,
}

#[derive(Debug)]
struct Listener {
    id: Id,
    filter: Filter,
    rules: &'static Rules,
}

impl Listeners {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn contains(&self, key: CallKey) -> bool {
        self.open.contains_key(&key)
    }

    pub(super) fn is_open(&self, id: &Id) -> bool {
        self.open.values().any(|listener| listener.id == *id)
    }

    /// Closes the listener with the client's id; tells whether there was one.
    pub(super) fn close(&mut self, id: &Id) -> bool {
        let found = self.open.iter().find(|(_, listener)| listener.id == *id).map(|(key, _)| *key);
        found.is_some_and(|key| self.open.remove(&key).is_some())
    }
}

impl Machine {
    /// Tells everybody who wants to know of a change.
    pub fn announce(&mut self, change: &Change, out: &mut Outbox) {
        if self.profile.dialect.announces_changes() && self.session.wants(change) {
            out.frame(Route::Session, |bytes| write_change(bytes, change, None));
        }
        for (call, listener) in &self.listeners.open {
            if listener.filter.wants(change) {
                let route = Route::Call(*call);
                out.frame(route, |bytes| write_change(bytes, change, Some(&listener.id)));
            }
        }
    }

    /// Opens a stream: the acknowledgement is its first message
    /// (2026-07-28 basic/patterns/subscriptions, acknowledgment).
    pub(super) fn start_listening(
        &mut self,
        call: CallKey,
        pending: Pending,
        filter: Filter,
        out: &mut Outbox,
    ) {
        out.frame(Route::Call(call), |bytes| {
            encode::notification(bytes, "notifications/subscriptions/acknowledged", |bytes| {
                write_subscription(bytes, &pending.id);
                write_filter(bytes, &filter);
            });
        });
        self.listeners.open.insert(call, Listener { id: pending.id, filter, rules: pending.rules });
    }

    /// Ends every stream with its graceful result (the same page, graceful closure).
    pub(super) fn end_listeners(&mut self, out: &mut Outbox) {
        for (call, listener) in core::mem::take(&mut self.listeners.open) {
            let about = Raw::of(&BTreeMap::from([(meta::SUBSCRIPTION_ID, listener.id.to_raw())]));
            let target = self.target(listener.rules);
            out.answer(Route::Call(call), None, |bytes| {
                encode::response(bytes, &listener.id, |bytes| {
                    bytes.extend_from_slice(br#"{"resultType":"complete""#);
                    write_meta(bytes, Some(&about), &target);
                    bytes.push(b'}');
                });
            });
        }
    }
}

fn write_change(bytes: &mut Vec<u8>, change: &Change, listener: Option<&Id>) {
    let method = match change {
        Change::List(kind) => kind.changed(),
        Change::Resource(_) => "notifications/resources/updated",
    };
    encode::notification(bytes, method, |bytes| {
        if let Some(id) = listener {
            write_subscription(bytes, id);
        }
        if let Change::Resource(uri) = change {
            key(bytes, "uri");
            quote(bytes, uri);
        }
    });
}

/// Writes `_meta` with the id of the listen request, in the client's own spelling.
fn write_subscription(bytes: &mut Vec<u8>, id: &Id) {
    key(bytes, "_meta");
    bytes.push(b'{');
    key(bytes, meta::SUBSCRIPTION_ID);
    bytes.extend_from_slice(id.raw().as_bytes());
    bytes.push(b'}');
}
