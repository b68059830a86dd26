//! Logs in the server.

use std::time::Duration;

use bytes::Bytes;
use redis::{Value, from_redis_value};

use super::super::{LogRetention, Result, StateError, StateLimits};
use super::changes::Change;
use super::{ValkeyState, milliseconds, scripts, time_argument};

/// The largest number that a script can compare exactly.
const MAX_EXACT: u64 = 1 << 53;

impl ValkeyState {
    pub(in super::super) async fn append(
        &self,
        log: &str,
        entry: Bytes,
        keep: LogRetention,
        given: Option<Duration>,
    ) -> Result<u64> {
        let shared = &self.shared;
        let limits = shared.limits;
        let (key, time, ttl) = (shared.keys.log(log), time_argument(given), milliseconds(keep.ttl));
        let call = || {
            let mut call = shared.counting_call(&scripts::APPEND, &key);
            call.arg(&time).arg(limits.bytes).arg(limits.logs).arg(&entry[..]);
            call.arg(ttl).arg(keep.entries).arg(entry.len() + StateLimits::OVERHEAD);
            call
        };
        let appending = |mut connection| async move { shared.change(&mut connection, call).await };
        match shared.commands.run(appending).await? {
            Change::Done(number, _) => Ok(number),
            Change::Full(error) => Err(error),
            Change::Lost => Err(shared.unreadable("a log cannot be lost to another writer")),
        }
    }

    pub(in super::super) async fn read_after(
        &self,
        log: &str,
        after: u64,
        max: usize,
        given: Option<Duration>,
    ) -> Result<Vec<(u64, Bytes)>> {
        let keys = &self.shared.keys;
        let mut call = scripts::READ.key(keys.last_numbers());
        call.key(keys.log(log)).arg(time_argument(given)).arg(after.min(MAX_EXACT)).arg(max);
        let (outcome, result): (i64, Value) = self.call(call).await?;
        if outcome < 0 {
            let resume_after = self.shared.parsed(from_redis_value(result))?;
            return Err(StateError::Trimmed { resume_after });
        }
        let entries: Vec<Vec<u8>> = self.shared.parsed(from_redis_value(result))?;
        Ok((after.saturating_add(1)..).zip(entries.into_iter().map(Bytes::from)).collect())
    }

    pub(in super::super) async fn remove_log(
        &self,
        log: &str,
        given: Option<Duration>,
    ) -> Result<bool> {
        let key = self.shared.keys.log(log);
        let mut call = self.shared.counting_call(&scripts::REMOVE_LOG, &key);
        call.arg(time_argument(given));
        self.call(call).await
    }
}
