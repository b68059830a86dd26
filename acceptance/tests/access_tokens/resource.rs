//! What the server says of itself: challenges, metadata of its paths, and the report of `config check`.

use std::fs;
use std::process::Command;

use creole_acceptance::http::{Connection, ListeningServer, Request};
use creole_acceptance::stage::stdio::binary;
use serde_json::{Value, json};

use crate::issuer::TestIssuer;
use crate::{KEY, TokenServer, message, table};

/// The public address of the servers in these tests.
const PUBLIC: &str = "https://mcp.example.com";

/// The lines of a configuration with a public address and one required scope.
fn lines(issuer: &TestIssuer, further: &str) -> String {
    let http = format!("[http]\npublic_url = \"{PUBLIC}\"\n");
    let oauth = "[auth.oauth]\nrequired_scopes = [\"mcp\"]\n";
    format!("{http}{oauth}{further}\n{}", table("corp", issuer, ""))
}

fn metadata(protected: &ListeningServer, path: &str) -> (u16, Value) {
    let response = Request::new("GET", path).send(protected.address()).unwrap();
    let document = serde_json::from_str(&response.text()).unwrap_or_default();
    (response.head.status, document)
}

/// The first message of a client, to this target.
fn hello(target: &str) -> Request {
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    Request::to("POST", target, body.to_string())
        .with("Content-Type", "application/json")
        .with("Accept", "application/json, text/event-stream")
}

#[test]
fn a_caller_without_credentials_learns_where_to_log_in() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::start(&lines(&issuer, ""));
    let session = "0".repeat(36);
    let metadata = format!("{PUBLIC}/.well-known/oauth-protected-resource/mcp");
    for request in [message(), Request::get(&session), Request::delete(&session)] {
        let response = protected.send(&request);
        assert_eq!(response.head.status, 401);
        let offers: Vec<&str> = response.head.all("www-authenticate").collect();
        let bearer =
            format!("Bearer realm=\"creole\", resource_metadata=\"{metadata}\", scope=\"mcp\"");
        let dpop = format!(
            "DPoP realm=\"creole\", algs=\"ES256 EdDSA Ed25519 RS256 PS256\", \
                resource_metadata=\"{metadata}\", scope=\"mcp\""
        );
        assert_eq!(offers, [bearer, dpop]);
    }
    assert_eq!(issuer.requests(), Vec::<String>::new(), "a stranger causes no request");
}

#[test]
fn the_metadata_of_each_path_is_public() {
    let issuer = TestIssuer::start();
    let further = "[auth.scopes.\"files:read\"]\ntools = [\"files__*\"]";
    let protected = TokenServer::start(&lines(&issuer, further));
    let prefix = "/.well-known/oauth-protected-resource";
    for (path, resource) in [("/mcp", "/mcp"), ("", "/mcp"), ("/sse", "/sse")] {
        let (status, document) = metadata(&protected.server, &format!("{prefix}{path}"));
        assert_eq!((status, &document["resource"]), (200, &json!(format!("{PUBLIC}{resource}"))));
        assert_eq!(document["authorization_servers"], json!([issuer.name()]));
        assert_eq!(document["scopes_supported"], json!(["mcp", "files:read"]));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
        assert_eq!(document["resource_name"], "protected");
    }
    for path in ["/mcp2", "/", "/mcp/"] {
        assert_eq!(metadata(&protected.server, &format!("{prefix}{path}")).0, 404, "{path}");
    }
    let ask = |method| Request::new(method, prefix).with("Origin", "https://page.example");
    let response = protected.send(&ask("GET"));
    assert_eq!(response.head.field("access-control-allow-origin"), Some("*"));
    assert_eq!(response.head.field("access-control-allow-credentials"), None);
    assert_eq!(response.head.field("cache-control"), Some("max-age=300"));
    assert_eq!(response.head.field("content-type"), Some("application/json"));
    assert_eq!(response.head.field("set-cookie"), None);
    let address = protected.server.address();
    let mut connection = Connection::open(address).unwrap();
    connection.write(&ask("HEAD").bytes(address)).unwrap();
    assert_eq!(connection.head().unwrap().status, 200);
    // The next response follows the head at once.
    connection.write(&ask("GET").bytes(address)).unwrap();
    assert_eq!(connection.response().unwrap().head.status, 200);
    let preflight = ask("OPTIONS").with("Access-Control-Request-Method", "GET");
    let preflight = protected.send(&preflight);
    assert_eq!(preflight.head.status, 204);
    assert_eq!(preflight.head.field("access-control-allow-headers"), Some("mcp-protocol-version"));
    assert_eq!(protected.send(&ask("POST")).head.status, 405);
    let elsewhere = Request::new("GET", prefix).replacing("Host", "evil.example");
    assert_eq!(protected.send(&elsewhere).head.status, 403);
}

