//! The use of the store by credentials. Reading and writing files happens on threads that may block.

use std::sync::Arc;

use creole_oauth::tokens::client::OAuthClient;
use creole_oauth::tokens::login::Login;

use super::fault::LoginFailure;
use super::store::{LockedLogin, LoginKey, LoginStore, StoreError};

/// The store of one login, if there is one.
#[derive(Clone, Debug)]
pub(super) struct StoreAccess {
    pub(super) store: Option<LoginStore>,
    pub(super) key: LoginKey,
}

impl StoreAccess {
    /// The stored login.
    pub(super) async fn read(&self) -> Result<Option<Login>, LoginFailure> {
        let key = self.key.clone();
        Ok(self.run(move |store| store.read(&key)).await?.flatten())
    }

    /// The lock of the login; `None` without a store.
    pub(super) async fn lock(&self) -> Result<Option<LockedLogin>, LoginFailure> {
        match &self.store {
            Some(store) => Ok(Some(store.lock(&self.key).await?)),
            None => Ok(None),
        }
    }

    /// The lock of the question to the person; `None` without a store.
    pub(super) async fn lock_prompt(&self) -> Result<Option<LockedLogin>, LoginFailure> {
        match &self.store {
            Some(store) => Ok(Some(store.lock_prompt(&self.key).await?)),
            None => Ok(None),
        }
    }

    /// The stored registrations.
    pub(super) async fn clients(&self) -> Result<Vec<(String, OAuthClient)>, LoginFailure> {
        Ok(self.run(|store| store.clients()).await?.unwrap_or_default())
    }

    /// Stores the registration at an issuer, or deletes it.
    pub(super) async fn set_client(
        &self,
        issuer: &str,
        client: Option<&OAuthClient>,
    ) -> Result<(), LoginFailure> {
        let (issuer, client) = (issuer.to_owned(), client.cloned());
        self.run(move |store| store.set_client(&issuer, client.as_ref())).await.map(drop)
    }

    /// Uses the store on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        use_store: impl FnOnce(LoginStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, LoginFailure> {
        let Some(store) = self.store.clone() else { return Ok(None) };
        // A panic or the end of the runtime counts as a store without this value.
        let used = tokio::task::spawn_blocking(move || use_store(store)).await;
        Ok(used.ok().transpose()?)
    }
}

/// Writes a login under its lock, on a thread that may block.
pub(super) async fn write(locked: &Arc<LockedLogin>, login: &Login) -> Result<(), LoginFailure> {
    let (locked, login) = (Arc::clone(locked), login.clone());
    match tokio::task::spawn_blocking(move || locked.write(&login)).await {
        Ok(written) => Ok(written?),
        // The runtime ends.
        Err(_) => Ok(()),
    }
}
