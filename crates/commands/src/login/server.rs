//! The server that a verb about logins names: a URL, or an upstream of a configuration.

use std::path::Path;

use creole::client::oauth::{Login, LoginSettings, LoginStore};

use crate::failure::Failure;
use crate::login;
use crate::target::HttpTarget;

/// The server of a login.
pub(crate) struct LoginServer {
    pub(crate) target: HttpTarget,
    /// The settings of its configuration.
    pub(crate) settings: LoginSettings,
}

impl LoginServer {
    /// The server that the command line names.
    pub(crate) fn find(
        word: &str,
        _config: Option<&Path>,
        headers: &[String],
        cacert: Option<&Path>,
    ) -> Result<Self, Failure> {
        if !word.contains("://") {
            return Err(Failure::Usage(format!("invalid URL `{word}`")));
        }
        let target = HttpTarget::new(word, headers, cacert)?;
        Ok(Self { target, settings: LoginSettings::default() })
    }

    /// The stored logins of the server.
    pub(crate) fn stored_logins(&self, store: &LoginStore) -> Result<Vec<Login>, Failure> {
        let mut logins = login::stored_logins(store, &self.target.url)?;
        if let Some(id) = &self.settings.client_id {
            logins.retain(|login| login.client.id == *id);
        }
        Ok(logins)
    }

    /// The words that name the server on a command line.
    pub(crate) fn command_words(&self) -> String {
        login::shown_url(&self.target.url)
    }
}