#[test]
fn without_a_public_url_the_resource_has_the_name_that_it_is_called_by() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let port = protected.server.address().port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let ask = Request::new("GET", "/.well-known/oauth-protected-resource/mcp");
        let response = protected.send(&ask.replacing("Host", &host));
        let document: Value = serde_json::from_str(&response.text()).unwrap();
        assert_eq!(document["resource"], format!("http://{host}/mcp"));
        let refused = protected.send(&message().replacing("Host", &host));
        let challenge = refused.head.field("www-authenticate").unwrap_or_default();
        let address = format!("http://{host}/.well-known/oauth-protected-resource/mcp");
        assert!(challenge.contains(&address), "{challenge}");
    }
}

#[test]
fn each_server_names_its_own_scopes_and_issuers() {
    let (corp, guests) = (TestIssuer::start(), TestIssuer::start());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let text = format!(
        "[[servers]]\nname = \"main\"\npacks = [\"echo\"]\n\
         [[servers]]\nname = \"house\"\npath = \"/house\"\npacks = [\"echo\"]\n\
         auth = {{ issuers = [\"guests\"], required_scopes = [\"house\"], dpop = \"off\" }}\n\
         [http]\npublic_url = \"{PUBLIC}\"\n[auth.oauth]\nrequired_scopes = [\"mcp\"]\n{}{}",
        table("corp", &corp, ""),
        table("guests", &guests, ""),
    );
    fs::write(&file, text).unwrap();
    let server = ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
    let all = [corp.name(), guests.name()];
    for (path, scope, issuers) in
        [("/mcp", "mcp", &all[..]), ("/house", "house", std::slice::from_ref(&guests.name()))]
    {
        let well_known = format!("/.well-known/oauth-protected-resource{path}");
        let (status, document) = metadata(&server, &well_known);
        assert_eq!((status, &document["resource"]), (200, &json!(format!("{PUBLIC}{path}"))));
        assert_eq!(document["authorization_servers"], json!(issuers));
        assert_eq!(document["scopes_supported"], json!([scope]));
        let refused = Request::to("POST", path, "{}").send(server.address()).unwrap();
        let challenge = refused.head.field("www-authenticate").unwrap_or_default();
        let expected = format!(
            "Bearer realm=\"creole\", resource_metadata=\"{PUBLIC}{well_known}\", scope=\"{scope}\""
        );
        assert_eq!((refused.head.status, challenge), (401, &*expected));
    }
    let ask = |issuer: &TestIssuer, path: &str, scope: &str| {
        let token = issuer.token(&format!("{PUBLIC}{path}"), json!({ "scope": scope }));
        let request = hello(path).with("Authorization", &format!("Bearer {token}"));
        request.send(server.address()).unwrap().head.status
    };
    assert_eq!(ask(&corp, "/mcp", "mcp"), 200);
    assert_eq!(ask(&guests, "/house", "house"), 200);
    assert_eq!(ask(&guests, "/house", "mcp"), 403, "the scope of another path");
    assert_eq!(ask(&corp, "/house", "house"), 401, "not an issuer of this path");
}

#[test]
fn the_metadata_of_the_only_issuer_is_served_for_old_clients() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::start(&lines(&issuer, ""));
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let (status, document) = metadata(&protected.server, path);
        assert_eq!((status, &document["issuer"]), (200, &json!(issuer.name())), "{path}");
    }
    let further = "legacy_metadata = false";
    let protected = TokenServer::start(&lines(&issuer, further));
    let path = "/.well-known/oauth-authorization-server";
    assert_eq!(metadata(&protected.server, path).0, 404);
    let other = TestIssuer::start();
    let two = format!("{}{}", lines(&issuer, ""), table("other", &other, ""));
    assert_eq!(metadata(&TokenServer::start(&two).server, path).0, 404, "whose would it be");
}

#[test]
fn a_token_in_the_query_is_not_read_and_not_logged() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let token = issuer.token(&protected.url(), json!({}));
    let request = hello(&format!("/mcp?access_token={token}"));
    assert_eq!(protected.send(&request).head.status, 401);
    assert_eq!(protected.status(KEY), 200);
    assert!(!protected.server.log().contains(&token));
}

#[test]
fn config_check_prints_what_an_authorization_server_has_to_know() {
    let issuer = TestIssuer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let further = "[auth.scopes.\"files:read\"]\ntools = [\"*\"]";
    let server = "[server]\npacks = [\"echo\"]\n";
    fs::write(&file, format!("{server}{}", lines(&issuer, further))).unwrap();
    let output =
        Command::new(binary().unwrap()).arg("config").arg("check").arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = format!(
        "  tokens   /mcp: resource {PUBLIC}/mcp\n           \
            metadata {PUBLIC}/.well-known/oauth-protected-resource/mcp\n           \
            issuers corp\n           audiences corp {PUBLIC}/mcp\n           \
            scopes required mcp; supported mcp, files:read\n"
    );
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains(&format!("  tokens   /sse: resource {PUBLIC}/sse\n")), "{text}");
}
