//! A state in a Valkey or Redis server, which several machines share.
//!
//! Each operation is one script, so it happens as a whole or not at all. One connection carries the commands and one
//! the messages; both are opened again when they are lost. An operation is sent at most once.

mod address;
mod changes;
mod commands;
mod connect;
mod entries;
mod failure;
mod keys;
mod logs;
mod messages;
mod reconnect_pause;
mod scripts;
mod server_check;
mod settings;

#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod network_tests;
#[cfg(test)]
mod start_tests;
#[cfg(test)]
pub(super) mod test_server;

use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, ScriptInvocation};

use super::store_clock::StoreClock;
use super::topics::Topics;
use super::{Result, StateError, StateLimits};
use crate::random;
use crate::sync::Mutex;
use commands::Commands;
use connect::ConnectPlan;
use failure::ConnectFailure;
use keys::Keys;
use messages::{PublisherId, Subscriber};
pub use settings::{ValkeySentinel, ValkeySettings};

/// A handle to the connections, which end with the last handle.
#[derive(Clone, Debug)]
pub(super) struct ValkeyState {
    shared: Arc<ValkeyShared>,
}

#[derive(Debug)]
struct ValkeyShared {
    settings: ValkeySettings,
    limits: StateLimits,
    keys: Arc<Keys>,
    commands: Commands,
    subscriber: Subscriber,
    topics: Arc<Topics>,
    origin: PublisherId,
    /// The keys of expired data, which the next change deletes.
    expired: Mutex<Vec<Vec<u8>>>,
}

impl ValkeyState {
    /// Connects. A server that cannot be reached is tried again later.
    pub(super) async fn open(settings: ValkeySettings, limits: StateLimits) -> Result<Self> {
        let store: Arc<str> = settings.address.as_str().into();
        let refused = |problem: String| StateError::Misconfigured {
            store: Arc::clone(&store),
            problem: problem.into(),
        };
        let keys = Arc::new(Keys::new(&settings.name).map_err(refused)?);
        let plan = ConnectPlan::new(&settings, keys.any().to_owned()).map_err(refused)?;
        let plan = Arc::new(plan);
        let origin = random::random_bytes()
            .map_err(|_| refused("the system provides no random bytes".to_owned()))?;
        let commands = match Commands::start(Arc::clone(&plan)).await {
            Ok(commands) => commands,
            Err(ConnectFailure::Refused(problem) | ConnectFailure::Unreachable(problem)) => {
                return Err(refused(problem));
            }
        };
        let topics = Arc::new(Topics::new(limits));
        let subscriber = Subscriber::start(plan, Arc::clone(&keys), &topics, origin);
        let expired = Mutex::default();
        let shared =
            ValkeyShared { settings, limits, keys, commands, subscriber, topics, origin, expired };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The clock of the server.
    pub(super) fn clock(&self) -> &StoreClock {
        self.shared.commands.clock()
    }

    /// Runs a script.
    async fn call<T: FromRedisValue>(&self, call: ScriptInvocation<'static>) -> Result<T> {
        let calling = |mut connection| async move { call.invoke_async(&mut connection).await };
        self.shared.commands.run(calling).await
    }
}

impl ValkeyShared {
    fn parsed<T>(&self, parsed: std::result::Result<T, ParsingError>) -> Result<T> {
        parsed.map_err(|error| self.unreadable(&error.to_string()))
    }

    /// The error of a result that no script of this version returns.
    fn unreadable(&self, problem: &str) -> StateError {
        self.commands.unavailable(&format!("its response is not understood: {problem}"), true)
    }
}

impl ValkeySettings {
    /// Checks the settings without a connection.
    ///
    /// # Errors
    /// The reason, which contains no secret.
    pub fn check(&self) -> std::result::Result<(), String> {
        let keys = Keys::new(&self.name)?;
        ConnectPlan::new(self, keys.any().to_owned()).map(drop)
    }
}

/// The time that a test gives, in microseconds; otherwise the server's clock decides.
fn time_argument(given: Option<Duration>) -> String {
    given.map(|time| time.as_micros().to_string()).unwrap_or_default()
}

/// A time to live in milliseconds; nothing for data that does not expire.
fn ttl_argument(ttl: Option<Duration>) -> String {
    ttl.map(|ttl| milliseconds(ttl).to_string()).unwrap_or_default()
}

/// Rounded up, so that nothing expires too early.
fn milliseconds(ttl: Duration) -> u64 {
    let partial = u64::from(!ttl.subsec_nanos().is_multiple_of(1_000_000));
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).saturating_add(partial)
}
