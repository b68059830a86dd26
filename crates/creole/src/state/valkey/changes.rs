//! Changes by scripts. Each change deletes some of the expired data that an earlier one found, because a script must
//! know all of its keys before it runs.

use std::mem;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script, ScriptInvocation, Value, from_redis_value};

use super::super::StateError;
use super::ValkeyShared;

/// The result of a change.
pub(super) enum Change {
    /// Another writer was faster.
    Lost,
    /// There is no room, also after expired data was deleted.
    Full(StateError),
    /// The number that the change got, and further values of the script.
    Done(u64, Vec<Value>),
}

impl ValkeyShared {
    /// A call of a script that counts, about one key.
    pub(super) fn counting_call(
        &self,
        script: &'static Script,
        key: &str,
    ) -> ScriptInvocation<'static> {
        let mut call = script.prepare_invoke();
        for count in self.keys.counts() {
            call.key(count);
        }
        call.key(key);
        call
    }

    /// Makes a change, and once again after expired data was deleted if there is no room.
    pub(super) async fn change(
        &self,
        connection: &mut MultiplexedConnection,
        call: impl Fn() -> ScriptInvocation<'static> + Send,
    ) -> RedisResult<Change> {
        let mut expired = mem::take(&mut *self.expired.lock());
        let mut is_repeated = false;
        loop {
            let mut call = call();
            for key in &expired {
                call.key(key);
            }
            let mut reply = call.invoke_async::<Vec<Value>>(connection).await?.into_iter();
            let outcome: i64 = from_redis_value(reply.next().unwrap_or_default())?;
            if outcome == 0 {
                return Ok(Change::Lost);
            }
            let result = reply.next().unwrap_or_default();
            expired = from_redis_value(reply.next().unwrap_or_default())?;
            if outcome > 0 {
                *self.expired.lock() = expired;
                return Ok(Change::Done(from_redis_value(result)?, reply.collect()));
            }
            if is_repeated || expired.is_empty() {
                return Ok(Change::Full(self.full_error(&from_redis_value::<String>(result)?)));
            }
            is_repeated = true;
        }
    }

    fn full_error(&self, what: &str) -> StateError {
        let (kind, max) = match what {
            "entries" => ("values and leases", self.limits.entries),
            "logs" => ("logs", self.limits.logs),
            _ => ("bytes", self.limits.bytes),
        };
        StateError::Full { kind, max }
    }
}
