//! Keyed values and leases in the server.

use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, ScriptInvocation, Value, cmd, from_redis_value};

use super::super::{Condition, Namespace, Result, StateLimits, StoredEntry};
use super::changes::Change;
use super::{ValkeyShared, ValkeyState, scripts, time_argument, ttl_argument};

/// How long replicas have to acknowledge a conditional write.
const MAX_REPLICA_WAIT_MS: u32 = 500;

/// A write, as its script needs it.
struct PendingEntry {
    space: Namespace,
    key: String,
    condition: Condition,
    value: Bytes,
    ttl: String,
    time: String,
}

/// The result of a write.
enum Written {
    Change(Change),
    /// Too few replicas acknowledged it.
    Unacknowledged(u32),
}

impl ValkeyState {
    pub(in super::super) async fn get(
        &self,
        space: Namespace,
        key: &str,
        given: Option<Duration>,
    ) -> Result<Option<StoredEntry>> {
        let mut call = scripts::GET.key(self.shared.keys.entry(space, key));
        call.arg(time_argument(given));
        let found: Vec<Value> = self.call(call).await?;
        let mut found = found.into_iter();
        let (Some(Value::BulkString(value)), Some(version)) = (found.next(), found.next()) else {
            return Ok(None);
        };
        let version = self.shared.parsed(from_redis_value(version))?;
        Ok(Some(StoredEntry { value: value.into(), version }))
    }

    pub(in super::super) async fn write(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        value: Bytes,
        ttl: Option<Duration>,
        given: Option<Duration>,
    ) -> Result<Option<u64>> {
        let (key, ttl, time) = (key.to_owned(), ttl_argument(ttl), time_argument(given));
        let pending = PendingEntry { space, key, condition, value, ttl, time };
        let shared = &self.shared;
        let written =
            shared.commands.run(|connection| shared.write_entry(connection, pending)).await?;
        match written {
            Written::Change(Change::Lost) => Ok(None),
            Written::Change(Change::Full(error)) => Err(error),
            Written::Change(Change::Done(version, _)) => Ok(Some(version)),
            Written::Unacknowledged(count) => {
                let wanted = shared.settings.wait_replicas;
                let problem = format!("{count} of {wanted} replicas acknowledged a write");
                Err(shared.commands.unavailable(&problem, true))
            }
        }
    }

    pub(in super::super) async fn touch(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
        given: Option<Duration>,
    ) -> Result<bool> {
        let key = self.shared.keys.entry(space, key);
        let mut call = self.shared.counting_call(&scripts::TOUCH, &key);
        call.arg(time_argument(given)).arg(condition_argument(condition)).arg(ttl_argument(ttl));
        self.call(call).await
    }

    pub(in super::super) async fn remove(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        given: Option<Duration>,
    ) -> Result<bool> {
        self.call(self.shared.removal(space, key, condition, &time_argument(given))).await
    }
}

impl ValkeyShared {
    async fn write_entry(
        &self,
        mut connection: MultiplexedConnection,
        pending: PendingEntry,
    ) -> RedisResult<Written> {
        let wanted = self.settings.wait_replicas;
        let is_guarded = wanted > 0 && pending.condition != Condition::Any;
        let call = || self.write_call(&pending, is_guarded);
        let change = self.change(&mut connection, call).await?;
        let Change::Done(version, previous) = change else { return Ok(Written::Change(change)) };
        if is_guarded {
            let mut wait = cmd("WAIT");
            wait.arg(wanted).arg(MAX_REPLICA_WAIT_MS);
            let count: u32 = wait.query_async(&mut connection).await?;
            if count < wanted {
                self.undo_write(&mut connection, pending, version, previous).await?;
                return Ok(Written::Unacknowledged(count));
            }
        }
        Ok(Written::Change(Change::Done(version, vec![])))
    }

    fn write_call(&self, pending: &PendingEntry, is_guarded: bool) -> ScriptInvocation<'static> {
        let cost = pending.key.len() + pending.value.len() + StateLimits::OVERHEAD;
        let key = self.keys.entry(pending.space, &pending.key);
        let mut call = self.counting_call(&scripts::WRITE, &key);
        call.arg(&pending.time).arg(self.limits.bytes).arg(self.limits.entries);
        call.arg(condition_argument(pending.condition)).arg(&pending.value[..]);
        call.arg(&pending.ttl).arg(cost).arg(if is_guarded { "1" } else { "" });
        call
    }

    fn removal(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        time: &str,
    ) -> ScriptInvocation<'static> {
        let mut call = self.counting_call(&scripts::REMOVE, &self.keys.entry(space, key));
        call.arg(time).arg(condition_argument(condition));
        call
    }

    /// Restores the value before a write, unless another writer has changed it since.
    async fn undo_write(
        &self,
        connection: &mut MultiplexedConnection,
        written: PendingEntry,
        version: u64,
        previous: Vec<Value>,
    ) -> RedisResult<()> {
        let condition = Condition::Version(version);
        let mut previous = previous.into_iter();
        let value: Option<Vec<u8>> = from_redis_value(previous.next().unwrap_or_default())?;
        let ttl: String = from_redis_value(previous.next().unwrap_or_default())?;
        let call = match value {
            None => self.removal(written.space, &written.key, condition, &written.time),
            Some(value) => {
                let value = value.into();
                self.write_call(&PendingEntry { condition, value, ttl, ..written }, false)
            }
        };
        call.invoke_async::<Value>(connection).await.map(drop)
    }
}

/// `*` for any version, nothing for none. Versions of the store are texts.
fn condition_argument(condition: Condition) -> String {
    match condition {
        Condition::Any => "*".to_owned(),
        Condition::Absent => String::new(),
        Condition::Version(version) => version.to_string(),
    }
}
