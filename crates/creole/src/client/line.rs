//! The conversation of a client, which is opened anew once its server has forgotten it.

use std::sync::{PoisonError, RwLock};

use creole_proto::model::Level;
use creole_proto::revision::Era;
use tokio::sync::Mutex;

use super::connection::Connection;
use super::dialer::{Dialer, Offer};

/// The conversation of a client.
#[derive(Debug)]
pub(super) struct Line {
    now: RwLock<Connection>,
    /// How another one is opened, where there is a way to.
    again: Option<Redial>,
    level: Option<Level>,
    /// Held by the one who opens another.
    opening: Mutex<()>,
}

/// How another conversation is opened.
#[derive(Debug)]
pub(super) struct Redial {
    pub(super) dialer: Dialer,
    /// The era that is wanted.
    pub(super) era: Era,
    pub(super) offer: Offer,
}

impl Line {
    /// A conversation that was just opened, in which log messages from this level on are wanted.
    pub(super) async fn new(
        connection: Connection,
        again: Option<Redial>,
        level: Option<Level>,
    ) -> Self {
        let line = Self { now: RwLock::new(connection), again, level, opening: Mutex::default() };
        line.set_level().await;
        line
    }

    /// The conversation of now.
    pub(super) fn connection(&self) -> Connection {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens another conversation, if the server has forgotten this one and so has done nothing of what it was asked
    /// in it; tells whether there is another.
    pub(super) async fn renew(&self, lost: &Connection) -> bool {
        let Some(Redial { dialer, era, offer }) = &self.again else { return false };
        if !has_been_forgotten(lost) {
            return false;
        }
        let _alone = self.opening.lock().await;
        if !has_been_forgotten(&self.connection()) {
            // Somebody else was faster.
            return true;
        }
        let Ok(other) = dialer.connect_in(*era, offer).await else { return false };
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = other;
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

fn has_been_forgotten(connection: &Connection) -> bool {
    connection.is_closed().is_some_and(|closed| closed.session_lost)
}
