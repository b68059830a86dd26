//! Opens a state on each of the backends.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(any(feature = "postgres", feature = "sqlite", feature = "valkey"))]
use super::Result;
use super::clock::Clock;
use super::memory::MemoryState;
#[cfg(feature = "postgres")]
use super::postgres::{PostgresSettings, PostgresState};
#[cfg(feature = "sqlite")]
use super::sqlite::SqliteState;
#[cfg(feature = "valkey")]
use super::valkey::{ValkeySettings, ValkeyState};
use super::{Backend, State, StateLimits};

impl Default for State {
    fn default() -> Self {
        Self::memory(StateLimits::default())
    }
}

impl State {
    /// A state that lives as long as the process.
    #[must_use]
    pub fn memory(limits: StateLimits) -> Self {
        Self::new(Backend::Memory(Arc::new(MemoryState::new(limits))), limits, Clock::process())
    }

    /// A state in an SQLite file, which is created if it does not exist. Several processes of one machine may share it;
    /// a file on a network drive cannot be shared safely.
    ///
    /// Acknowledged writes survive `kill -9` and a power failure. Expiry uses the system clock, because it must hold
    /// for the next process too: setting the clock forward expires young entries.
    ///
    /// # Errors
    /// When the file cannot be opened, is damaged, belongs to another program or to a newer version. The file is then
    /// left unchanged.
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(path: impl Into<PathBuf>, limits: StateLimits) -> Result<Self> {
        let sqlite = SqliteState::open(path.into(), limits).await?;
        Ok(Self::new(Backend::Sqlite(sqlite), limits, Clock::System))
    }

    /// A state in a Valkey or Redis server, which several machines may share. Expiry uses the server's clock.
    ///
    /// What survives a failure of the server depends on its persistence and replication. A server that cannot be
    /// reached is tried again, and until then operations fail with
    /// [`StateError::Unavailable`](super::StateError::Unavailable).
    ///
    /// # Errors
    /// When the settings have no meaning, or the server refuses the password or may lose data by its settings.
    #[cfg(feature = "valkey")]
    pub async fn valkey(settings: ValkeySettings, limits: StateLimits) -> Result<Self> {
        let valkey = ValkeyState::open(settings, limits).await?;
        Ok(Self::new(Backend::Valkey(valkey), limits, Clock::Store))
    }

    /// A state in a PostgreSQL database, which several machines may share.
    ///
    /// The database is created before; its schema `creole` is created with the first connection. The server need not be
    /// reachable yet: operations fail with [`StateError::Unavailable`](super::StateError::Unavailable) until it is.
    /// Values expire by the clock of the server. Writers of several processes at a time may exceed the limits by what
    /// they write at that moment.
    ///
    /// # Errors
    /// When the settings are invalid, the server refuses the user or the encryption, or a newer version wrote the
    /// schema. The database is then left unchanged.
    #[cfg(feature = "postgres")]
    pub async fn postgres(settings: PostgresSettings, limits: StateLimits) -> Result<Self> {
        let postgres = PostgresState::open(&settings, limits).await?;
        Ok(Self::new(Backend::Postgres(postgres), limits, Clock::Store))
    }
}
