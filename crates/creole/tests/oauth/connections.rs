//! Connections to a server that requires a login: what they declare, how long they wait, and what they find out.

use std::sync::Arc;
use std::time::Duration;

use creole::client::oauth::{
    LoginMethod, LoginRequirement, LoginSettings, OAuthCredentials, OAuthError, OAuthOptions, Pkce,
    ProgramGrant, SecretText, login_requirement,
};
use creole::client::{Address, Client, ClientBuilder, HttpAddress};
use creole::proto::client::ClientLimits;
use creole::proto::fault::Fault;
use creole::proto::revision::Revision;
use serde_json::json;

use super::authorization_server::AuthorizationServer;
use super::support::{Asking, Person, options};

/// Connects in a session of 2025-11-25. A silent server is waited for this long.
async fn connect(
    server: &AuthorizationServer,
    options: OAuthOptions,
    silence: Duration,
) -> Result<Client, Fault> {
    let credentials = OAuthCredentials::new("site", &server.url(), options).unwrap();
    let address = HttpAddress::new("site", &server.url()).unwrap();
    let address = address.credentials(Arc::new(credentials));
    let limits = ClientLimits { call_idle_timeout: silence, ..ClientLimits::default() };
    let builder = ClientBuilder::new("test", "1").limits(limits).revision(Revision::V2025_11_25);
    builder.connect(Address::Http(address)).await
}

#[tokio::test]
async fn a_program_declares_the_extension_of_its_grant() {
    let server = AuthorizationServer::start().await;
    let mut options =
        OAuthOptions::new(LoginMethod::Program(Arc::new(ProgramGrant::ClientCredentials)));
    options.settings.client_id = Some("program".to_owned());
    options.settings.client_secret = Some(SecretText::new("secret-canary"));
    connect(&server, options, Duration::from_secs(60)).await.unwrap();
    let messages = server.messages();
    let opening = messages.iter().rfind(|it| it["method"] == "initialize").unwrap();
    let declared = &opening["params"]["capabilities"]["extensions"];
    assert_eq!(*declared, json!({"io.modelcontextprotocol/oauth-client-credentials": {}}));
}

#[tokio::test]
async fn a_call_waits_longer_for_a_person_than_for_the_server() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::new(Person::taking(Duration::from_secs(2)));
    let method = LoginMethod::Person(Arc::new(Asking(Arc::clone(&person))));
    let silence = Duration::from_secs(1);
    let client = connect(&server, options(method, folder.path()), silence).await.unwrap();
    assert_eq!(person.asked(), 1);
    server.demand_for_tools(2);
    let called = client.call_tool("write", &json!({})).await.unwrap();
    assert_eq!(called.content().unwrap().len(), 1);
    assert_eq!(person.asked(), 2);
}

#[tokio::test]
async fn a_server_says_which_login_it_requires() {
    let server = AuthorizationServer::start().await;
    let address =
        |path: &str| HttpAddress::new("site", &format!("{}{path}", server.origin)).unwrap();
    let settings = LoginSettings::default();
    let found = match login_requirement(&address("/mcp"), &settings, None).await.unwrap() {
        LoginRequirement::Required(found) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!((&found.server.issuer, found.server.pkce), (&server.origin, Pkce::S256));
    assert!(found.has_resource_metadata && found.server.registration_endpoint.is_some());
    let open = login_requirement(&address("/elsewhere"), &settings, None).await.unwrap();
    assert_eq!(open, LoginRequirement::NotRequired);
    let mut pinned = LoginSettings::default();
    pinned.issuer = Some("https://id.example.com".to_owned());
    let other = login_requirement(&address("/mcp"), &pinned, None).await.unwrap();
    let is_other = matches!(other, LoginRequirement::Unusable(OAuthError::OtherIssuer { .. }));
    assert!(is_other, "{other:?}");
    // Nothing was registered or requested.
    assert_eq!((server.count("/register"), server.count("/token")), (0, 0));
}
