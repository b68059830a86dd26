//! Tests of OpenAPI services: their requests, the rejected calls, and the cost of a large document.

use std::fs;
use std::time::Duration;

use creole_acceptance::peers;
use creole_acceptance::peers::{Mode, Peer, Steps};
use creole_acceptance::process_under_test::{Server, check, serve};
use creole_acceptance::stage::stdio::{binary, repository};
use serde_json::{Value, json};

use crate::service::{Service, answer, json as good};
use crate::{ConfiguredServer, told};

const DOCUMENT: &str = r#"
openapi: 3.0.3
security: [{key: []}]
paths:
  /things/{id}:
    get:
      operationId: getThing
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Authorization, in: header, schema: {type: string}}
  /things:
    post:
      operationId: makeThing
      requestBody:
        required: true
        content:
          application/json:
            schema: {type: object, required: [name], properties: {name: {type: string, nullable: true}, n: {type: integer}}}
components:
  securitySchemes: {key: {type: apiKey, in: query, name: api_key}}
"#;

/// A server whose configuration names this document, with these lines in its table.
fn start(document: &str, table: &str) -> ConfiguredServer {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), document).unwrap();
    let text = format!("[server]\n[openapi.api]\nfile = \"api.yaml\"\n{table}\n");
    fs::write(folder.path().join("creole.toml"), text).unwrap();
    let file = folder.path().join("creole.toml");
    let server = Server::start_in(folder.path(), &[file.to_str().unwrap()]).greeted();
    ConfiguredServer { server, folder }
}

