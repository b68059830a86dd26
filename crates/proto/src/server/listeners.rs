//! Announces changes: to sessions of the handshake era, and to listeners of the stateless era
//! (2026-07-28 basic/patterns/subscriptions, receiving notifications).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::calls::InFlightCall;
use super::outbox::{FrameRoute, Outbox};
use super::{CallKey, Machine};
use crate::encode;
use crate::encode::{ResultTarget, write_filter, write_key, write_meta, write_task};
use crate::model::{ListKind, Task};
use crate::operation::{Change, Payload, SubscriptionFilter};
use crate::revision::{Rules, TaskModel};
use crate::wire::meta;
use crate::wire::{Id, Raw, quote};

/// Maximum number of stored changes of tasks that the client does not know yet.
const MAX_EARLY_TASKS: usize = 64;

/// Open streams of notifications.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    /// Listeners are boxed: most connections have none or one, and a node of the tree has room for eleven.
    open: BTreeMap<CallKey, Box<OpenListener>>,
    /// Changes of tasks without a follower that arrived while a call might still create a follower.
    early_tasks: Vec<Arc<Task>>,
}

#[derive(Debug)]
struct OpenListener {
    id: Id,
    filter: SubscriptionFilter,
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

    /// Takes the stored changes of tasks that now have a follower.
    fn take_early_tasks(&mut self, is_followed: impl Fn(&String) -> bool) -> Vec<Arc<Task>> {
        let early = core::mem::take(&mut self.early_tasks).into_iter();
        let (taken, left) = early.partition(|task| is_followed(&task.id));
        self.early_tasks = left;
        taken
    }

    /// Closes the listener with the client's id, if any, and returns the URIs it was subscribed to.
    pub(super) fn close(&mut self, id: &Id) -> Option<Vec<String>> {
        let input_key =
            self.open.iter().find(|(_, listener)| listener.id == *id).map(|(key, _)| *key);
        Some(self.open.remove(&input_key?)?.filter.uris)
    }

    /// The subscribed resources, once per subscription.
    pub(super) fn subscribed_uris(&self) -> impl Iterator<Item = &String> {
        self.open.values().flat_map(|listener| &listener.filter.uris)
    }
}

impl Machine {
    /// Sends a change to the session and to all listeners that requested it.
    pub fn announce(&mut self, change: &Change, out: &mut Outbox) {
        if self.profile.dialect.announces_changes() && self.session.is_subscribed_to(change) {
            let target = self.result_target(self.session.rules);
            out.push_frame(FrameRoute::Session, |bytes| write_change(bytes, change, None, &target));
        }
        if let Change::Task(task) = change {
            self.note_task(task);
        }
        for (call, listener) in &self.listeners.open {
            if listener.filter.wants(change) {
                let (route, target) = (FrameRoute::Call(*call), self.result_target(listener.rules));
                out.push_frame(route, |bytes| {
                    write_change(bytes, change, Some(&listener.id), &target)
                });
            }
        }
    }

    /// Stores a task that the session created, to announce its changes. Beyond the limit clients have to poll, which
    /// the specification requires of them anyway (2025-11-25 basic/utilities/tasks, task status notification).
    pub(super) fn follow_task(&mut self, payload: &Payload, rules: &Rules, out: &mut Outbox) {
        let Payload::TaskCreated(task) = payload else { return };
        let has_room = self.session.tasks.len() < self.profile.limits.max_subscriptions;
        if rules.tasks == TaskModel::ClientRequested && has_room {
            self.session.tasks.insert(task.id.clone());
            for task in self.listeners.take_early_tasks(|id| *id == task.id) {
                self.announce(&Change::Task(task), out);
            }
        }
    }

