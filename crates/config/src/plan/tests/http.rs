//! Tests of the table `[http]`, and of the errors for invalid ones.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::plan::http::{HttpPlan, TlsPlan, address};

fn http(table: &str) -> HttpPlan {
    plan(&format!("[server]\n[http]\n{table}")).http.unwrap()
}

fn admits(plan: &HttpPlan, host: &str) -> bool {
    plan.guard().check_host(None, [host.as_bytes()].into_iter(), true).is_ok()
}

#[test]
fn without_the_table_there_is_no_http_and_an_empty_one_is_the_usual() {
    assert_eq!(plan("[server]").http, None);
    let defaults = http("");
    assert_eq!(defaults, HttpPlan::with_defaults(1_048_576));
    assert_eq!(
        (defaults.listen.to_string().as_str(), defaults.path.as_str()),
        ("127.0.0.1:8080", "/mcp")
    );
    assert!(defaults.is_loopback() && defaults.tls.is_none());
    assert_eq!(defaults.legacy_sse.as_deref(), Some("/sse"));
    let connections = creole::internal::budget::max_connections();
    assert_eq!(
        (defaults.limits.max_connections, defaults.limits.max_sessions),
        (connections, 10_000)
    );
    let half = connections.div_ceil(2);
    assert_eq!(
        (defaults.limits.max_connections_per_address, defaults.limits.max_buffered),
        (half, None)
    );
    assert!(!defaults.proxies.contains("127.0.0.1".parse().unwrap()));
    let waits = [
        defaults.limits.header_timeout,
        defaults.limits.body_timeout,
        defaults.limits.idle_timeout,
        defaults.limits.write_timeout,
        defaults.limits.drain_timeout,
        defaults.limits.drain_delay,
    ];
    assert_eq!(waits.map(|wait| wait.as_secs()), [10, 30, 60, 30, 30, 0]);
    assert!(admits(&defaults, "localhost:8080") && !admits(&defaults, "example.com"));
}

#[test]
fn everything_that_is_written_about_http_is_in_the_plan() {
    let plan = http(
        r#"
        listen = "192.0.2.7:443"
        path = "/a/b.c"
        legacy_sse = "/sse"
        hosts = ["mcp.example.com", "${WHO}.example:8443"]
        origins = ["https://app.example.com"]
        trusted_proxies = ["10.0.0.0/8", "::1"]
        tls = { certificate = "/etc/a.pem", key = "b.pem" }
        limits = { max_body = 2048, max_buffered = 2097152, max_connections = 3, max_connections_per_address = 1, max_sessions = 4, header_timeout_seconds = 5, body_timeout_seconds = 6, idle_timeout_seconds = 7, write_timeout_seconds = 8, drain_timeout_seconds = 9, drain_delay_seconds = 10 }
        "#,
    );
    assert_eq!(plan.listen, "192.0.2.7:443".parse().unwrap());
    assert!(!plan.is_loopback());
    assert_eq!((plan.path.as_str(), plan.legacy_sse.as_deref()), ("/a/b.c", Some("/sse")));
    for host in ["localhost", "mcp.example.com:1", "ann.example:8443", "192.0.2.7"] {
        assert!(admits(&plan, host), "{host}");
    }
    assert!(!admits(&plan, "ann.example") && !admits(&plan, "192.0.2.8"));
    assert!(plan.guard().check_origin([&b"https://app.example.com"[..]].into_iter(), None).is_ok());
    for (address, expected) in [("10.1.2.3", true), ("::1", true), ("192.0.2.7", false)] {
        assert_eq!(plan.proxies.contains(address.parse().unwrap()), expected, "{address}");
    }
    let limits = plan.limits;
    assert_eq!((limits.max_connections_per_address, limits.max_buffered), (1, Some(2_097_152)));
    assert_eq!((limits.max_body, limits.max_connections, limits.max_sessions), (2048, 3, 4));
    assert_eq!(limits.header_timeout, Duration::from_secs(5));
    assert_eq!(limits.body_timeout, Duration::from_secs(6));
    assert_eq!(limits.idle_timeout, Duration::from_secs(7));
    assert_eq!(limits.write_timeout, Duration::from_secs(8));
    assert_eq!(limits.drain_timeout, Duration::from_secs(9));
    assert_eq!(limits.drain_delay, Duration::from_secs(10));
}

#[test]
fn the_largest_body_is_the_dialects_largest_message_unless_written() {
    let plan = plan("[server.dialect]\nmax_message = 4096\n[http]");
    assert_eq!(plan.http.unwrap().limits.max_body, 4096);
}