#[test]
fn a_service_is_called_as_its_document_defines() {
    let service = Service::start(|_, request| match request.line.starts_with("POST") {
        true => good(r#"{"id":"7"}"#),
        false => good(r#"["one","two"]"#),
    });
    let table = format!(
        "base_url = '{}/v1/'\nmethods = ['GET', 'POST']\nheaders = {{ X-Version = '3' }}\n\
         security.key = {{ value = 'hunter 2000' }}",
        service.url()
    );
    let mut server = start(DOCUMENT, &table);
    let listed = server.server.call("get_thing", &json!({ "id": "a b", "tags": ["x", "y&z"] }));
    assert_eq!(told(&listed), Ok(r#"["one","two"]"#.into()));
    let made = server.server.call("make_thing", &json!({ "name": null, "n": 2 }));
    assert_eq!(made["result"]["structuredContent"], json!({ "id": "7" }), "{made}");
    let requests = service.requests();
    let line = "GET /v1/things/a%20b?tags=x&tags=y%26z&api_key=hunter%202000 HTTP/1.1";
    assert_eq!(requests[0].line, line);
    assert_eq!(requests[0].header("x-version"), Some("3"));
    assert_eq!(requests[1].line, "POST /v1/things?api_key=hunter%202000 HTTP/1.1");
    let body: Value = serde_json::from_str(&requests[1].body).unwrap();
    assert_eq!(body, json!({ "name": null, "n": 2 }));
}

#[test]
fn no_value_leaves_its_position_and_nothing_undocumented_is_sent() {
    let service = Service::start(|_, _| good("{}"));
    let mut server = start(DOCUMENT, &format!("base_url = '{}'", service.url()));
    for arguments in [
        json!({ "id": "../admin" }),
        json!({ "id": ".." }),
        json!({ "id": "" }),
        json!({}),
        json!({ "id": 5 }),
        json!({ "id": "x", "X-Trace": "a\r\nX-Admin: 1" }),
        json!({ "id": "x", "Authorization": "Bearer stolen" }),
        json!({ "id": "x", "admin": true }),
    ] {
        assert!(server.call("get_thing", arguments.clone()).is_err(), "{arguments}");
    }
    assert!(server.call("make_thing", json!({ "name": "x" })).is_err(), "the service is read-only");
    assert!(service.requests().is_empty(), "{:?}", service.requests());
}

#[test]
fn an_error_is_reported_without_secrets() {
    let service = Service::start(|_, _| {
        let head = "Content-Type: application/problem+json\r\n";
        answer("403 Forbidden", head, r#"{"title":"No","detail":"hunter 2000 is not welcome"}"#)
    });
    let table =
        format!("base_url = '{}'\nsecurity.key = {{ value = 'hunter 2000' }}", service.url());
    let mut server = start(DOCUMENT, &table);
    let text = server.call("get_thing", json!({ "id": "x" })).unwrap_err();
    assert_eq!(
        text,
        "the service responded with status 403 Forbidden:\nNo: [secret] is not welcome"
    );
}

#[test]
fn a_file_that_a_document_refers_to_is_read_again_when_it_changes() {
    let document = "openapi: 3.0.3\npaths:\n  /things:\n    $ref: parts/things.yaml\n";
    let part = |name: &str| format!("get:\n  operationId: {name}\n");
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("parts");
    fs::create_dir(&parts).unwrap();
    fs::write(parts.join("things.yaml"), part("listThings")).unwrap();
    fs::write(folder.path().join("api.yaml"), document).unwrap();
    let text = "[server]\n[openapi.api]\nfile = \"api.yaml\"\nbase_url = \"https://example.com\"\n";
    fs::write(folder.path().join("creole.toml"), text).unwrap();
    let mut server = Server::start_command(serve(folder.path(), &["creole.toml"])).greeted();
    let listed = server.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "list_things", "{listed}");
    fs::write(parts.join("fresh"), part("showThings")).unwrap();
    fs::rename(parts.join("fresh"), parts.join("things.yaml")).unwrap();
    assert_eq!(server.answer()["method"], "notifications/tools/list_changed");
    let listed = server.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "show_things", "{listed}");
}

#[test]
fn a_document_that_changes_is_read_again() {
    let mut server = start(DOCUMENT, "base_url = 'https://example.com'");
    let fresh = server.path().join("fresh");
    fs::write(&fresh, DOCUMENT.replace("getThing", "fetchThing")).unwrap();
    fs::rename(fresh, server.path().join("api.yaml")).unwrap();
    assert_eq!(server.server.answer()["method"], "notifications/tools/list_changed");
    let listed = server.server.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "fetch_thing", "{listed}");
}

/// A thousand operations, each with nested parameters.
#[test]
fn a_thousand_operations_are_listed_in_pages_and_weigh_little() {
    let operation = |number: usize| {
        json!({ "post": {
            "operationId": format!("makeThing{number}"),
            "description": "Makes a thing of many parts and says where it is. ".repeat(4),
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
            "requestBody": { "required": true, "content": { "application/json": { "schema":
                { "$ref": "#/components/schemas/Thing" } } } },
        } })
    };
    let paths: Value =
        (0..1000).map(|value| (format!("/things/{value:04}/{{id}}"), operation(value))).collect();
    let thing = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "pattern": "^[a-z]+$" }, "size": { "$ref": "#/components/schemas/Size" },
        "parts": { "type": "array", "items": { "$ref": "#/components/schemas/Part" } },
    } });
    let part = json!({ "type": "object", "properties": {
        "kind": { "type": "string", "enum": ["bolt", "nut", "plate"] }, "size": { "$ref": "#/components/schemas/Size" },
    } });
    let size = json!({ "type": "object", "properties": { "height": { "type": "number" }, "width": { "type": "number" } } });
    let schemas = json!({ "Thing": thing, "Part": part, "Size": size });
    let document =
        json!({ "openapi": "3.0.3", "paths": paths, "components": { "schemas": schemas } });
    let table = "base_url = 'https://example.com'\nmethods = ['POST']";
    let mut server = start(&document.to_string(), table).server;
    let (mut listed, mut pages, mut cursor) = (0, 0, json!({}));
    loop {
        let page = server.request("tools/list", &cursor);
        listed += page["result"]["tools"].as_array().map_or(0, Vec::len);
        pages += 1;
        match page["result"]["nextCursor"].as_str() {
            Some(next) => cursor = json!({ "cursor": next }),
            None => break,
        }
    }
    assert_eq!((listed, pages), (1000, 10));
    let (peak, processor) = (server.weight().peak, server.weight().processor);
    let kibibytes = peak / 1024;
    println!("a thousand operations: {kibibytes} KiB at most, {processor:?} of processor time");
    // The target is one second for the release build. This build is not optimized.
    assert!(processor < Duration::from_secs(3), "{processor:?}");
    assert!(peak < 100 * 1024 * 1024, "{peak}");
}

