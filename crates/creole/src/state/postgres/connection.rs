//! One connection to the server, with its prepared statements.

use std::collections::HashMap;

use tokio::task::AbortHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use super::super::store_clock::StoreClock;
use super::failure::ConnectFailure;
use super::schema;
use super::session::{SessionSettings, refuses_settings};
use super::settings::{CheckedSettings, PostgresServer};

/// A statement with the types of its parameters.
#[derive(Debug)]
pub(super) struct PostgresQuery {
    pub(super) sql: &'static str,
    pub(super) types: &'static [Type],
    /// Whether it may change something.
    pub(super) is_change: bool,
}

pub(super) type StatementParameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection for exclusive use. Dropping it closes it.
#[derive(Debug)]
pub(super) struct PostgresConnection {
    client: Client,
    driver: AbortHandle,
    statements: HashMap<&'static str, Statement>,
    /// A pooler may run each statement on another connection, so nothing is prepared.
    is_pooled: bool,
    /// Whether the database was read-only when it was prepared.
    is_read_only: bool,
}

impl PostgresConnection {
    /// Opens a connection. `is_pooled` says whether the address is known to be that of a pooler.
    pub(super) async fn open(
        settings: &CheckedSettings,
        is_pooled: bool,
        clock: &StoreClock,
    ) -> Result<Self, ConnectFailure> {
        let session = SessionSettings::new(settings.timeout).map_err(|_| {
            ConnectFailure::Unreachable("the system provides no random bytes".to_owned())
        })?;
        let connecting = match Self::connect(settings, (!is_pooled).then_some(&session)).await {
            Err(error) if refuses_settings(&error) => Self::connect(settings, None).await,
            connected => connected,
        };
        let mut opened = connecting.map_err(|error| ConnectFailure::of(&error))?;
        opened.is_read_only = schema::prepare(&opened.client).await?;
        clock.read(&settings.store, || schema::server_time(&opened.client)).await;
        Ok(opened)
    }

    /// Connects. Without a session, or with one that is not kept, it is a connection to a pooler.
    async fn connect(
        settings: &CheckedSettings,
        session: Option<&SessionSettings>,
    ) -> Result<Self, Error> {
        let PostgresServer { config, tls } = &settings.server;
        let (client, connection) = match session {
            Some(session) => session.apply(config).connect(tls.clone()).await?,
            None => config.connect(tls.clone()).await?,
        };
        // Its error is also that of the running statement.
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        let statements = HashMap::new();
        let mut opened = Self { client, driver, statements, is_pooled: true, is_read_only: false };
        if let Some(session) = session {
            opened.is_pooled = !session.are_kept(&opened.client).await?;
        }
        Ok(opened)
    }

    /// Whether it is a connection to a pooler.
    pub(super) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Gets ready for a statement, without running it: nothing of a change is sent yet.
    pub(super) async fn get_ready(&mut self, query: &PostgresQuery) -> Result<(), ConnectFailure> {
        if query.is_change && self.is_read_only {
            self.is_read_only = schema::prepare(&self.client).await?;
        }
        if !self.is_pooled && !self.statements.contains_key(query.sql) {
            let prepared = self.client.prepare_typed(query.sql, query.types).await;
            let statement = prepared.map_err(|error| ConnectFailure::of(&error))?;
            self.statements.insert(query.sql, statement);
        }
        Ok(())
    }

    /// Runs a statement in one round trip.
    pub(super) async fn run(
        &self,
        query: &PostgresQuery,
        parameters: StatementParameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        match self.statements.get(query.sql) {
            Some(statement) => self.client.query(statement, parameters).await,
            None => {
                let typed: Vec<_> =
                    parameters.iter().copied().zip(query.types.iter().cloned()).collect();
                self.client.query_typed(query.sql, &typed).await
            }
        }
    }
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        // Otherwise it would wait for the response to an abandoned statement.
        self.driver.abort();
    }
}