#[test]
fn certificates_are_found_beside_the_file_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creole.toml");
    let text = "[server]\n[http.tls]\ncertificate = \"a.pem\"\nkey = \"/etc/b.pem\"\n";
    fs::write(&path, text).unwrap();
    let tls = Plan::load(ConfigSource::File(&path), PACKS).unwrap().http.unwrap().tls.unwrap();
    let certificate = folder.path().join("a.pem");
    assert_eq!(
        tls,
        TlsPlan { certificate, key: PathBuf::from("/etc/b.pem"), client_certificates: None }
    );
}

#[test]
fn an_address_may_be_written_in_short_forms() {
    for (text, expected) in [
        ("127.0.0.1:8080", Some("127.0.0.1:8080")),
        ("localhost:0", Some("127.0.0.1:0")),
        ("[::1]:80", Some("[::1]:80")),
        ("0.0.0.0:80", Some("0.0.0.0:80")),
        ("8080", Some("127.0.0.1:8080")),
        ("99999", None),
        (":8080", None),
        ("localhost", None),
        ("localhost:99999", None),
        ("example.com:80", None),
        ("", None),
    ] {
        assert_eq!(address(text), expected.map(|output| output.parse().unwrap()), "{text}");
    }
    let mapped = http("listen = \"[::ffff:127.0.0.1]:1\"");
    assert!(mapped.is_loopback());
    let open = http("listen = \"0.0.0.0:1\"");
    assert!(!open.is_loopback() && !admits(&open, "0.0.0.0"));
}

#[test]
fn each_error_of_http_names_its_position_and_problem() {
    let cases = [
        ("listen = \":8080\"", "3:10 invalid listen address `:8080`"),
        ("listen = 8080", "3:10 expected a string, found the number `8080`"),
        ("port = 8080", "3:1 unknown key `port`"),
        ("path = \"mcp\"", "3:8 invalid path `mcp` in `path`"),
        ("path = \"/\"", "3:8 invalid path `/` in `path`"),
        ("path = \"/mcp/\"", "3:8 invalid path `/mcp/` in `path`"),
        ("path = \"/a//b\"", "3:8 invalid path `/a//b` in `path`"),
        ("path = \"/a/../b\"", "3:8 invalid path `/a/../b` in `path`"),
        ("path = \"/a%20b\"", "3:8 invalid path `/a%20b` in `path`"),
        ("path = \"/a?b\"", "3:8 invalid path `/a?b` in `path`"),
        ("path = \"/health\"", "3:8 `path` is `/health`, which is reserved for health checks"),
        ("legacy_sse = \"/mcp\"", "3:14 `legacy_sse` and `path` are both `/mcp`"),
        ("legacy_sse = \"sse\"", "3:14 invalid path `sse` in `legacy_sse`"),
        ("hosts = [\"a\", \"*\"]", "3:15 invalid host `*`"),
        ("hosts = [\"http://a\"]", "3:10 invalid host `http://a`"),
        ("hosts = \"a\"", "3:9 expected a list, found the string \"a\""),
        ("origins = [\"*\"]", "3:12 invalid origin `*`"),
        ("origins = [\"null\"]", "3:12 invalid origin `null`"),
        ("origins = [\"https://a.example/\"]", "3:12 invalid origin `https://a.example/`"),
        (
            "trusted_proxies = [\"10.0.0.0/8\", \"10.0.0.1/8\"]",
            "3:34 `10.0.0.1/8` is neither an IP address nor a network",
        ),
        ("trusted_proxies = [\"proxy\"]", "3:20 `proxy` is neither an IP address nor a network"),
        ("limits.max_buffered = 1024", "3:23 1024 is not an integer from 1048576 to 1099511627776"),
        ("tls = true", "3:7 expected a table, found `true`"),
        ("tls = { certificate = \"a\" }", "3:7 `key` is missing"),
        ("tls = { certificate = \"\", key = \"b\" }", "3:23 `certificate` is empty"),
        ("limits.max_body = 1", "3:19 1 is not an integer from 1024 to 268435456"),
        ("limits.max_bodies = 1", "3:8 unknown key `max_bodies`"),
    ];
    for (table, expected) in cases {
        assert_eq!(
            error_text(&refusal(&format!("[server]\n[http]\n{table}"))),
            expected,
            "{table}"
        );
    }
    let help = refusal("[server]\n[http.tls]\nkey = \"a\"").help.unwrap();
    assert_eq!(help, "add `certificate = …` to this table");
}
