//! The OpenAPI document, and that every answer has its schema and shows no secret.

use creole_acceptance::http::required_headers::fields;
use creole_acceptance::http::{Connection, Events, Request};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use super::{Admin, body, request};

/// Members that no request of the API may have: nothing may name a program, a file or an address.
const FORBIDDEN: [&str; 5] = ["command", "args", "env", "path", "url"];

/// The schema of a route's answer, with all definitions.
pub(super) fn schema(document: &Value, method: &str, path: &str, status: &str) -> Value {
    let response = &document["paths"][path][method]["responses"][status];
    let mut schema = response["content"]["application/json"]["schema"].clone();
    assert!(schema.is_object(), "{method} {path} {status}: {response}");
    schema["components"] = document["components"].clone();
    schema
}

#[track_caller]
pub(super) fn assert_valid(schema: &Value, answer: &Value, what: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{what}: {errors:?} in {answer}");
}

/// Calls a tool of the server over HTTP, in the stateless era.
pub(super) fn call_tool(admin: &Admin, tool: &str, arguments: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = Request::post(message.to_string()).with_all(fields(&message));
    request.send(admin.server.address()).unwrap().message()
}

#[test]
fn the_document_is_openapi_and_no_request_names_a_program_a_file_or_an_address() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let document = admin.get(&bearer, "/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        assert!(path.starts_with('/'), "{path}");
        for (method, operation) in methods.as_object().unwrap() {
            ids.push(operation["operationId"].as_str().unwrap().to_owned());
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()));
            assert!(operation["responses"]["default"].is_object(), "{method} {path}");
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let mut names = Vec::new();
            member_names(body, &document, &mut names);
            for name in FORBIDDEN {
                assert!(!names.iter().any(|it| it == name), "{method} {path} takes `{name}`");
            }
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "operation ids are unique");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let mut whole = schema.clone();
        whole["components"] = document["components"].clone();
        assert!(jsonschema::validator_for(&whole).is_ok(), "{name}");
    }
}

/// The names of all members in a schema.
fn member_names(schema: &Value, document: &Value, names: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        member_names(target, document, names);
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        names.push(name.clone());
        member_names(member, document, names);
    }
    for part in ["anyOf", "oneOf", "allOf"] {
        for part in schema[part].as_array().into_iter().flatten() {
            member_names(part, document, names);
        }
    }
}

#[test]
fn every_answer_has_its_schema_and_shows_no_secret() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let document = admin.get(&bearer, "/openapi.json");
    call_tool(&admin, "echo", json!({"message": "hello"}));
    call_tool(&admin, "no_such_tool", json!({}));
    let calls = admin.get(&bearer, "/calls");
    let call = calls["items"][0]["id"].as_str().expect("a recorded call").to_owned();
    let items = admin.get(&bearer, "/servers/team/items");
    let item = items["items"][0]["id"].as_str().unwrap().to_owned();
    let pins = admin.get(&bearer, "/pins");
    let tool = pins["items"][0]["tool"].as_str().unwrap().to_owned();
    let paths = [
        ("/self".to_owned(), "/self"),
        ("/overview".to_owned(), "/overview"),
        ("/upstreams".to_owned(), "/upstreams"),
        ("/upstreams/files".to_owned(), "/upstreams/{upstream}"),
        ("/calls".to_owned(), "/calls"),
        (format!("/calls/{call}"), "/calls/{call}"),
        ("/captures".to_owned(), "/captures"),
        ("/denials".to_owned(), "/denials"),
        ("/servers".to_owned(), "/servers"),
        ("/servers/team".to_owned(), "/servers/{server}"),
        ("/servers/team/items".to_owned(), "/servers/{server}/items"),
        (format!("/items/{item}"), "/items/{item}"),
        ("/sessions".to_owned(), "/sessions"),
        ("/tasks".to_owned(), "/tasks"),
        ("/log".to_owned(), "/log"),
        ("/parked".to_owned(), "/parked"),
        ("/pins".to_owned(), "/pins"),
        (format!("/pins/files/{tool}"), "/pins/{upstream}/{tool}"),
        ("/config".to_owned(), "/config"),
        ("/audit".to_owned(), "/audit"),
        ("/state".to_owned(), "/state"),
        ("/replicas".to_owned(), "/replicas"),
    ];
    for (path, route) in paths {
        let answer = admin.get(&bearer, &path);
        assert_valid(&schema(&document, "get", route, "200"), &answer, &path);
        assert!(!answer.to_string().contains("canary-"), "{path}: {answer}");
    }
    let problem = body(&admin.call(&bearer, "GET", "/upstreams/none", None));
    let mut schema = json!({"$ref": "#/components/schemas/Problem"});
    schema["components"] = document["components"].clone();
    assert_valid(&schema, &problem, "a problem");
}

