//! Messages between processes. Those of this process are delivered at once, and skipped when they come back.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use redis::{PushInfo, PushKind, RedisError, Value, cmd};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::super::topics::{Subscription, Topics};
use super::super::{Result, StateError};
use super::ValkeyState;
use super::connect::{ConnectPlan, OpenConnection, PushHandler, TaskGuard};
use super::keys::Keys;
use super::reconnect_pause::ReconnectPause;

/// Maximum number of subscriptions that wait to be sent.
const MAX_WAITING_SUBSCRIPTIONS: usize = 256;
/// How often topics without subscribers are given up.
const CLEANUP_PERIOD: Duration = Duration::from_secs(1);
/// After how many of these periods the connection is tested.
const PERIODS_PER_PING: u32 = 5;
/// Maximum number of topics in one command.
const TOPICS_PER_COMMAND: usize = 256;

/// Identifies the messages of a process.
pub(super) type PublisherId = [u8; 8];

/// Subscribes to topics on a connection of its own.
#[derive(Debug)]
pub(super) struct Subscriber {
    store: Arc<str>,
    timeout: Duration,
    requests: mpsc::Sender<SubscribeRequest>,
    _task: TaskGuard,
}

struct SubscribeRequest {
    topic: String,
    done: oneshot::Sender<std::result::Result<(), Arc<str>>>,
}

impl ValkeyState {
    pub(in super::super) async fn publish(&self, topic: &str, message: &Bytes) -> Result<()> {
        let shared = &self.shared;
        let mut command = cmd("PUBLISH");
        command.arg(shared.keys.channel(topic)).arg([&shared.origin[..], message].concat());
        let publishing = |mut connection| {
            shared.topics.publish(topic, message);
            async move { command.query_async::<()>(&mut connection).await }
        };
        shared.commands.run(publishing).await
    }

    pub(in super::super) async fn subscribe(&self, topic: &str) -> Result<Subscription> {
        // First here, so that the topic counts as used and no message is lost after the confirmation.
        let subscription = self.shared.topics.subscribe(topic)?;
        self.shared.subscriber.subscribe(topic).await?;
        Ok(subscription)
    }
}

impl Subscriber {
    pub(super) fn start(
        plan: Arc<ConnectPlan>,
        keys: Arc<Keys>,
        topics: &Arc<Topics>,
        origin: PublisherId,
    ) -> Self {
        let (requests, waiting) = mpsc::channel(MAX_WAITING_SUBSCRIPTIONS);
        let (store, timeout) = (Arc::clone(&plan.store), plan.timeout);
        let topics = Arc::downgrade(topics);
        let task = SubscriberTask {
            plan,
            keys,
            topics,
            origin,
            waiting,
            known: BTreeSet::new(),
            was_connected: false,
        };
        Self { store, timeout, requests, _task: TaskGuard(tokio::spawn(task.run())) }
    }

    /// Returns when messages of other processes about a topic arrive.
    async fn subscribe(&self, topic: &str) -> Result<()> {
        let (done, confirmed) = oneshot::channel();
        let request = SubscribeRequest { topic: topic.to_owned(), done };
        self.requests.try_send(request).map_err(|_| {
            self.unavailable(&format!("{MAX_WAITING_SUBSCRIPTIONS} subscriptions wait for it"))
        })?;
        match timeout(self.timeout, confirmed).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(problem))) => Err(self.unavailable(&problem)),
            Ok(Err(_)) => Err(self.unavailable("the connection for subscriptions was lost")),
            Err(_) => {
                let limit = self.timeout;
                Err(self.unavailable(&format!("a subscription was not confirmed within {limit:?}")))
            }
        }
    }

    /// Nothing was changed: a subscription without a subscriber ends by itself.
    fn unavailable(&self, problem: &str) -> StateError {
        let store = Arc::clone(&self.store);
        StateError::Unavailable { store, problem: problem.into(), is_unknown: false }
    }
}

/// Keeps the connection for subscriptions open.
struct SubscriberTask {
    plan: Arc<ConnectPlan>,
    keys: Arc<Keys>,
    topics: Weak<Topics>,
    origin: PublisherId,
    waiting: mpsc::Receiver<SubscribeRequest>,
    /// The topics that the server knows of.
    known: BTreeSet<String>,
    /// Before the first connection no subscriber could miss a message.
    was_connected: bool,
}

impl SubscriberTask {
    async fn run(mut self) {
        let mut pause = ReconnectPause::default();
        loop {
            let failure = match self.plan.connect(Some(self.message_handler())).await {
                Err(failure) => failure.problem().to_owned(),
                Ok(mut open) => match self.subscribe_again(&mut open).await {
                    Err(problem) => problem.to_string(),
                    Ok(()) => {
                        pause = ReconnectPause::default();
                        self.serve(&mut open).await;
                        continue;
                    }
                },
            };
            self.refuse_requests(&failure, pause.wait()).await;
        }
    }

