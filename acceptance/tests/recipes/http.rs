//! Tests of HTTP services as tools: their requests, and how their responses are converted.

use serde_json::{Value, json};

use crate::ConfiguredServer;
use crate::service::{Service, answer, json as good};

/// A tool `t` with these lines in its table `http`, and with arguments `a` and `n`.
fn tool(http: &str, arguments: &str) -> ConfiguredServer {
    ConfiguredServer::start(&format!(
        "[tools.t]\ndescription = 'Asks'\n[tools.t.http]\n{http}\n[tools.t.arguments]\n{arguments}"
    ))
}

fn path(service: &Service) -> ConfiguredServer {
    let url = service.url();
    tool(&format!("url = '{url}/users/{{a}}/posts?sort=new&by={{a}}'"), "a = { type = 'string' }")
}

#[test]
fn a_value_stays_inside_its_part_of_the_url() {
    let service = Service::start(|_, _| good("{}"));
    let mut server = path(&service);
    let rows = [
        ("a b", "a%20b"),
        ("x?admin=1&y#z", "x%3Fadmin%3D1%26y%23z"),
        ("%2f%2e%2e", "%252f%252e%252e"),
        ("@evil.example:80", "%40evil.example%3A80"),
        ("ü+", "%C3%BC%2B"),
    ];
    for (value, encoded) in rows {
        server.call("t", json!({ "a": value })).unwrap();
        let expected = format!("GET /users/{encoded}/posts?sort=new&by={encoded} HTTP/1.1");
        assert_eq!(service.requests().last().unwrap().line, expected);
    }
    let sent = service.requests().len();
    for value in ["..", ".", "", "../admin", "a/../../b", "..\\b", "a\r\nX: y", "a\u{0}"] {
        assert!(server.call("t", json!({ "a": value })).is_err(), "{value:?}");
    }
    assert_eq!(service.requests().len(), sent, "nothing was sent");
}

