//! Resources that somebody here watches, and what tells a server so.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::client::{CallStep, Connection};
use creole::proto::client::CallRequest;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::ServerCapabilities;
use creole::proto::operation::{Operation, Outcome, Payload, SubscriptionFilter};
use creole::proto::revision::Era;
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The most resources of one server that are watched at once.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// How long a server may take to begin or to refuse to tell of a resource.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is watched at one server.
pub(crate) struct ResourceSubscriptions {
    counts: Mutex<HashMap<String, usize>>,
    /// Held while the server is asked, so that nobody takes for watched what is still being asked for.
    request_lock: AsyncMutex<()>,
    /// The stream of notifications of a server that tells nothing without one.
    stream: AsyncMutex<Option<NotificationStream>>,
    /// Told when the stream ended by itself.
    stream_losses: watch::Sender<u64>,
    /// Told when the last resource is no longer watched.
    last_removed: Notify,
}

/// An acknowledged stream. Dropping it ends it.
struct NotificationStream(AbortHandle);

impl Drop for NotificationStream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One who watches, not counted any more when this is dropped: whoever asked for it may leave before it is answered.
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
    /// Watches a resource for one more; the first has the server asked.
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
                    crate::upstream::internal_fault(
                        "the server did not answer a subscription in time",
                    )
                    .into()
                }),
            false => Outcome::Complete(Payload::Empty),
        };
        counted.is_committed = matches!(outcome, Outcome::Complete(_));
        outcome
    }

    /// Watches a resource for one less; tells whether that was the last.
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

    /// Whether nothing is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Resolves when the last resource is no longer watched.
    pub(crate) async fn wait_until_empty(&self) {
        self.last_removed.notified().await;
    }

    /// Whether somebody watches the resource.
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.lock().contains_key(uri)
    }

    /// What is watched.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Stops being told of a resource that nobody watches any more.
    pub(crate) async fn unsubscribe(&self, uri: &str, connection: &Connection) {
        match connection.greeting().rules.era {
            Era::Handshake => {
                let operation = Operation::Unsubscribe { uri: uri.to_owned() };
                // Too much news harms nobody.
                _ = timeout(
                    SUBSCRIBE_TIMEOUT,
                    connection.call_without_input(CallRequest::new(operation)),
                )
                .await;
            }
            Era::Stateless => _ = timeout(SUBSCRIBE_TIMEOUT, self.open_stream(connection)).await,
        }
    }

    /// Asks a server anew for all that is watched, after a new conversation was opened. Tells whether changes of its
    /// lists will be told, as far as it depends on what was asked for.
    pub(crate) async fn restore(&self, connection: &Connection) -> bool {
        match connection.greeting().rules.era {
            // A server that never says what it will tell is used all the same.
            Era::Stateless => {
                let wanted = self.wanted_filter(connection.greeting().server_info.capabilities);
                let listening = timeout(SUBSCRIBE_TIMEOUT, self.open_stream(connection)).await;
                listening.is_ok_and(|it| it.is_ok_and(|honoured| covers_lists(&honoured, &wanted)))
            }
            Era::Handshake => {
                for uri in self.uris() {
                    let operation = Operation::Subscribe { uri };
                    // Who watches is told of everything anyway after a loss.
                    _ = connection.call_without_input(CallRequest::new(operation)).await;
                }
                true
            }
        }
    }

    /// The same, but the server may take only so long.
    pub(crate) async fn restore_with_timeout(&self, connection: &Connection) {
        // Who does not answer may tell all the same.
        _ = timeout(SUBSCRIBE_TIMEOUT, self.restore(connection)).await;
    }

    /// Resolves when a stream of notifications ended by itself.
    pub(crate) fn stream_losses(&self) -> watch::Receiver<u64> {
        self.stream_losses.subscribe()
    }

    async fn subscribe_upstream(&self, uri: &str, connection: &Connection) -> Outcome {
        match connection.greeting().rules.era {
            Era::Handshake => {
                let operation = Operation::Subscribe { uri: uri.to_owned() };
                match connection.call_without_input(CallRequest::new(operation)).await {
                    Outcome::Complete(_) => Outcome::Complete(Payload::Empty),
                    other => other,
                }
            }
            Era::Stateless => match self.open_stream(connection).await {
                Ok(honoured) if honoured.uris.iter().any(|it| it == uri) => {
                    Outcome::Complete(Payload::Empty)
                }
                Ok(_) => Fault::new(FaultKind::ResourceNotFound, "").with_subject(uri).into(),
                Err(fault) => fault.into(),
            },
        }
    }

    /// Opens a stream of notifications for all that is wanted, in place of the one before.
    async fn open_stream(&self, connection: &Connection) -> Result<SubscriptionFilter, Fault> {
        let mut stream = self.stream.lock().await;
        let filter = self.wanted_filter(connection.greeting().server_info.capabilities);
        if filter == SubscriptionFilter::default() {
            *stream = None;
            return Ok(filter);
        }
        let mut calling = connection.start_call(CallRequest::new(Operation::Listen(filter)));
        let honoured = match calling.outcome(drop).await {
            Outcome::Complete(Payload::Listening(filter)) => filter,
            Outcome::Fail(fault) => return Err(fault),
            _ => {
                return Err(crate::upstream::internal_fault(
                    "a subscription was answered with something else",
                ));
            }
        };
        let lost = self.stream_losses.clone();
        let task = tokio::spawn(async move {
            while !matches!(calling.next().await, CallStep::Ended(_)) {}
            lost.send_modify(|count| *count += 1);
        });
        *stream = Some(NotificationStream(task.abort_handle()));
        Ok(honoured)
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

    /// Counts one more who watches a resource. Returns whether it is the first.
    pub(crate) fn add_subscriber(&self, uri: &str) -> Result<bool, Fault> {
        let mut counts = self.lock();
        if counts.len() >= MAX_SUBSCRIPTIONS && !counts.contains_key(uri) {
            let detail = format!("{MAX_SUBSCRIPTIONS} resources are watched, the most allowed");
            return Err(Fault::new(FaultKind::Busy, detail));
        }
        let count = counts.entry(uri.to_owned()).or_default();
        *count += 1;
        Ok(*count == 1)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether all changes of lists that were wanted will be told.
fn covers_lists(honoured: &SubscriptionFilter, wanted: &SubscriptionFilter) -> bool {
    let rows = [
        (honoured.tools, wanted.tools),
        (honoured.prompts, wanted.prompts),
        (honoured.resources, wanted.resources),
    ];
    rows.into_iter().all(|(honoured, wanted)| honoured || !wanted)
}
