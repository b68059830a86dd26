//! The resource subscriptions at an upstream, and the requests that make them.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::sync::MutexGuard;
use std::time::Duration;

use creole::internal::client::{CallStep, Connection};
use creole::proto::client::CallRequest;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::ServerCapabilities;
use creole::proto::operation::{Operation, Outcome, Payload, SubscriptionFilter};
use creole::proto::revision::SubscriptionModel;
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The maximum number of subscribed resources of one upstream.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// How long an upstream may take to acknowledge or refuse a subscription.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The subscriptions of one session.
pub(crate) struct ResourceSubscriptions {
    counts: Mutex<HashMap<String, usize>>,
    /// Held during a request, so that a pending subscription is not mistaken for an active one.
    request_lock: AsyncMutex<()>,
    /// The notification stream of an upstream that sends no notifications without one.
    stream: AsyncMutex<Option<NotificationStream>>,
    /// Signals that the stream ended unexpectedly.
    stream_losses: watch::Sender<u64>,
    /// Signals that the last subscription was removed.
    last_removed: Notify,
}

/// An acknowledged stream. Dropping it ends it.
struct NotificationStream(AbortHandle);

impl Drop for NotificationStream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A counted subscriber. Dropping it removes the count, since the subscribing future may be dropped before the
/// response.
struct SubscriberGuard<'a> {
    subscriptions: &'a ResourceSubscriptions,
    uri: &'a str,
    is_committed: bool,
}

impl Drop for SubscriberGuard<'_> {
    fn drop(&mut self) {
        if !self.is_committed {
            self.subscriptions.remove_subscriber(self.uri);
        }
    }
}

impl Default for ResourceSubscriptions {
    fn default() -> Self {
        let (lost, _) = watch::channel(0);
        let asking = AsyncMutex::default();
        let (counts, stream, emptied) = (Mutex::default(), AsyncMutex::default(), Notify::new());
        Self { counts, request_lock: asking, stream, stream_losses: lost, last_removed: emptied }
    }
}

impl ResourceSubscriptions {
    /// Adds a subscriber of a resource. The first one sends the request to the upstream.
    pub(crate) async fn subscribe(&self, uri: &str, connection: &Connection) -> Outcome {
        if !connection.greeting().server_info.capabilities.subscribe {
            return Fault::new(FaultKind::MethodNotFound, "")
                .with_subject("resources/subscribe")
                .into();
        }
        let _alone = self.request_lock.lock().await;
        let is_first = match self.add_subscriber(uri) {
            Ok(is_first) => is_first,
            Err(fault) => return fault.into(),
        };
        let mut counted = SubscriberGuard { subscriptions: self, uri, is_committed: false };
        let outcome = match is_first {
            true => timeout(SUBSCRIBE_TIMEOUT, self.subscribe_upstream(uri, connection))
                .await
                .unwrap_or_else(|_| {
                    Fault::new(
                        FaultKind::Internal,
                        "the upstream did not respond to the subscription in time",
                    )
                    .into()
                }),
            false => Outcome::Complete(Payload::Empty),
        };
        counted.is_committed = matches!(outcome, Outcome::Complete(_));
        outcome
    }