    fn message_handler(&self) -> PushHandler {
        let (keys, topics, origin) = (Arc::clone(&self.keys), self.topics.clone(), self.origin);
        Arc::new(move |push| {
            if let (Some(topics), Some((topic, message))) =
                (topics.upgrade(), parse_message(&keys, origin, &push))
            {
                topics.publish(topic, &message);
            }
        })
    }

    /// Subscribes to all topics that have subscribers, and tells these that they may have missed messages.
    async fn subscribe_again(
        &mut self,
        open: &mut OpenConnection,
    ) -> std::result::Result<(), Arc<str>> {
        let names = self.topics.upgrade().map(|topics| topics.names()).unwrap_or_default();
        self.known.clear();
        for names in names.chunks(TOPICS_PER_COMMAND) {
            let channels: Vec<_> = names.iter().map(|name| self.keys.channel(name)).collect();
            within(self.plan.timeout, open.connection.subscribe(channels)).await?;
            self.known.extend(names.iter().map(|name| name.to_string()));
        }
        if let Some(topics) = self.topics.upgrade().filter(|_| self.was_connected) {
            topics.notify_missed();
        }
        self.was_connected = true;
        Ok(())
    }

    /// Ends when the connection is lost.
    async fn serve(&mut self, open: &mut OpenConnection) {
        let mut periods = interval(CLEANUP_PERIOD);
        periods.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut count = 0u32;
        loop {
            let result = tokio::select! {
                _ = &mut open.task.0 => return,
                request = self.waiting.recv() => match request {
                    Some(request) => self.subscribe(open, request).await,
                    None => return,
                },
                _ = periods.tick() => {
                    count = count.wrapping_add(1);
                    self.clean_up(open, count.is_multiple_of(PERIODS_PER_PING)).await
                }
            };
            if result.is_err() {
                return;
            }
        }
    }

    async fn subscribe(
        &mut self,
        open: &mut OpenConnection,
        request: SubscribeRequest,
    ) -> std::result::Result<(), Arc<str>> {
        let mut result = Ok(());
        if !self.known.contains(&request.topic) {
            let channel = self.keys.channel(&request.topic);
            result = within(self.plan.timeout, open.connection.subscribe(channel)).await;
            if result.is_ok() {
                self.known.insert(request.topic);
            }
        }
        // The subscriber may have stopped waiting.
        let _ = request.done.send(result.clone());
        result
    }

    /// Gives up the topics without subscribers, and tests the connection.
    async fn clean_up(
        &mut self,
        open: &mut OpenConnection,
        is_tested: bool,
    ) -> std::result::Result<(), Arc<str>> {
        let Some(topics) = self.topics.upgrade() else { return Ok(()) };
        let unused = self.known.extract_if(.., |name| !topics.has_subscribers(name));
        let unused: Vec<_> =
            unused.take(TOPICS_PER_COMMAND).map(|name| self.keys.channel(&name)).collect();
        drop(topics);
        if !unused.is_empty() {
            within(self.plan.timeout, open.connection.unsubscribe(unused)).await?;
        }
        if is_tested {
            let ping = cmd("PING");
            within(self.plan.timeout, ping.query_async::<()>(&mut open.connection)).await?;
        }
        Ok(())
    }

    async fn refuse_requests(&mut self, problem: &str, pause: impl Future<Output = ()>) {
        let problem: Arc<str> = problem.into();
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => return,
                Some(request) = self.waiting.recv() => {
                    let _ = request.done.send(Err(Arc::clone(&problem)));
                }
            }
        }
    }
}

async fn within(
    limit: Duration,
    command: impl Future<Output = std::result::Result<(), RedisError>>,
) -> std::result::Result<(), Arc<str>> {
    match timeout(limit, command).await {
        Ok(result) => result.map_err(|error| error.to_string().into()),
        Err(_) => Err(format!("no response within {limit:?}").into()),
    }
}

/// The topic and the message of another process.
fn parse_message<'a>(
    keys: &Keys,
    origin: PublisherId,
    push: &'a PushInfo,
) -> Option<(&'a str, Bytes)> {
    if push.kind != PushKind::Message {
        return None;
    }
    let [Value::BulkString(channel), Value::BulkString(payload)] = push.data.as_slice() else {
        return None;
    };
    let (sender, message) = payload.split_first_chunk()?;
    let topic = keys.topic(std::str::from_utf8(channel).ok()?)?;
    (*sender != origin).then(|| (topic, Bytes::copy_from_slice(message)))
}