#[test]
fn an_answer_that_the_client_has_is_not_sent_again() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let read_twice = || {
        let first = admin.call(&bearer, "GET", "/servers", None);
        let tag = first.head.field("etag").expect("a tag").to_owned();
        let again = request("GET", "/api/v1/servers", None)
            .with("Authorization", &format!("Bearer {bearer}"))
            .with("If-None-Match", &tag);
        let again = admin.send(&again);
        (again.head.status == 304).then(|| again.text())
    };
    // The counts of the answer change until the upstream is ready.
    let again = eventually("the answer is the same", read_twice);
    assert_eq!(again, "");
}

#[test]
fn new_calls_are_streamed_while_they_happen() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let request = request("GET", "/api/v1/calls?live=1&target=echo", None)
        .replacing("Accept", "text/event-stream")
        .with("Authorization", &format!("Bearer {bearer}"));
    let mut stream = Connection::open(admin.address()).unwrap();
    stream.write(&request.bytes(admin.address())).unwrap();
    let head = stream.head().unwrap();
    assert_eq!((head.status, head.field("content-type")), (200, Some("text/event-stream")));
    let mut events = Events::new(stream.body(&head));
    let first = events.next().unwrap();
    assert_eq!(first.kind.as_deref(), Some("calls"));
    call_tool(&admin, "echo", json!({"message": "hello"}));
    let batch: Value = serde_json::from_str(&events.next().unwrap().data).unwrap();
    let call = &batch["items"][0];
    assert_eq!(
        (call["method"].as_str(), call["outcome"].as_str()),
        (Some("tools/call"), Some("success"))
    );
    assert_eq!((batch["missed"].as_u64(), call["via"].as_str()), (Some(0), Some("mcp")));
    admin.call(&bearer, "POST", "/logout", Some(&json!({})));
    let end = events.next().unwrap();
    assert_eq!(
        (end.kind.as_deref(), end.data.as_str()),
        (Some("end"), "{\"reason\":\"signed-out\"}")
    );
}

#[test]
fn a_capture_shows_payloads_without_secrets_until_it_ends() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let filter = json!({"filter": {"target": "echo"}, "minutes": 1, "max": 1});
    let capture = body(&admin.call(&bearer, "POST", "/captures", Some(&filter)));
    let id = capture["id"].as_str().unwrap();
    call_tool(&admin, "echo", json!({"message": "hello", "password": "canary-password"}));
    let calls = admin.get(&bearer, "/calls?target=echo");
    let call = &calls["items"][0];
    assert_eq!(call["has_payloads"], true, "{calls}");
    let path = format!("/calls/{}", call["id"].as_str().unwrap());
    let detail = admin.get(&bearer, &path);
    let frames = detail["frames"].as_array().expect("frames");
    assert!(frames.iter().any(|frame| frame["side"] == "client_in"), "{detail}");
    assert!(detail.to_string().contains("hello") && detail.to_string().contains("•••"), "{detail}");
    assert!(!detail.to_string().contains("canary-"), "{detail}");
    assert_eq!(admin.call(&bearer, "DELETE", &format!("/captures/{id}"), None).head.status, 204);
    let after = admin.get(&bearer, &path);
    assert_eq!((after.get("frames"), after["payloads"].as_str()), (None, Some("none")));
}

#[test]
fn an_operation_runs_through_the_chain_as_a_client_of_any_revision() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let wanted = json!({
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"message": "from the console"}},
            "as": {"revision": revision},
        });
        let answer = admin.call(&bearer, "POST", "/servers/team/calls", Some(&wanted));
        let text = answer.text();
        assert_eq!(answer.head.status, 200, "{text}");
        assert!(text.starts_with("event: started"), "{text}");
        assert!(text.contains("event: result") && text.contains("from the console"), "{text}");
    }
    let calls = admin.get(&bearer, "/calls?target=echo");
    assert_eq!(calls["items"].as_array().unwrap().len(), 5);
    assert!(calls["items"].as_array().unwrap().iter().all(|call| call["via"] == "console"));
}

#[test]
fn a_changed_configuration_that_is_refused_is_shown_with_its_line() {
    let admin = Admin::with_link("");
    let bearer = admin.sign_in();
    let file = admin.folder.path().join("creole.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("packs =", "pakcs =")).unwrap();
    let shown = || admin.get(&bearer, "/config");
    eventually(
        || format!("a refused configuration: {}", shown()),
        || shown()["refused"].is_object(),
    );
    let config = shown();
    let diagnostic = &config["diagnostics"][0];
    assert_eq!((diagnostic["line"].as_u64(), diagnostic["column"].as_u64()), (Some(4), Some(1)));
    assert_eq!(diagnostic["message"], "unknown key `pakcs`");
    assert!(config["text"].as_str().unwrap().contains("packs ="), "the one in force");
    let alerts = admin.get(&bearer, "/overview")["alerts"].clone();
    assert!(alerts.as_array().unwrap().iter().any(|alert| alert["code"] == "config-refused"));
}