    /// Removes a subscriber of a resource. Returns whether it was the last.
    pub(crate) fn remove_subscriber(&self, uri: &str) -> bool {
        let mut counts = self.lock();
        let Some(count) = counts.get_mut(uri) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            counts.remove(uri);
        }
        if counts.is_empty() {
            self.last_removed.notify_one();
        }
        is_last
    }

    /// Whether there are no subscriptions.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Resolves when the last subscription is removed.
    pub(crate) async fn wait_until_empty(&self) {
        self.last_removed.notified().await;
    }

    /// Whether the resource has a subscriber.
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.lock().contains_key(uri)
    }

    /// The subscribed resources.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Unsubscribes from a resource without subscribers.
    pub(crate) async fn unsubscribe(&self, uri: &str, connection: &Connection) {
        match connection.greeting().rules.subscriptions {
            SubscriptionModel::Requests => {
                let operation = Operation::Unsubscribe { uri: uri.to_owned() };
                // A failure is harmless: extra notifications do no harm.
                _ = timeout(
                    SUBSCRIBE_TIMEOUT,
                    connection.call_without_input(CallRequest::new(operation)),
                )
                .await;
            }
            SubscriptionModel::Stream => {
                _ = timeout(SUBSCRIBE_TIMEOUT, self.open_stream(connection)).await
            }
        }
    }

    /// Repeats all subscriptions in a new session. Returns whether the upstream will announce list changes, as far as
    /// the request determines it.
    pub(crate) async fn restore(&self, connection: &Connection) -> bool {
        match connection.greeting().rules.subscriptions {
            // An upstream that never acknowledges its subscriptions is used anyway.
            SubscriptionModel::Stream => {
                let filter = self.wanted_filter(connection.greeting().server_info.capabilities);
                let listening = timeout(SUBSCRIBE_TIMEOUT, self.open_stream(connection)).await;
                listening.is_ok_and(|it| it.is_ok_and(|granted| covers_lists(&granted, &filter)))
            }
            SubscriptionModel::Requests => {
                for uri in self.uris() {
                    let operation = Operation::Subscribe { uri };
                    // Subscribers are notified of all changes after a reconnect anyway.
                    _ = connection.call_without_input(CallRequest::new(operation)).await;
                }
                true
            }
        }
    }

    /// Like [`Self::restore`], with a timeout.
    pub(crate) async fn restore_with_timeout(&self, connection: &Connection) {
        // An upstream that does not respond may send notifications anyway.
        _ = timeout(SUBSCRIBE_TIMEOUT, self.restore(connection)).await;
    }

    /// Signals each notification stream that ended unexpectedly.
    pub(crate) fn stream_losses(&self) -> watch::Receiver<u64> {
        self.stream_losses.subscribe()
    }

    async fn subscribe_upstream(&self, uri: &str, connection: &Connection) -> Outcome {
        match connection.greeting().rules.subscriptions {
            SubscriptionModel::Requests => {
                let operation = Operation::Subscribe { uri: uri.to_owned() };
                match connection.call_without_input(CallRequest::new(operation)).await {
                    Outcome::Complete(_) => Outcome::Complete(Payload::Empty),
                    other => other,
                }
            }
            SubscriptionModel::Stream => match self.open_stream(connection).await {
                Ok(granted) if granted.uris.iter().any(|text| text == uri) => {
                    Outcome::Complete(Payload::Empty)
                }
                Ok(_) => Fault::new(FaultKind::ResourceNotFound, "").with_subject(uri).into(),
                Err(fault) => fault.into(),
            },
        }
    }

    /// Opens a notification stream for all subscriptions, which replaces the previous one.
    async fn open_stream(&self, connection: &Connection) -> Result<SubscriptionFilter, Fault> {
        let mut stream = self.stream.lock().await;
        let filter = self.wanted_filter(connection.greeting().server_info.capabilities);
        if filter == SubscriptionFilter::default() {
            *stream = None;
            return Ok(filter);
        }
        let mut call = connection.start_call(CallRequest::new(Operation::Listen(filter)));
        let granted = match call.outcome(drop).await {
            Outcome::Complete(Payload::Listening(filter)) => filter,
            Outcome::Fail(fault) => return Err(fault),
            _ => {
                return Err(Fault::new(
                    FaultKind::Internal,
                    "the upstream's response to the subscription is not valid",
                ));
            }
        };
        let lost = self.stream_losses.clone();
        let task = tokio::spawn(async move {
            while !matches!(call.next().await, CallStep::Ended(_)) {}
            lost.send_modify(|count| *count += 1);
        });
        *stream = Some(NotificationStream(task.abort_handle()));
        Ok(granted)
    }

    fn wanted_filter(&self, has: ServerCapabilities) -> SubscriptionFilter {
        SubscriptionFilter {
            tools: has.tools && has.list_changed,
            prompts: has.prompts && has.list_changed,
            resources: has.resources && has.list_changed,
            uris: self.uris(),
            tasks: Vec::new(),
        }
    }

    /// Counts a subscriber of a resource. Returns whether it is the first.
    pub(crate) fn add_subscriber(&self, uri: &str) -> Result<bool, Fault> {
        let mut counts = self.lock();
        if counts.len() >= MAX_SUBSCRIPTIONS && !counts.contains_key(uri) {
            let detail = format!(
                "the limit of {MAX_SUBSCRIPTIONS} resource subscriptions is \
                reached; cancel one of them"
            );
            return Err(Fault::new(FaultKind::Busy, detail));
        }
        let count = counts.entry(uri.to_owned()).or_default();
        *count += 1;
        Ok(*count == 1)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.counts.lock()
    }
}

/// Whether the upstream will announce all requested list changes.
fn covers_lists(granted: &SubscriptionFilter, filter: &SubscriptionFilter) -> bool {
    let rows = [
        (granted.tools, filter.tools),
        (granted.prompts, filter.prompts),
        (granted.resources, filter.resources),
    ];
    rows.into_iter().all(|(granted, wanted)| granted || !wanted)
}
