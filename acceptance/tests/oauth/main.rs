//! Logs in at `oidc-provider`, an authorization server of another author, and at one of our own that misbehaves.
//!
//! The first needs Node.js. If it cannot be installed, this is reported on stderr, and with `CI=true` the test fails.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod attacks;
mod limits;
mod person;
mod program;
mod refresh;

use std::sync::Arc;

use creole::client::oauth::{LoginKey, LoginMethod, LoginStore, OAuthCredentials, OAuthOptions};
use creole::client::{Address, Client, HttpAddress};
use creole::proto::fault::Fault;
use creole_acceptance::oauth::AutomaticPerson;
use creole_acceptance::peers::idp::provider;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder for logins.
fn store() -> (TempDir, LoginStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = LoginStore::new(folder.path().join("logins"));
    (folder, store)
}

/// The credentials of a person at a server.
fn person(url: &str, person: &AutomaticPerson, store: Option<&LoginStore>) -> OAuthCredentials {
    let mut options = OAuthOptions::new(LoginMethod::Person(Arc::new(person.clone())));
    options.store = store.cloned();
    OAuthCredentials::new("protected", url, options).unwrap()
}

/// The credentials of a program that only uses stored logins.
fn stored(url: &str, store: &LoginStore) -> OAuthCredentials {
    let mut options = OAuthOptions::new(LoginMethod::Stored);
    options.store = Some(store.clone());
    OAuthCredentials::new("protected", url, options).unwrap()
}

/// Connects with these credentials.
async fn connect(url: &str, credentials: &OAuthCredentials) -> Result<Client, Fault> {
    let address = HttpAddress::new("protected", url).unwrap();
    Client::connect(Address::Http(address.credentials(Arc::new(credentials.clone())))).await
}

/// Calls a tool without arguments, and returns the text of its result.
async fn call(client: &Client, tool: &str) -> Result<String, Fault> {
    Ok(client.call_tool(tool, &json!({})).await?.text())
}

/// What the server knows about the caller.
async fn whoami(client: &Client) -> Value {
    serde_json::from_str(&call(client, "whoami").await.unwrap()).unwrap()
}

/// The key of a login whose client is not configured.
fn key(url: &str) -> LoginKey {
    LoginKey::new(url, None)
}

/// Makes the access token of a stored login look expired.
async fn expire(store: &LoginStore, url: &str) {
    let locked = store.lock(&key(url)).await.unwrap();
    let mut login = locked.read().unwrap().unwrap();
    (login.created_at, login.expires_at) = (0, 1);
    locked.write(&login).unwrap();
}

/// The reason in the data of a fault.
fn reason(fault: &Fault) -> Value {
    let data: Value = fault.data.as_ref().unwrap().decode().unwrap();
    data["reason"].clone()
}
