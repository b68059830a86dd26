//! Every route, every role, and no credential.

use serde_json::{Value, json};

use super::{Admin, ROLES, body, key};

/// A route: the method, the path, a body, and the status for each role: read, operate, approve.
type Row = (&'static str, &'static str, Option<&'static str>, [u16; 3]);

const EMPTY: Option<&str> = Some("{}");

/// What each role gets. A route that is missing here fails the test.
const TABLE: &[Row] = &[
    ("POST", "/login", EMPTY, [400, 400, 400]),
    ("POST", "/logout", EMPTY, [204, 204, 204]),
    ("GET", "/self", None, [200, 200, 200]),
    ("GET", "/overview", None, [200, 200, 200]),
    ("GET", "/upstreams", None, [200, 200, 200]),
    ("GET", "/upstreams/{upstream}", None, [200, 200, 200]),
    ("POST", "/upstreams/{upstream}/probe", EMPTY, [403, 202, 403]),
    ("POST", "/upstreams/{upstream}/breaker/reset", EMPTY, [403, 202, 403]),
    ("POST", "/upstreams/{upstream}/restart", EMPTY, [403, 202, 403]),
    ("GET", "/calls", None, [200, 200, 200]),
    ("GET", "/calls/{call}", None, [404, 404, 404]),
    ("POST", "/servers/{server}/calls", EMPTY, [403, 400, 403]),
    ("POST", "/calls/{call}/input", Some(r#"{"key":"k","decline":true}"#), [403, 404, 403]),
    ("DELETE", "/calls/{call}", None, [403, 404, 403]),
    ("GET", "/captures", None, [200, 200, 200]),
    ("POST", "/captures", EMPTY, [403, 201, 403]),
    ("DELETE", "/captures/{capture}", None, [403, 404, 403]),
    ("GET", "/denials", None, [200, 200, 200]),
    ("GET", "/openapi.json", None, [200, 200, 200]),
    ("GET", "/servers", None, [200, 200, 200]),
    ("GET", "/servers/{server}", None, [200, 200, 200]),
    ("GET", "/servers/{server}/items", None, [200, 200, 200]),
    ("GET", "/items/{item}", None, [404, 404, 404]),
    ("GET", "/sessions", None, [200, 200, 200]),
    ("DELETE", "/sessions/{session}", None, [403, 404, 403]),
    ("GET", "/tasks", None, [200, 200, 200]),
    ("DELETE", "/tasks/{task}", None, [403, 404, 403]),
    ("GET", "/parked", None, [200, 200, 200]),
    ("DELETE", "/parked/{call}", None, [403, 404, 403]),
    ("GET", "/pins", None, [200, 200, 200]),
    ("GET", "/pins/{upstream}/{tool}", None, [404, 404, 404]),
    ("POST", "/pins/{upstream}/{tool}/approve", EMPTY, [403, 403, 428]),
    ("POST", "/pins/{upstream}/{tool}/reject", EMPTY, [403, 403, 428]),
    ("GET", "/config", None, [200, 200, 200]),
    ("GET", "/log", None, [200, 200, 200]),
    ("GET", "/audit", None, [403, 403, 200]),
    ("GET", "/state", None, [200, 200, 200]),
    ("GET", "/replicas", None, [200, 200, 200]),
];

fn filled(path: &str) -> String {
    path.replace("{upstream}", "files").replace("{server}", "team").replace(['{', '}'], "")
}

#[test]
fn the_table_of_routes_and_roles_is_complete_and_right() {
    let admin = Admin::with_keys();
    let document = admin.get(&key("admin-read"), "/openapi.json");
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys();
        routes.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    let known: Vec<(String, String)> =
        TABLE.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned())).collect();
    for route in &routes {
        assert!(known.contains(route), "{route:?} has no row in the table");
    }
    assert_eq!(routes.len(), known.len());
    for (method, path, json, statuses) in TABLE {
        let json: Option<Value> = json.map(|text| serde_json::from_str(text).unwrap());
        let target = filled(path);
        for (role, expected) in ROLES.iter().zip(statuses) {
            let name = role.replace(':', "-");
            let answer = admin.call(&key(&name), method, &target, json.as_ref());
            let text = answer.text();
            assert_eq!(answer.head.status, *expected, "{method} {path} as {role}: {text}");
        }
        let open = *path == "/login";
        let without_role = admin.call(&key("client"), method, &target, json.as_ref());
        assert_eq!(without_role.head.status, if open { 400 } else { 403 }, "{method} {path}");
        for wrong in ["wrong-key", ""] {
            let answer = admin.call(wrong, method, &target, json.as_ref());
            let expected: &[u16] = if open { &[400] } else { &[401, 429] };
            assert!(expected.contains(&answer.head.status), "{method} {path} with {wrong:?}");
        }
    }
}

#[test]
fn metrics_and_readiness_need_the_role_to_read() {
    let admin = Admin::with_keys();
    for path in ["/metrics", "/ready?verbose"] {
        let ask = |bearer: Option<&str>| {
            let mut request = creole_acceptance::http::Request::new("GET", path);
            if let Some(bearer) = bearer {
                request = request.with("Authorization", &format!("Bearer {bearer}"));
            }
            admin.send(&request).head.status
        };
        assert_eq!(ask(None), 401, "{path}");
        assert_eq!(ask(Some(&key("client"))), 403, "{path}");
        assert_eq!(ask(Some(&key("admin-read"))), 200, "{path}");
    }
    let open = Admin::with_link("metrics_open = true\n");
    let answer = open.send(&creole_acceptance::http::Request::new("GET", "/metrics"));
    assert_eq!(answer.head.status, 200);
    assert_eq!(answer.head.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(answer.text().contains("# TYPE "), "{}", answer.text());
}

#[test]
fn a_refusal_names_the_role_and_unknown_members_are_refused() {
    let admin = Admin::with_keys();
    let answer = admin.call(&key("admin-read"), "POST", "/captures", Some(&json!({})));
    let problem = body(&answer);
    assert_eq!(answer.head.field("content-type"), Some("application/problem+json"));
    assert_eq!(problem["role"], "admin:operate");
    assert_eq!(problem["title"], "This needs the role admin:operate");
    assert!(problem["type"].as_str().unwrap().ends_with("admin-api.md#forbidden"), "{problem}");
    let extra = json!({"minutes": 1, "command": "rm"});
    let answer = admin.call(&key("admin-operate"), "POST", "/captures", Some(&extra));
    assert_eq!((answer.head.status, body(&answer)["code"].as_str()), (400, Some("invalid-body")));
    let answer = admin.call(&key("admin-read"), "GET", "/calls?other=1", None);
    assert_eq!((answer.head.status, body(&answer)["code"].as_str()), (400, Some("invalid-query")));
}
