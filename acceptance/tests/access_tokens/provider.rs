//! Tokens of a real authorization server, `oidc-provider`.
//!
//! It needs Node.js. If it cannot be installed, this is reported on stderr, and with `CI=true` the test fails.

use std::env;

use creole_acceptance::http::Request;
use creole_acceptance::peers::idp::IdentityProvider;

use crate::TokenServer;

#[test]
fn a_token_of_oidc_provider_is_accepted() {
    let provider = match IdentityProvider::start(&[]) {
        Ok(provider) => provider,
        Err(missing) => {
            assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
            eprintln!("NOT TESTED: {missing}");
            return;
        }
    };
    let issuer = provider.issuer();
    let protected = TokenServer::start(&format!("[auth.issuers.idp]\nissuer = \"{issuer}\"\n"));
    let token = access_token(&provider, &protected.url());
    assert_eq!(protected.status(&token), 200);
    let elsewhere = access_token(&provider, "https://other.example/mcp");
    protected.refuses(&elsewhere);
    protected.logs("audience");
    assert!(!protected.server.log().contains("canary"));
}

/// An access token of a program for a resource.
fn access_token(provider: &IdentityProvider, resource: &str) -> String {
    let resource = resource.replace(':', "%3A").replace('/', "%2F");
    let form = format!("grant_type=client_credentials&scope=mcp&resource={resource}");
    let encode = |text: String| text.replace('/', "%2F").replace('+', "%2B");
    let (id, secret) = (provider.told("/service/id"), provider.told("/service/secret"));
    let basic = format!("{}:{}", encode(id), encode(secret));
    let request = Request::to("POST", "/token", form)
        .with("Content-Type", "application/x-www-form-urlencoded")
        .with("Authorization", &format!("Basic {}", base64(&basic)));
    let address = provider.issuer().trim_start_matches("http://").parse().unwrap();
    let response = request.send(address).unwrap().message();
    response["access_token"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(text)
}