#[test]
fn values_stay_in_their_parameters_headers_and_bodies() {
    let service = Service::start(|_, _| good("{}"));
    let http = format!(
        "url = '{}/'\nmethod = 'POST'\nquery = {{ q = '{{a}}', list = '{{list}}', no = '{{no}}' }}\n\
         headers = {{ X-Who = 'who {{a}}' }}\nbody = {{ text = 'Dear {{a}}', a = '{{a}}', n = '{{n}}', no = '{{no}}' }}",
        service.url()
    );
    let arguments = "a = { type = 'string' }\nn = { type = 'integer', default = 7 }\n\
                     list = { type = 'array', required = false }\nno = { type = 'string', required = false }";
    let mut server = tool(&http, arguments);
    let hostile = "\",\"admin\":true,\"&x=1";
    server.call("t", json!({ "a": hostile, "list": ["1", "2&3"] })).unwrap();
    let request = service.requests().pop().unwrap();
    let encoded = "%22%2C%22admin%22%3Atrue%2C%22%26x%3D1";
    assert_eq!(request.line, format!("POST /?q={encoded}&list=1&list=2%263 HTTP/1.1"));
    assert_eq!(request.header("x-who"), Some(format!("who {hostile}").as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(request.header("user-agent").unwrap().starts_with("creole/"));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body, json!({ "text": format!("Dear {hostile}"), "a": hostile, "n": 7 }));
    for value in ["a\r\nX-Admin: 1", "a\nb", "a\u{0}", "ü"] {
        let refused = server.call("t", json!({ "a": value })).unwrap_err();
        assert!(refused.contains("not allowed in a header"), "{refused}");
    }
    assert_eq!(service.requests().len(), 1, "nothing was sent");
}

#[test]
fn a_refusal_is_a_failure_with_its_status_and_a_part_of_its_text() {
    let service =
        Service::start(|_, _| answer("404 Not Found", "", &"no such thing ".repeat(10_000)));
    let mut server = tool(&format!("url = '{}/'", service.url()), "");
    let text = server.call("t", json!({})).unwrap_err();
    assert!(
        text.starts_with("the service responded with status 404 Not Found:\nno such thing"),
        "{text}"
    );
    assert!(text.len() < 5000);
    assert_eq!(service.requests().len(), 1, "the request is not repeated");
}

#[test]
fn only_idempotent_requests_are_retried() {
    let moody = |number: usize, _: &_| match number {
        0 | 1 => answer("503 Service Unavailable", "Retry-After: 0\r\n", ""),
        _ => good("{\"n\":1}"),
    };
    let service = Service::start(moody);
    let mut server = tool(&format!("url = '{}/'", service.url()), "");
    assert_eq!(server.call("t", json!({})), Ok("{\"n\":1}".into()));
    assert_eq!(service.requests().len(), 3);
    let service = Service::start(moody);
    let mut server = tool(&format!("url = '{}/'\nmethod = 'POST'", service.url()), "");
    assert!(server.call("t", json!({})).unwrap_err().contains("status 503"));
    assert_eq!(service.requests().len(), 1);
    let service =
        Service::start(|_, _| answer("429 Too Many Requests", "Retry-After: 3600\r\n", ""));
    let mut server = tool(&format!("url = '{}/'", service.url()), "");
    assert!(server.call("t", json!({})).unwrap_err().contains("status 429"));
    assert_eq!(service.requests().len(), 1, "the call does not wait for an hour");
}

#[test]
fn answers_are_shaped() {
    let body = r#"{"items":[{"name":"x","n":1},{"name":"y","n":2}]}"#;
    let service = Service::start(move |_, request| match request.line.contains("/image") {
        true => answer("200 OK", "Content-Type: image/png\r\n", "abc"),
        false => good(body),
    });
    let url = service.url();
    let mut server = ConfiguredServer::start(&format!(
        "[tools.all]\ndescription = 'x'\nhttp = {{ url = '{url}/' }}\n\
         [tools.pick]\ndescription = 'x'\nhttp = {{ url = '{url}/', pick = '/items/1/name', result = 'text' }}\n\
         [tools.text]\ndescription = 'x'\n\
         http = {{ url = '{url}/', template = '{{% for it in body.items %}}{{{{ it.name }}}};{{% endfor %}}' }}\n\
         [tools.image]\ndescription = 'x'\nhttp = {{ url = '{url}/image' }}\n\
         [tools.schema]\ndescription = 'x'\noutput_schema = {{ required = ['no'] }}\nhttp = {{ url = '{url}/' }}\n"
    ));
    let all = server.server.call("all", &json!({}));
    assert_eq!(all["result"]["structuredContent"]["items"][1]["n"], 2, "{all}");
    assert_eq!(server.call("pick", json!({})), Ok("y".into()));
    assert_eq!(server.call("text", json!({})), Ok("x;y;".into()));
    let image = server.server.call("image", &json!({}));
    assert_eq!(image["result"]["content"][0]["mimeType"], "image/png", "{image}");
    assert!(
        server
            .call("schema", json!({}))
            .unwrap_err()
            .contains("does not match the tool's output schema")
    );
}

#[test]
fn a_response_that_is_too_long_or_too_slow_is_aborted() {
    let service = Service::start(|_, _| good(&format!("\"{}\"", "x".repeat(5000))));
    let mut server = ConfiguredServer::start(&format!(
        "[tools.t]\ndescription = 'x'\noutput_limit_bytes = 1000\nhttp = {{ url = '{}/' }}\n",
        service.url()
    ));
    assert_eq!(server.call("t", json!({})), Err("the response is longer than 1000 bytes".into()));
    // The listener accepts the connection and never responds.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut server = ConfiguredServer::start(&format!(
        "[tools.t]\ndescription = 'x'\ntimeout_seconds = 1\nhttp = {{ url = 'http://{}/' }}\n",
        silent.local_addr().unwrap()
    ));
    assert_eq!(
        server.call("t", json!({})),
        Err("the call took longer than 1 s and was cancelled".into())
    );
}
