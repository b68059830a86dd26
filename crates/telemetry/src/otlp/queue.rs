//! The queue between calls and the task that exports them. A full queue drops what comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The side of calls. Clones share the queue.
pub(super) struct QueueSender<T> {
    sender: UnboundedSender<(T, usize)>,
    shared: Arc<QueueState>,
}

/// The side of the exporting task.
pub(super) struct QueueReceiver<T> {
    receiver: UnboundedReceiver<(T, usize)>,
    shared: Arc<QueueState>,
}

struct QueueState {
    /// The sum of the sizes of the items that wait.
    waiting: AtomicUsize,
    /// The size of the items that were dropped and are not counted yet.
    dropped: AtomicU64,
    max_waiting: usize,
    /// The size from which the task is woken before its delay is over.
    max_batch: usize,
    /// Signals the first item of an empty queue.
    first: Notify,
    /// Signals a whole batch.
    full: Notify,
}

impl<T> Clone for QueueSender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), shared: Arc::clone(&self.shared) }
    }
}

/// A queue for items of this size together.
pub(super) fn queue<T>(max_waiting: usize, max_batch: usize) -> (QueueSender<T>, QueueReceiver<T>) {
    let (sender, receiver) = unbounded_channel();
    let shared = Arc::new(QueueState {
        waiting: AtomicUsize::new(0),
        dropped: AtomicU64::new(0),
        max_waiting,
        max_batch,
        first: Notify::new(),
        full: Notify::new(),
    });
    let sender = QueueSender { sender, shared: Arc::clone(&shared) };
    (sender, QueueReceiver { receiver, shared })
}

impl<T> QueueSender<T> {
    /// Adds an item; returns whether there was room for it. An item that is dropped is counted. Never waits.
    pub(super) fn push(&self, item: T, size: usize) -> bool {
        let state = &*self.shared;
        let before = state.waiting.fetch_add(size, Ordering::AcqRel);
        let after = before + size;
        if after > state.max_waiting || self.sender.send((item, size)).is_err() {
            state.waiting.fetch_sub(size, Ordering::AcqRel);
            state.dropped.fetch_add(size as u64, Ordering::Relaxed);
            return false;
        }
        if before == 0 {
            state.first.notify_one();
        }
        if before < state.max_batch && after >= state.max_batch {
            state.full.notify_one();
        }
        true
    }
}

impl<T> QueueReceiver<T> {
    /// Waits until there is an item. Cancel-safe.
    pub(super) async fn wait_for_first(&self) {
        while self.is_empty() {
            self.shared.first.notified().await;
        }
    }

    /// Waits until there is a whole batch. Cancel-safe.
    pub(super) async fn wait_for_batch(&self) {
        while self.shared.waiting.load(Ordering::Acquire) < self.shared.max_batch {
            self.shared.full.notified().await;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shared.waiting.load(Ordering::Acquire) == 0
    }

    /// The next item, if there is one.
    pub(super) fn next(&mut self) -> Option<T> {
        let (item, size) = self.receiver.try_recv().ok()?;
        self.shared.waiting.fetch_sub(size, Ordering::AcqRel);
        Some(item)
    }

    /// The size of the items that were dropped since the last time.
    pub(super) fn take_dropped(&self) -> u64 {
        self.shared.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let (sender, mut receiver) = queue(10, 4);
        assert!(sender.push("a", 6) && !sender.push("b", 5) && sender.push("c", 4));
        assert!(!sender.push("d", 1));
        assert_eq!((receiver.take_dropped(), receiver.take_dropped()), (6, 0));
        assert_eq!(
            [receiver.next(), receiver.next(), receiver.next()],
            [Some("a"), Some("c"), None]
        );
        assert!(receiver.is_empty() && sender.push("e", 10));
        drop(receiver);
        assert!(!sender.push("f", 0));
    }

    #[tokio::test]
    async fn the_task_is_woken_by_the_first_item_and_by_a_whole_batch() {
        let (sender, receiver) = queue(10, 4);
        let adding = sender.clone();
        let task = tokio::spawn(async move {
            receiver.wait_for_first().await;
            receiver.wait_for_batch().await;
            receiver.is_empty()
        });
        tokio::task::yield_now().await;
        for _ in 0..4 {
            assert!(adding.push((), 1));
            tokio::task::yield_now().await;
        }
        assert!(!task.await.unwrap());
    }
}