    /// Records a change of a task. A finished task is not followed any longer. A change of an unknown task is stored,
    /// because a call in flight may start following that task.
    fn note_task(&mut self, task: &Arc<Task>) {
        if self.session.tasks.contains(&task.id) {
            if task.state.is_terminal() {
                self.session.tasks.remove(&task.id);
            }
        } else if self.calls.may_create_task() {
            let early = &mut self.listeners.early_tasks;
            early.drain(..(early.len() + 1).saturating_sub(MAX_EARLY_TASKS));
            early.push(Arc::clone(task));
        } else {
            self.listeners.early_tasks.clear();
        }
    }

    /// Announces every list as changed, for clients that may have missed a change. A spurious notification is harmless,
    /// a lost one is not.
    pub fn announce_all_lists(&mut self, out: &mut Outbox) {
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            self.announce(&Change::List(kind), out);
        }
    }

    /// Opens a stream. The acknowledgement is its first message
    /// (2026-07-28 basic/patterns/subscriptions, acknowledgment).
    pub(super) fn start_listening(
        &mut self,
        call: CallKey,
        pending: InFlightCall,
        filter: SubscriptionFilter,
        out: &mut Outbox,
    ) {
        out.push_frame(FrameRoute::Call(call), |bytes| {
            encode::write_notification(
                bytes,
                "notifications/subscriptions/acknowledged",
                |bytes| {
                    write_subscription(bytes, &pending.id);
                    write_filter(bytes, &filter);
                },
            );
        });
        let target = self.result_target(pending.rules);
        for task in self.listeners.early_tasks.iter().filter(|task| filter.tasks.contains(&task.id))
        {
            let (route, change) = (FrameRoute::Call(call), Change::Task(Arc::clone(task)));
            out.push_frame(route, |bytes| write_change(bytes, &change, Some(&pending.id), &target));
        }
        self.listeners.take_early_tasks(|id| filter.tasks.contains(id));
        let listener = OpenListener { id: pending.id, filter, rules: pending.rules };
        self.listeners.open.insert(call, Box::new(listener));
    }

    /// Ends every stream with its final result (2026-07-28 basic/patterns/subscriptions, graceful closure).
    pub(super) fn end_listeners(&mut self, out: &mut Outbox) {
        for (call, mut listener) in core::mem::take(&mut self.listeners.open) {
            out.release_subscriptions(core::mem::take(&mut listener.filter.uris));
            let about =
                Raw::from_value(&BTreeMap::from([(meta::SUBSCRIPTION_ID, listener.id.to_json())]));
            let target = self.result_target(listener.rules);
            out.push_response(FrameRoute::Call(call), None, |bytes| {
                encode::write_response(bytes, &listener.id, |bytes| {
                    bytes.extend_from_slice(br#"{"resultType":"complete""#);
                    write_meta(bytes, Some(&about), &target);
                    bytes.push(b'}');
                });
            });
        }
    }
}

fn write_change(
    bytes: &mut Vec<u8>,
    change: &Change,
    listener: Option<&Id>,
    target: &ResultTarget<'_>,
) {
    let method = match (change, target.rules.tasks) {
        (Change::List(kind), _) => kind.changed(),
        (Change::Resource(_), _) => "notifications/resources/updated",
        (Change::Task(_), TaskModel::Extension) => "notifications/tasks",
        (Change::Task(_), _) => "notifications/tasks/status",
    };
    encode::write_notification(bytes, method, |bytes| {
        if let Some(id) = listener {
            write_subscription(bytes, id);
        }
        match change {
            Change::List(_) => {}
            Change::Resource(uri) => {
                write_key(bytes, "uri");
                quote(bytes, uri);
            }
            Change::Task(task) => write_task(bytes, task, target),
        }
    });
}

/// Writes `_meta` with the id of the listen request, spelled as the client spelled it
/// (2026-07-28 schema, `NotificationMetaObject`).
fn write_subscription(bytes: &mut Vec<u8>, id: &Id) {
    write_key(bytes, "_meta");
    bytes.push(b'{');
    write_key(bytes, meta::SUBSCRIPTION_ID);
    bytes.extend_from_slice(id.raw().as_bytes());
    bytes.push(b'}');
}
