//! Messages between the processes of a cluster: a short table that each process reads from its last position.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::super::topics::{Subscription, Topics};
use super::super::{Result, StateError};
use super::connection::PostgresQuery;
use super::pool::PostgresPool;
use super::signed;
use crate::random;

/// The interval of polls while there are subscribers and no notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The same with notifications, each of which makes the next poll earlier: for a connection that fails silently.
const NOTIFIED_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of messages per read, and of reads per poll: together more than the table holds.
const READ_BATCH: usize = 64;
const MAX_PAGES: usize = 17;

const PUBLISH: PostgresQuery = PostgresQuery {
    sql: "SELECT creole.publish_message($1, $2, $3, $4)",
    types: &[Type::TEXT, Type::INT8, Type::BYTEA, Type::BYTEA],
    is_change: true,
};

const HEAD: PostgresQuery =
    PostgresQuery { sql: "SELECT creole.message_head($1)", types: &[Type::TEXT], is_change: true };

const NOTIFY: PostgresQuery = PostgresQuery {
    sql: "SELECT pg_notify('creole_' || $1, $2)",
    types: &[Type::TEXT, Type::TEXT],
    is_change: false,
};

/// One statement, so that the head and the messages are of one moment. Own messages were delivered already.
const READ: PostgresQuery = PostgresQuery {
    sql: "SELECT h.last, m.number, m.topic, m.message
          FROM creole.message_heads h LEFT JOIN LATERAL (
              SELECT n.number, CASE WHEN n.origin <> $3 THEN n.topic END AS topic,
                  CASE WHEN n.origin <> $3 THEN n.message END AS message
              FROM creole.messages n WHERE n.cluster = h.cluster AND n.number > $2 ORDER BY n.number LIMIT $4
          ) m ON true
          WHERE h.cluster = $1 ORDER BY m.number",
    types: &[Type::TEXT, Type::INT8, Type::INT8, Type::INT8],
    is_change: false,
};

/// The messages of this process and its read position.
#[derive(Debug)]
pub(super) struct MessageFeed {
    pool: Arc<PostgresPool>,
    topics: Arc<Topics>,
    /// Identifies the messages of this process, which its own subscribers already received.
    origin: i64,
    /// The number of the last message that was read. None while there are no subscribers.
    position: Mutex<Option<i64>>,
    /// There are messages, or the first subscriber.
    wake: Notify,
    /// Whether notifications arrive.
    is_notified: AtomicBool,
}

/// A part of the messages after a position.
struct MessagePage {
    messages: Vec<(String, Bytes)>,
    /// The last number of this page.
    last: i64,
    has_gap: bool,
    is_last: bool,
}

impl MessageFeed {
    pub(super) fn new(pool: Arc<PostgresPool>, topics: Arc<Topics>) -> Result<Self> {
        let origin = random::random_bytes().map_err(|_| StateError::Stopped)?;
        let origin = i64::from_ne_bytes(origin);
        Ok(Self {
            pool,
            topics,
            origin,
            position: Mutex::new(None),
            wake: Notify::new(),
            is_notified: AtomicBool::new(false),
        })
    }

