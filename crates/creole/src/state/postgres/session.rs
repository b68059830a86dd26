//! The settings that a connection needs of its session, and whether it has a session of its own: behind a connection
//! pooler, the next transaction may run on another connection to the server.

use std::time::Duration;

use creole_proto::wire::hex;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Error};

use crate::random::{NoRandomBytes, random_bytes};

/// A setting of no meaning to the server, whose value tells the sessions of connections apart.
const MARK_SETTING: &str = "creole.session";

/// The settings of a session, which the server gets when the connection is opened.
///
/// They are never set by a statement: behind a pooler, another program would get a connection with these settings.
#[derive(Debug)]
pub(super) struct SessionSettings {
    options: String,
    mark: String,
}

impl SessionSettings {
    /// The server ends a statement that the client no longer waits for. The functions need a new snapshot after each lock.
    pub(super) fn new(timeout: Duration) -> Result<Self, NoRandomBytes> {
        let (milliseconds, mark) = (timeout.as_millis().max(1), hex(&random_bytes::<8>()?));
        let options = format!(
            "-c statement_timeout={milliseconds} -c idle_in_transaction_session_timeout={milliseconds} \
             -c default_transaction_isolation=read\\ committed -c {MARK_SETTING}={mark}"
        );
        Ok(Self { options, mark })
    }

    /// How to connect with these settings, and with those of the address.
    pub(super) fn apply(&self, config: &Config) -> Config {
        let mut config = config.clone();
        let own = config.get_options().map(|own| format!("{own} ")).unwrap_or_default();
        config.options(format!("{own}{}", self.options));
        config
    }

    /// Whether the server has these settings. A pooler that ignored them, or that gives a connection which another client
    /// opened, has no session for this one.
    pub(super) async fn are_kept(&self, client: &Client) -> Result<bool, Error> {
        let (sql, name) = ("SELECT current_setting($1, true)", &MARK_SETTING);
        let row = client.query_typed_one(sql, &[(name, Type::TEXT)]).await?;
        let found: Option<String> = row.try_get(0)?;
        Ok(found.as_deref() == Some(&*self.mark))
    }
}

/// Whether a connection was refused because of the settings. Poolers refuse them in different words, as a violation of
/// the protocol or as something that they do not support.
pub(super) fn refuses_settings(error: &Error) -> bool {
    error.code().is_some_and(|code| ["08", "0A"].iter().any(|class| code.code().starts_with(class)))
}
