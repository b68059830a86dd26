//! A client's connection that is opened again after its server lost the session.

use crate::sync::RwLock;

use creole_proto::model::Level;
use creole_proto::revision::Era;
use tokio::sync::Mutex;

use crate::client::connection::Connection;
use crate::client::connector::{ClientOffer, Connector};

/// The current connection of a client.
#[derive(Debug)]
pub(crate) struct ReconnectingConnection {
    current: RwLock<Connection>,
    /// How a new connection is opened, if that is possible.
    reconnect_settings: Option<ReconnectSettings>,
    level: Option<Level>,
    /// Held while a new connection is being opened.
    reconnect_lock: Mutex<()>,
}

/// The settings for a new connection.
#[derive(Debug)]
pub(crate) struct ReconnectSettings {
    pub(crate) connector: Connector,
    /// The preferred era.
    pub(crate) era: Era,
    pub(crate) offer: ClientOffer,
}

impl ReconnectingConnection {
    /// Wraps a new connection; log messages from this level on are requested.
    pub(crate) async fn new(
        connection: Connection,
        reconnect: Option<ReconnectSettings>,
        level: Option<Level>,
    ) -> Self {
        let line = Self {
            current: RwLock::new(connection),
            reconnect_settings: reconnect,
            level,
            reconnect_lock: Mutex::default(),
        };
        line.set_level().await;
        line
    }

    /// The current connection.
    pub(crate) fn connection(&self) -> Connection {
        self.current.read().clone()
    }

    /// Opens a new connection, if the server lost the session of this one. Returns whether there is a new one.
    pub(crate) async fn reconnect(&self, lost: &Connection) -> bool {
        let Some(ReconnectSettings { connector, era, offer }) = &self.reconnect_settings else {
            return false;
        };
        if !is_session_lost(lost) {
            return false;
        }
        let _alone = self.reconnect_lock.lock().await;
        if !is_session_lost(&self.connection()) {
            // Another task was faster.
            return true;
        }
        let Ok(other) = connector.connect_in(*era, offer).await else { return false };
        *self.current.write() = other;
        self.set_level().await;
        true
    }

    async fn set_level(&self) {
        let connection = self.connection();
        let has_levels = connection.greeting().server_info.capabilities.logging;
        if let Some(level) = self.level.filter(|_| has_levels) {
            connection.set_level(level).await;
        }
    }
}

fn is_session_lost(connection: &Connection) -> bool {
    connection.close_reason().is_some_and(|closed| closed.session_lost)
}