    /// Publishes a message. The subscribers of this process receive it at once.
    pub(super) async fn publish(&self, topic: &str, message: &Bytes) -> Result<()> {
        let cluster = &*self.pool.settings().name;
        let sent = self
            .pool
            .query(&PUBLISH, &[&cluster, &self.origin, &topic.as_bytes(), &&message[..]])
            .await;
        match sent {
            Ok(_) => self.topics.publish(topic, message),
            // Other processes may receive it, and this one skips its own messages.
            Err(error) => {
                if error.is_unknown() {
                    self.topics.notify_missed();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Subscribes to a topic. Earlier messages are delivered to earlier subscribers only.
    pub(super) async fn subscribe(&self, topic: &str) -> Result<Subscription> {
        let limit = self.pool.settings().timeout;
        match timeout(limit, self.catch_up_and_subscribe(topic)).await {
            Ok(subscribed) => subscribed,
            Err(_) => {
                let problem = format!("the server did not answer within {limit:?}");
                Err(self.pool.unavailable(&problem))
            }
        }
    }

    async fn catch_up_and_subscribe(&self, topic: &str) -> Result<Subscription> {
        let mut position = self.position.lock().await;
        if !self.has_listeners() {
            *position = None;
        }
        self.poll(&mut position).await?;
        let subscription = self.topics.subscribe(topic)?;
        self.wake.notify_one();
        Ok(subscription)
    }

    /// Reads messages while there are subscribers.
    pub(super) async fn run(self: Arc<Self>) {
        let mut has_failed = false;
        loop {
            self.wait().await;
            let mut position = self.position.lock().await;
            if !self.has_listeners() {
                *position = None;
                continue;
            }
            let read = self.poll(&mut position).await;
            // Logged once, not with every attempt; unread messages are read later.
            if let Err(error) = &read
                && !has_failed
            {
                tracing::warn!(%error, "cannot read the messages of other replicas");
            }
            has_failed = read.is_err();
        }
    }

    /// Polls rarely from now on, or often if there are no notifications.
    pub(super) fn set_notified(&self, is_notified: bool) {
        if self.is_notified.swap(is_notified, Ordering::Relaxed) && !is_notified {
            self.wake();
        }
    }

    /// Sends a notification to itself, which shows that notifications arrive.
    pub(super) async fn notify_self(&self) -> Result<()> {
        let cluster = &*self.pool.settings().name;
        self.pool.query(&NOTIFY, &[&cluster, &self.origin.to_string()]).await.map(drop)
    }

    /// Reads soon, because there are new messages.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.topics.listener_count() > 0
    }

    /// Whether a notification is about a message of this process.
    pub(super) fn is_own(&self, payload: &str) -> bool {
        payload.parse() == Ok(self.origin)
    }

    pub(super) fn pool(&self) -> &PostgresPool {
        &self.pool
    }

    /// Without subscribers, nothing but the first one wakes the task.
    async fn wait(&self) {
        if self.has_listeners() {
            let interval = match self.is_notified.load(Ordering::Relaxed) {
                true => NOTIFIED_POLL_INTERVAL,
                false => POLL_INTERVAL,
            };
            // Both outcomes are a reason to read.
            let _ = timeout(interval, self.wake.notified()).await;
        } else {
            self.wake.notified().await;
        }
    }

    /// Delivers the messages after the position. An error leaves the position at the last delivered message.
    async fn poll(&self, position: &mut Option<i64>) -> Result<()> {
        // An endless publisher cannot keep the task here.
        for _ in 0..MAX_PAGES {
            let Some(last) = *position else {
                *position = Some(self.head().await?);
                return Ok(());
            };
            let Some(page) = self.page(last).await? else {
                // A crash of the server emptied the tables. The next head is far from every earlier number.
                self.topics.notify_missed();
                *position = None;
                continue;
            };
            if page.has_gap {
                self.topics.notify_missed();
            }
            for (topic, message) in page.messages {
                self.topics.publish(&topic, &message);
            }
            *position = Some(page.last);
            if page.is_last {
                break;
            }
        }
        Ok(())
    }

    async fn head(&self) -> Result<i64> {
        let cluster = &*self.pool.settings().name;
        let rows = self.pool.query(&HEAD, &[&cluster]).await?;
        let row = rows.first().ok_or_else(|| self.pool.unavailable("there is no message head"))?;
        self.column(row, 0)
    }

    /// The next messages; `None` when the server has lost its messages.
    async fn page(&self, after: i64) -> Result<Option<MessagePage>> {
        let cluster = &*self.pool.settings().name;
        let parameters = (after, self.origin, signed(READ_BATCH));
        let rows = self
            .pool
            .query(&READ, &[&cluster, &parameters.0, &parameters.1, &parameters.2])
            .await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let head: i64 = self.column(first, 0)?;
        let (mut messages, mut last, mut count) = (Vec::new(), after, 0);
        let first_number: Option<i64> = self.column(first, 1)?;
        for row in &rows {
            let Some(number) = self.column(row, 1)? else { continue };
            (last, count) = (number, count + 1);
            let topic: Option<Vec<u8>> = self.column(row, 2)?;
            let message: Option<Vec<u8>> = self.column(row, 3)?;
            let topic = topic.and_then(|topic| String::from_utf8(topic).ok());
            if let (Some(topic), Some(message)) = (topic, message) {
                messages.push((topic, Bytes::from(message)));
            }
        }
        let is_last = count < READ_BATCH;
        // A head that is lower than the position means that the tables were emptied and the clock was set back.
        let has_gap = match first_number {
            Some(number) => number != after.saturating_add(1),
            None => head != after,
        };
        let last = if is_last { head } else { last };
        Ok(Some(MessagePage { messages, last, has_gap, is_last }))
    }

    fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
        &self,
        row: &'a Row,
        index: usize,
    ) -> Result<T> {
        self.pool.column(row, index)
    }
}
