//! Which documents are asked for, and which of them are refused.

use super::{Discovered, DiscoveryTarget, discover};
use crate::discovery::challenge::Challenge;
use crate::discovery::metadata::Pkce;
use crate::error::OAuthError;
use crate::http::exchange::{Reach, Response};
use crate::testing::{Servers, not_found, response, run};
use crate::web_url::WebUrl;

const SERVER: &str = "https://mcp.example.com/mcp";

fn resource(resource: &str, issuer: &str) -> Response {
    response(
        200,
        format!(
            r#"{{"resource":"{resource}","authorization_servers":["{issuer}"],"scopes_supported":["a"]}}"#
        ),
    )
}

fn metadata(issuer: &str) -> Response {
    response(
        200,
        format!(r#"{{"issuer":"{issuer}","token_endpoint":"https://id.example.com/token"}}"#),
    )
}

fn find(servers: &Servers, server: &str, challenge: &str) -> Result<Discovered, OAuthError> {
    let server = WebUrl::parse(server).unwrap();
    let challenges = Challenge::parse_all([challenge]);
    let target = DiscoveryTarget {
        server: &server,
        challenges: &challenges,
        pinned_issuer: None,
        known_issuers: &[],
        allows_private: false,
        requires_resource_metadata: false,
    };
    run(discover(servers, target))
}

#[test]
fn the_named_document_is_read_and_no_other_guessed() {
    let servers = Servers::new(|request| match request.url.as_str() {
        "https://mcp.example.com/prm" => {
            resource("https://mcp.example.com", "https://id.example.com")
        }
        "https://id.example.com/.well-known/oauth-authorization-server" => {
            metadata("https://id.example.com")
        }
        _ => not_found(),
    });
    let found = find(&servers, SERVER, r#"Bearer resource_metadata="https://mcp.example.com/prm""#)
        .unwrap();
    assert_eq!(
        (found.resource.as_str(), found.resource_scopes),
        ("https://mcp.example.com", vec!["a".to_owned()])
    );
    assert_eq!(servers.urls().len(), 2);
    assert_eq!(servers.reaches(), [Reach::Anywhere, Reach::Public]);

    let missing = Servers::new(|_| not_found());
    let error = find(&missing, SERVER, r#"Bearer resource_metadata="https://mcp.example.com/prm""#)
        .unwrap_err();
    assert!(matches!(error, OAuthError::Document { .. }), "{error}");
    assert_eq!(missing.urls().len(), 1);
}

#[test]
fn without_a_name_the_path_is_asked_before_the_root() {
    let servers = Servers::new(|request| match request.url.as_str() {
        "https://mcp.example.com/.well-known/oauth-protected-resource" => {
            resource("https://mcp.example.com", "https://id.example.com/t1")
        }
        "https://id.example.com/t1/.well-known/openid-configuration" => {
            metadata("https://id.example.com/t1")
        }
        // A page for everything else, as some servers have it.
        _ => response(200, "<html>"),
    });
    find(&servers, SERVER, "Bearer").unwrap();
    assert_eq!(
        servers.urls(),
        [
            "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
            "https://mcp.example.com/.well-known/oauth-protected-resource",
            "https://id.example.com/.well-known/oauth-authorization-server/t1",
            "https://id.example.com/.well-known/openid-configuration/t1",
            "https://id.example.com/t1/.well-known/openid-configuration",
        ]
    );
}

#[test]
fn a_wrong_issuer_ends_the_search() {
    let servers = Servers::new(|request| match request.url.path() {
        "/.well-known/oauth-protected-resource/mcp" => resource(SERVER, "https://id.example.com"),
        _ => metadata("https://id.example.com/"),
    });
    let error = find(&servers, SERVER, "").unwrap_err();
    let expected =
        "issuer mismatch: the metadata of https://id.example.com names https://id.example.com/";
    assert_eq!(error.to_string(), expected);
    assert_eq!(servers.urls().len(), 2);
}

#[test]
fn another_resource_ends_the_search() {
    let servers =
        Servers::new(|_| resource("https://evil.example.com/mcp", "https://id.example.com"));
    let error = find(&servers, SERVER, "").unwrap_err();
    assert_eq!(
        error.to_string(),
        "resource mismatch: https://mcp.example.com/mcp publishes https://evil.example.com/mcp"
    );
    assert_eq!(servers.urls().len(), 1);
}

#[test]
fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let servers = Servers::new(|request| match request.url.path() {
        "/.well-known/oauth-authorization-server" => metadata("https://mcp.example.com"),
        _ => not_found(),
    });
    let found = find(&servers, SERVER, "").unwrap();
    assert_eq!(found.server.pkce, Pkce::S256);
    assert_eq!(found.resource, SERVER);
    let requests = servers.requests.lock().unwrap();
    assert_eq!(requests[2].headers, [("mcp-protocol-version", "2025-03-26".to_owned())]);
    drop(requests);

    let bare = Servers::new(|_| not_found());
    let found = find(&bare, SERVER, "").unwrap();
    assert_eq!(found.server.token_endpoint.as_str(), "https://mcp.example.com/token");
}

#[test]
fn a_server_of_2025_03_26_can_be_refused() {
    let servers = Servers::new(|_| not_found());
    let server = WebUrl::parse(SERVER).unwrap();
    let target = DiscoveryTarget {
        server: &server,
        challenges: &[],
        pinned_issuer: None,
        known_issuers: &[],
        allows_private: false,
        requires_resource_metadata: true,
    };
    let error = run(discover(&servers, target)).unwrap_err().to_string();
    assert!(error.starts_with(SERVER) && error.ends_with("`legacy_oauth` is false"), "{error}");
    // Only the metadata of the resource was looked for.
    assert_eq!(servers.urls().len(), 2);
}

#[test]
fn a_server_that_fails_is_not_one_without_documents() {
    let servers = Servers::new(|_| response(503, ""));
    let error = find(&servers, SERVER, "").unwrap_err();
    assert!(matches!(error, OAuthError::Unreachable { .. }), "{error}");
    assert_eq!(servers.urls().len(), 1);
}

#[test]
fn unencrypted_documents_of_other_hosts_are_not_asked() {
    let servers = Servers::new(|_| not_found());
    for challenge in ["http://127.0.0.1:6379/x", "http://other.example/x"] {
        let error = find(&servers, SERVER, &format!("Bearer resource_metadata=\"{challenge}\""))
            .unwrap_err();
        assert!(matches!(error, OAuthError::NotEncrypted { .. }), "{error}");
    }
    assert!(servers.urls().is_empty());
    let servers = Servers::new(|_| resource(SERVER, "http://id.example.com"));
    assert!(matches!(find(&servers, SERVER, ""), Err(OAuthError::NotEncrypted { .. })));
    assert_eq!(servers.urls().len(), 1);
}

#[test]
fn known_issuers_are_preferred_and_a_pinned_one_is_demanded() {
    let issuers = ["https://a.example".to_owned(), "https://b.example".to_owned()];
    let server = WebUrl::parse(SERVER).unwrap();
    let known = ["https://x.example".to_owned(), issuers[1].clone()];
    let choose = |pinned_issuer, known_issuers| {
        let target = DiscoveryTarget {
            server: &server,
            challenges: &[],
            pinned_issuer,
            known_issuers,
            allows_private: false,
            requires_resource_metadata: false,
        };
        target.choose_issuer(&issuers).map(str::to_owned)
    };
    assert_eq!(choose(None, &[]).unwrap(), "https://a.example");
    assert_eq!(choose(None, &known).unwrap(), "https://b.example");
    assert_eq!(choose(Some("https://b.example"), &[]).unwrap(), "https://b.example");
    let error = choose(Some("https://c.example"), &[]).unwrap_err().to_string();
    assert!(
        error.contains("https://c.example")
            && error.contains("https://a.example, https://b.example"),
        "{error}"
    );
}

#[test]
fn a_server_of_2025_03_26_that_announces_other_methods_than_s256_is_not_used() {
    let servers = Servers::new(|request| match request.url.path() {
        "/.well-known/oauth-authorization-server" => response(
            200,
            r#"{"issuer":"https://mcp.example.com","token_endpoint":"https://mcp.example.com/t",
            "code_challenge_methods_supported":["plain"]}"#,
        ),
        _ => not_found(),
    });
    assert_eq!(find(&servers, SERVER, "").unwrap().server.pkce, Pkce::Others);
}

#[test]
fn the_issuer_of_a_server_of_2025_03_26_has_its_origin() {
    let found = |issuer: &'static str, pinned_issuer: Option<&str>| {
        let servers = Servers::new(move |request| match request.url.path() {
            "/.well-known/oauth-authorization-server" => metadata(issuer),
            _ => not_found(),
        });
        let server = WebUrl::parse(SERVER).unwrap();
        let target = DiscoveryTarget {
            server: &server,
            challenges: &[],
            pinned_issuer,
            known_issuers: &[],
            allows_private: false,
            requires_resource_metadata: false,
        };
        run(discover(&servers, target)).map(|found| found.server.issuer)
    };
    for issuer in ["https://mcp.example.com/", "https://mcp.example.com/oauth"] {
        assert_eq!(found(issuer, None).unwrap(), issuer);
        assert_eq!(found(issuer, Some(issuer)).unwrap(), issuer);
        let other = found(issuer, Some("https://id.example.com"));
        assert!(matches!(other, Err(OAuthError::OtherIssuer { .. })), "{other:?}");
    }
    let evil = found("https://evil.example.com", None);
    assert!(matches!(evil, Err(OAuthError::IssuerMismatch { .. })), "{evil:?}");
}
