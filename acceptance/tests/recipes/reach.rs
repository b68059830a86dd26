//! Tests of the addresses that tools may reach: those that the configuration names, and otherwise only public ones.

use serde_json::json;

use crate::ConfiguredServer;
use crate::service::{Service, answer, json as good};

fn tool(url: &str, keys: &str) -> ConfiguredServer {
    ConfiguredServer::start(&format!(
        "[tools.t]\ndescription = 'Asks'\n[tools.t.http]\nretries = 0\nurl = '{url}'\n{keys}\n"
    ))
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_followed() {
    let service = Service::start(|_, _| good("{}"));
    // None of these is an address in standard notation. The system resolves them like any other name.
    for host in ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "0"] {
        let url = format!("http://{host}:{}/", service.port());
        let refused = tool(&url, "").call("t", json!({})).unwrap_err();
        assert!(refused.contains("not public"), "{host}: {refused}");
    }
    assert!(service.requests().is_empty(), "the service got no request");
}

#[test]
fn what_the_configuration_allows_is_reached() {
    let service = Service::start(|_, _| good("{}"));
    for (host, keys) in [
        ("127.0.0.1", ""),
        ("localhost", ""),
        ("2130706433", "allow_private = true"),
        ("127.1", "allow_private = true"),
    ] {
        let url = format!("http://{host}:{}/", service.port());
        assert_eq!(tool(&url, keys).call("t", json!({})), Ok("{}".into()), "{host}");
    }
    assert_eq!(service.requests().len(), 4);
}

#[test]
fn redirects_stay_within_the_origin_and_credentials_with_them() {
    let other = Service::start(|_, _| good("{}"));
    let elsewhere = other.url();
    let port = other.port();
    let service = Service::start(move |_, request| {
        let to = |location: &str| answer("302 Found", &format!("Location: {location}\r\n"), "");
        match request.line.split(' ').nth(1).unwrap() {
            "/start" => to("/end?x=1"),
            "/end?x=1" => good("\"here\""),
            "/away" => to(&format!("{elsewhere}/end")),
            "/scheme" => to(&format!("//127.0.0.1:{port}/end")),
            "/file" => to("file:///etc/passwd"),
            _ => to("/loop"),
        }
    });
    let keys = "auth = { bearer = 'hunter2000' }";
    let url = service.url();
    assert_eq!(tool(&format!("{url}/start"), keys).call("t", json!({})), Ok("\"here\"".into()));
    assert_eq!(service.requests()[1].header("authorization"), Some("Bearer hunter2000"));
    for location in ["away", "scheme", "file", "loop"] {
        let refused = tool(&format!("{url}/{location}"), keys).call("t", json!({})).unwrap_err();
        assert!(refused.contains("status 302") && refused.contains("not followed"), "{refused}");
    }
    assert!(other.requests().is_empty(), "no other service got a request");
    let before = service.requests().len();
    let keys = format!("{keys}\nmethod = 'POST'");
    assert!(tool(&format!("{url}/start"), &keys).call("t", json!({})).is_err());
    assert_eq!(service.requests().len(), before + 1, "a request with effects is not repeated");
}