#[test]
fn the_example_is_what_another_client_calls() {
    let service = Service::start(|_, request| match request.line.starts_with("POST") {
        true => good(r#"{"id":"l1"}"#),
        false => good(r#"{"books":[]}"#),
    });
    let folder = tempfile::tempdir().unwrap();
    let example = repository().join("examples/openapi.toml");
    let variables = [("LIBRARY_API", service.url()), ("LIBRARY_CARD", "card-7".to_owned())];
    let mut command = serve(folder.path(), &[example.to_str().unwrap()]);
    command.envs(variables.clone());
    let mut server = Server::start_command(command).greeted();
    let mut call = |tool: &str, arguments: Value| told(&server.call(tool, &arguments)).unwrap();
    let find = json!({ "q": "the & of", "shelf": ["a", "b"], "published": { "from": 1900 } });
    assert_eq!(call("library_list_books", find), r#"{"books":[]}"#);
    assert_eq!(call("library_borrow_book", json!({ "isbn": "1", "note": null })), r#"{"id":"l1"}"#);
    let requests = service.requests();
    let line = "GET /books?q=the%20%26%20of&shelf=a,b&published%5Bfrom%5D=1900 HTTP/1.1";
    assert_eq!(requests[0].line, line);
    assert_eq!(requests[0].header("x-library-card"), Some("card-7"));
    assert_eq!(requests[1].body, r#"{"isbn":"1","note":null}"#);

    if !peers::is_installed(Peer::Inspector) {
        return;
    }
    let mut words = vec!["env".to_owned()];
    words.extend(variables.map(|(name, value)| format!("{name}={value}")));
    let binary = binary().unwrap();
    words.extend([binary.display().to_string(), "serve".into(), example.display().to_string()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let steps = Steps::new().call("library_get_book", json!({ "isbn": "978-0-00-0" }));
    let seen = peers::run(Peer::Inspector, Mode::Legacy, &steps, &words).unwrap();
    let names: Vec<&str> =
        seen["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let expected =
        ["library_list_books", "library_get_book", "library_list_loans", "library_borrow_book"];
    assert_eq!(names, expected, "{seen}");
    assert_eq!(seen["call"]["content"][0]["text"], r#"{"books":[]}"#, "{seen}");
    assert_eq!(service.requests().last().unwrap().line, "GET /books/978-0-00-0 HTTP/1.1");
}

#[test]
fn a_document_may_be_fetched() {
    let service = Service::start(|_, request| match request.line.starts_with("GET /api.yaml") {
        true => answer("200 OK", "Content-Type: application/yaml\r\n", DOCUMENT),
        false => good("{}"),
    });
    let folder = tempfile::tempdir().unwrap();
    let url = service.url();
    let text = format!(
        "[server]\n[openapi.api]\nurl = '{url}/api.yaml?v=1'\nbase_url = '{url}'\n\
         security.key = {{ value = 'hunter2000' }}\n"
    );
    fs::write(folder.path().join("creole.toml"), text).unwrap();
    let mut server = Server::start_command(serve(folder.path(), &["creole.toml"])).greeted();
    assert_eq!(told(&server.call("get_thing", &json!({ "id": "1" }))), Ok("{}".into()));
    let requests = service.requests();
    assert_eq!(requests[0].line, "GET /api.yaml?v=1 HTTP/1.1", "without the key");
    assert_eq!(requests[1].line, "GET /things/1?api_key=hunter2000 HTTP/1.1");
    let invalid = "[server]\n[openapi.api]\nbase_url = 'https://x.org'\nurl = ";
    fs::write(folder.path().join("creole.toml"), format!("{invalid}'ftp://x.org'\n")).unwrap();
    let (code, _, output) = check(folder.path());
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("invalid URL") && output.contains("creole.toml:4:7"), "{output}");
}

#[test]
fn a_token_is_fetched_once_and_anew_when_it_is_refused() {
    let service = Service::start(|number, request| match request.line.starts_with("POST /token") {
        true => good(&format!(r#"{{"access_token":"token-{number}","expires_in":3600}}"#)),
        false if number == 2 => answer("401 Unauthorized", "", "token-0 is too old"),
        false => good("{}"),
    });
    let document = DOCUMENT.replace(
        "{type: apiKey, in: query, name: api_key}",
        "{type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://evil.example/token', scopes: {}}}}",
    );
    let url = service.url();
    let table = format!(
        "base_url = '{url}'\nsecurity.key = {{ client_id = 'me', client_secret = 'hunter:2000', \
         token_url = '{url}/token', scopes = ['read', 'list'] }}"
    );
    let mut server = start(&document, &table);
    assert_eq!(server.call("get_thing", json!({ "id": "1" })), Ok("{}".into()));
    let refused = server.call("get_thing", json!({ "id": "2" })).unwrap_err();
    assert!(refused.contains("401") && !refused.contains("token-0"), "{refused}");
    assert_eq!(server.call("get_thing", json!({ "id": "3" })), Ok("{}".into()));
    let requests = service.requests();
    let lines: Vec<&str> = requests.iter().map(|request| request.line.as_str()).collect();
    let expected = [
        "POST /token HTTP/1.1",
        "GET /things/1 HTTP/1.1",
        "GET /things/2 HTTP/1.1",
        "POST /token HTTP/1.1",
        "GET /things/3 HTTP/1.1",
    ];
    assert_eq!(lines, expected);
    assert_eq!(requests[0].body, "grant_type=client_credentials&scope=read+list");
    // `me:hunter%3A2000`
    assert_eq!(requests[0].header("authorization"), Some("Basic bWU6aHVudGVyJTNBMjAwMA=="));
    assert_eq!(requests[1].header("authorization"), Some("Bearer token-0"));
    assert_eq!(requests[4].header("authorization"), Some("Bearer token-3"));
}

#[test]
fn a_document_that_cannot_be_fetched_keeps_nothing_down_and_is_fetched_later() {
    use std::sync::atomic::{AtomicBool, Ordering};

    static IS_THERE: AtomicBool = AtomicBool::new(false);
    let service = Service::start(|_, _| match IS_THERE.load(Ordering::SeqCst) {
        true => answer("200 OK", "Content-Type: application/yaml\r\n", DOCUMENT),
        false => answer("503 Service Unavailable", "", "not yet"),
    });
    let reason = "cannot fetch the document: the response has status 503";
    assert_comes_later(&service, reason, || IS_THERE.store(true, Ordering::SeqCst));
}

#[test]
fn an_html_page_instead_of_a_document_does_not_block_startup_and_is_fetched_again() {
    use std::sync::atomic::{AtomicBool, Ordering};

    static IS_THERE: AtomicBool = AtomicBool::new(false);
    let page = "<!DOCTYPE html>\n<html><head><title>Down: back soon</title></head></html>\n";
    let service = Service::start(move |_, _| match IS_THERE.load(Ordering::SeqCst) {
        true => answer("200 OK", "Content-Type: application/yaml\r\n", DOCUMENT),
        false => answer("200 OK", "Content-Type: text/html\r\n", page),
    });
    let reason = "the fetched document is not OpenAPI";
    assert_comes_later(&service, reason, || IS_THERE.store(true, Ordering::SeqCst));
}

#[test]
fn an_error_instead_of_a_document_does_not_block_startup_and_is_fetched_again() {
    use std::sync::atomic::{AtomicBool, Ordering};

    static IS_THERE: AtomicBool = AtomicBool::new(false);
    let service = Service::start(|_, _| match IS_THERE.load(Ordering::SeqCst) {
        true => answer("200 OK", "Content-Type: application/yaml\r\n", DOCUMENT),
        false => answer("200 OK", "Content-Type: application/json\r\n", r#"{"error":"down"}"#),
    });
    let reason =
        "the document is not an OpenAPI document; an OpenAPI document begins with `openapi: 3.…`";
    assert_comes_later(&service, reason, || IS_THERE.store(true, Ordering::SeqCst));
}

#[test]
fn a_file_that_is_no_document_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.json"), r#"{"error":"down"}"#).unwrap();
    let text = "[server]\n[openapi.api]\nfile = 'api.json'\nbase_url = 'https://x.org'\n";
    fs::write(folder.path().join("creole.toml"), text).unwrap();
    let (code, _, problem) = check(folder.path());
    assert_eq!(code, Some(2), "{problem}");
    assert!(problem.contains("the document is not an OpenAPI document"), "{problem}");
}

/// Asserts that without its document the service is unavailable for this reason and the other tools are served, and
/// that its tools appear once the document is available.
#[track_caller]
fn assert_comes_later(service: &Service, reason: &str, comes: impl FnOnce()) {
    let folder = tempfile::tempdir().unwrap();
    let url = service.url();
    let text = format!(
        "[server]\npacks = [\"echo\"]\n[openapi.api]\nurl = '{url}/api.yaml'\nbase_url = '{url}'\n\
         security.key = {{ value = 'hunter2000' }}\n"
    );
    fs::write(folder.path().join("creole.toml"), text).unwrap();
    let (code, output, _) = check(folder.path());
    assert_eq!(code, Some(0), "{output}");
    assert!(output.lines().any(|line| line.contains("api: ") && line.contains(reason)), "{output}");
    let mut server = Server::start_command(serve(folder.path(), &["creole.toml"])).greeted();
    assert_eq!(told(&server.call("echo", &json!({ "message": "hi" }))), Ok("hi".into()));
    comes();
    while !server.line().contains("notifications/tools/list_changed") {}
    let listed = server.request("tools/list", &json!({}));
    assert!(listed.to_string().contains("\"get_thing\""), "{listed}");
}
