//! Messages to the subscribers in this process.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use bytes::Bytes;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::protection::StoredKind;
use super::record::RecordCodec;
use super::{Result, StateError, StateLimits};

/// An event for a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicEvent {
    /// A message.
    Message(Bytes),
    /// The subscriber was too slow, and messages were dropped: read the state that they were about again.
    Missed,
}

/// A subscription to a topic. Dropping it ends it.
pub struct Subscription {
    topics: Weak<Topics>,
    topic: Arc<str>,
    /// Taken only so that the sender can count the remaining receivers.
    receiver: Option<broadcast::Receiver<QueuedEvent>>,
    records: RecordCodec,
}

impl Subscription {
    /// The same subscription, to messages in this form.
    pub(super) fn decoded_by(mut self, records: RecordCodec) -> Self {
        self.records = records;
        self
    }

    /// The next event; `None` once no [`State`](super::State) is left that could send one. Cancel-safe.
    pub async fn next(&mut self) -> Option<TopicEvent> {
        loop {
            let queued = match self.receiver.as_mut()?.recv().await {
                Ok(QueuedEvent::Message(queued)) => queued,
                Ok(QueuedEvent::Missed) | Err(RecvError::Lagged(_)) => {
                    return Some(TopicEvent::Missed);
                }
                Err(RecvError::Closed) => return None,
            };
            let stored = queued.bytes.clone();
            match self.records.decode(StoredKind::Message, &self.topic, stored) {
                Ok(Some((_, message))) => return Some(TopicEvent::Message(message)),
                // A program without the key may publish to the store. Its messages are skipped.
                Ok(None) => {}
                // A newer version said something.
                Err(_) => return Some(TopicEvent::Missed),
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(topics) = self.topics.upgrade() else { return };
        let mut listeners = topics.listeners();
        drop(self.receiver.take());
        listeners.count -= 1;
        let is_last =
            listeners.topics.get(&self.topic).is_some_and(|topic| topic.receiver_count() == 0);
        if is_last {
            listeners.topics.remove(&self.topic);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Subscription").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// The subscribers of all topics.
#[derive(Debug)]
pub(super) struct Topics {
    limits: StateLimits,
    listeners: Mutex<TopicListeners>,
    /// The bytes of messages that are not received by all subscribers yet.
    pending_bytes: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct TopicListeners {
    topics: HashMap<Arc<str>, broadcast::Sender<QueuedEvent>>,
    count: usize,
}

#[derive(Debug, Clone)]
enum QueuedEvent {
    Message(Arc<QueuedMessage>),
    Missed,
}

/// A message that counts as long as it is queued.
#[derive(Debug)]
struct QueuedMessage {
    bytes: Bytes,
    waiting: Arc<AtomicUsize>,
}

impl Drop for QueuedMessage {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Topics {
    pub(super) fn new(limits: StateLimits) -> Self {
        Self { limits, listeners: Mutex::default(), pending_bytes: Arc::default() }
    }

    pub(super) fn subscribe(self: &Arc<Self>, topic: &str) -> Result<Subscription> {
        let mut listeners = self.listeners();
        if listeners.count >= self.limits.subscriptions {
            return Err(StateError::Full { kind: "listeners", max: self.limits.subscriptions });
        }
        let (topic, receiver) = match listeners.topics.get_key_value(topic) {
            Some((topic, sender)) => (Arc::clone(topic), sender.subscribe()),
            None => {
                let topic: Arc<str> = topic.into();
                let (sender, receiver) = broadcast::channel(self.limits.backlog.max(1));
                listeners.topics.insert(Arc::clone(&topic), sender);
                (topic, receiver)
            }
        };
        listeners.count += 1;
        let topics = Arc::downgrade(self);
        let receiver = Some(receiver);
        Ok(Subscription { topics, topic, receiver, records: RecordCodec::default() })
    }

    pub(super) fn publish(&self, topic: &str, message: &Bytes) {
        let listeners = self.listeners();
        if let Some(sender) = listeners.topics.get(topic) {
            // A topic without subscribers is not in the map, and a subscriber that leaves now misses nothing.
            let _ = sender.send(self.queue_message(message));
        }
    }

    /// Notifies all subscribers that they may have missed messages.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "valkey"))]
    pub(super) fn notify_missed(&self) {
        for sender in self.listeners().topics.values() {
            let _ = sender.send(QueuedEvent::Missed);
        }
    }

    /// The number of subscribers.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn listener_count(&self) -> usize {
        self.listeners().count
    }

    /// The topics that have subscribers.
    #[cfg(feature = "valkey")]
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.listeners().topics.keys().cloned().collect()
    }

    /// Whether a topic has subscribers.
    #[cfg(feature = "valkey")]
    pub(super) fn has_subscribers(&self, topic: &str) -> bool {
        self.listeners().topics.contains_key(topic)
    }

    /// The queued message, or the event of its loss when too many bytes are queued. It is copied, since it may be a
    /// small slice of a large buffer that it would keep alive.
    fn queue_message(&self, message: &Bytes) -> QueuedEvent {
        let length = message.len();
        // Only called under the lock, so no other thread adds in between.
        if self.pending_bytes.load(Ordering::Relaxed).saturating_add(length)
            > self.limits.pending_bytes
        {
            return QueuedEvent::Missed;
        }
        self.pending_bytes.fetch_add(length, Ordering::Relaxed);
        let bytes = Bytes::copy_from_slice(message);
        QueuedEvent::Message(Arc::new(QueuedMessage {
            bytes,
            waiting: Arc::clone(&self.pending_bytes),
        }))
    }

    fn listeners(&self) -> MutexGuard<'_, TopicListeners> {
        self.listeners.lock()
    }
}
