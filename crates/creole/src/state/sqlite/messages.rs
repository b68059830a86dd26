//! Messages between processes that share a file: a short table that each process reads from its last position.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::topics::Topics;
use super::super::{Result, StateError};
use super::{SqliteResult, in_read_transaction, signed};
use crate::random;

/// Maximum number of messages in the table, and their lifetime in milliseconds. A process that polls later than that
/// notifies its subscribers that they missed messages.
const MAX_MESSAGES: i64 = 1024;
const MAX_AGE_MS: i64 = 10_000;

/// Maximum number of messages per read.
const READ_BATCH: usize = 64;
const MAX_PAGES: usize = 16;

/// The read position of this process.
pub(super) struct MessageFeed {
    pub(super) topics: Arc<Topics>,
    /// Identifies this connection's messages, which its own subscribers already received.
    pub(super) origin: i64,
    last: i64,
}

struct MessagePage {
    messages: Vec<(String, Bytes)>,
    /// The last number of this page.
    last: i64,
    has_gap: bool,
    is_last: bool,
}

impl MessageFeed {
    pub(super) fn new(topics: Arc<Topics>) -> Result<Self> {
        let origin = random::random_bytes().map_err(|_| StateError::Stopped)?;
        Ok(Self { topics, origin: i64::from_ne_bytes(origin), last: 0 })
    }

    /// Delivers the messages that other connections have published since the last poll. Never call it inside a
    /// transaction that may be rolled back, since the numbers of a rollback are assigned again.
    pub(super) fn poll(&mut self, connection: &Connection) -> SqliteResult<()> {
        if self.topics.listener_count() == 0 {
            self.last = last_number(connection)?;
            return Ok(());
        }
        // At most the size of the table; an endless publisher cannot keep the thread here.
        for _ in 0..=MAX_PAGES {
            let page = in_read_transaction(connection, |moment| self.page(moment))?;
            if page.has_gap {
                self.topics.notify_missed();
            }
            for (topic, message) in page.messages {
                self.topics.publish(&topic, &message);
            }
            self.last = page.last;
            if page.is_last {
                break;
            }
        }
        Ok(())
    }

    fn page(&self, connection: &Connection) -> SqliteResult<MessagePage> {
        let head = last_number(connection)?;
        if head == self.last {
            return Ok(MessagePage { messages: vec![], last: head, has_gap: false, is_last: true });
        }
        let sql = "SELECT min(number) FROM messages WHERE number > ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let first: Option<i64> = statement.query_row([self.last], |row| row.get(0))?;
        let sql = "SELECT number, origin, topic, message FROM messages WHERE number > ?1
                   ORDER BY number LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.last, signed(READ_BATCH)])?;
        let (mut messages, mut count, mut last) = (vec![], 0, self.last);
        while let Some(row) = rows.next()? {
            count += 1;
            last = row.get(0)?;
            if row.get::<_, i64>(1)? != self.origin {
                messages.push((row.get(2)?, row.get::<_, Vec<u8>>(3)?.into()));
            }
        }
        let is_last = count < READ_BATCH;
        let last = if is_last { head } else { last };
        // A number that decreased means that the file was replaced.
        let has_gap = first != Some(self.last + 1);
        Ok(MessagePage { messages, last, has_gap, is_last })
    }
}

pub(super) fn publish(
    connection: &Connection,
    origin: i64,
    topic: &str,
    message: &Bytes,
    now: i64,
) -> SqliteResult<()> {
    sweep(connection, now, 8)?;
    let sql = "INSERT INTO messages (origin, topic, message, sent) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![origin, topic, &message[..], now])?;
    let sql = "DELETE FROM messages WHERE number <= ?1";
    connection.prepare_cached(sql)?.execute([connection.last_insert_rowid() - MAX_MESSAGES])?;
    Ok(())
}

pub(super) fn sweep(connection: &Connection, now: i64, max: usize) -> SqliteResult<()> {
    let sql = "DELETE FROM messages WHERE sent <= ?1 AND number IN
               (SELECT number FROM messages ORDER BY number LIMIT ?2)";
    connection
        .prepare_cached(sql)?
        .execute(params![now.saturating_sub(MAX_AGE_MS), signed(max)])?;
    Ok(())
}

/// The last assigned number.
fn last_number(connection: &Connection) -> SqliteResult<i64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'";
    let seq = connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
    Ok(seq.unwrap_or(0))
}
